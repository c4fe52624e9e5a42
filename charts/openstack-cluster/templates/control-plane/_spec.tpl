{{/* The machine template of the control plane. Argument: root. */}}
{{- define "openstack-cluster.controlPlane.machineTemplate.spec" -}}
template:
  spec: {{- include "openstack-cluster.machine" (dict "root" . "from" .Values.controlPlane
      "metadata" .Values.machineMetadata "etcd" .Values.etcd.blockDevice) | nindent 4 }}
{{- end -}}

{{- define "openstack-cluster.controlPlane.machineTemplate.name" -}}
{{- $base := include "openstack-cluster.name" (dict "parts" (list .Release.Name "control-plane") "max" 54) -}}
{{- include "openstack-cluster.name.template" (dict "base" $base
      "spec" (include "openstack-cluster.controlPlane.machineTemplate.spec" .)) -}}
{{- end -}}

{{/* kubeadmConfigSpec of the control plane. Arguments: root, core. */}}
{{- define "openstack-cluster.controlPlane.kubeadmConfigSpec" -}}
clusterConfiguration: {{- include "openstack-cluster.kubeadm.clusterConfiguration" . | trim | nindent 2 }}
initConfiguration:
  nodeRegistration: {{- include "openstack-cluster.kubeadm.nodeRegistration.controlPlane" . | nindent 4 }}
  {{- with include "openstack-cluster.kubeadm.skipPhases" .root }}
  skipPhases: {{- . | nindent 4 }}
  {{- end }}
joinConfiguration:
  nodeRegistration: {{- include "openstack-cluster.kubeadm.nodeRegistration.controlPlane" . | nindent 4 }}
{{- with include "openstack-cluster.kubeadm.files" .root }}
files: {{- . | trim | nindent 2 }}
{{- end }}
{{- if .root.Values.etcd.blockDevice }}
diskSetup: {{- include "openstack-cluster.kubeadm.diskSetup" .root.Values.etcd | nindent 2 }}
mounts: {{- include "openstack-cluster.kubeadm.mounts" .root.Values.etcd | nindent 2 }}
{{- end }}
{{- end -}}

{{/* How the control plane changes and heals. Arguments: core, from (controlPlane of the values). */}}
{{- define "openstack-cluster.controlPlane.rollout" -}}
{{- $remediation := .from.remediationStrategy -}}
{{- if eq .core "v1beta2" -}}
rollout:
  {{- if .from.certificatesExpiryDays }}
  before:
    certificatesExpiryDays: {{ .from.certificatesExpiryDays | int }}
  {{- end }}
  strategy: {{- toYaml .from.rolloutStrategy | nindent 4 }}
remediation:
  maxRetry: {{ $remediation.maxRetry | int }}
  retryPeriodSeconds: {{ include "openstack-cluster.seconds" $remediation.retryPeriod }}
  minHealthyPeriodSeconds: {{ include "openstack-cluster.seconds" $remediation.minHealthyPeriod }}
{{- else -}}
{{- if .from.certificatesExpiryDays -}}
rolloutBefore:
  certificatesExpiryDays: {{ .from.certificatesExpiryDays | int }}
{{ end -}}
rolloutStrategy: {{- toYaml .from.rolloutStrategy | nindent 2 }}
remediationStrategy: {{- toYaml $remediation | nindent 2 }}
{{- end -}}
{{- end -}}
