{{/*
Admission and audit of the API server, and kube-proxy's configuration. The first two bodies stand in Secrets, as they
may be longer than Cluster API lets a file be; a hash of the body in the file's name makes a change of it replace the
machines that hold the former one.
*/}}

{{- define "openstack-cluster.controlPlane.admission.secretName" -}}
{{- include "openstack-cluster.name" (dict "parts" (list .Release.Name "admission-configuration")) -}}
{{- end -}}

{{- define "openstack-cluster.controlPlane.audit.secretName" -}}
{{- include "openstack-cluster.name" (dict "parts" (list .Release.Name "audit-policy")) -}}
{{- end -}}

{{- define "openstack-cluster.controlPlane.admission.directory" -}}
/etc/kubernetes/admission
{{- end -}}

{{- define "openstack-cluster.controlPlane.admission.path" -}}
{{ include "openstack-cluster.controlPlane.admission.directory" . }}/configuration-{{ toJson .Values.apiServer.admissionConfiguration | sha256sum | trunc 8 }}.yaml
{{- end -}}

{{/* Source: https://kubernetes.io/docs/reference/config-api/apiserver-config.v1/ */}}
{{- define "openstack-cluster.controlPlane.admission.configuration" -}}
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
  {{- range $name, $configuration := .Values.apiServer.admissionConfiguration }}
  - name: {{ $name | quote }}
    configuration: {{- toYaml $configuration | nindent 6 }}
  {{- end }}
{{ end -}}

{{- define "openstack-cluster.controlPlane.audit.directory" -}}
/etc/kubernetes/audit
{{- end -}}

{{- define "openstack-cluster.controlPlane.audit.policyPath" -}}
{{ include "openstack-cluster.controlPlane.audit.directory" . }}/policy-{{ toJson .Values.apiServer.audit.policy | sha256sum | trunc 8 }}.yaml
{{- end -}}

{{/* Source: https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/ */}}
{{- define "openstack-cluster.controlPlane.audit.policy" -}}
apiVersion: audit.k8s.io/v1
kind: Policy
{{ toYaml .Values.apiServer.audit.policy }}
{{ end -}}

{{/* kube-proxy's configuration, unless Cilium does its work: nothing if nothing is configured. Argument: root. */}}
{{- define "openstack-cluster.controlPlane.kubeProxy.configuration" -}}
{{- with (.Values.controlPlane.kubeadmConfigSpec | default dict).kubeProxyConfiguration }}
{{- if not (include "openstack-cluster.kubeadm.skippedPhase" $) -}}
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
{{ toYaml . }}
{{ end }}
{{- end }}
{{- end -}}

{{/* /run is another file system while Ignition works. */}}
{{- define "openstack-cluster.controlPlane.kubeProxy.path" -}}
{{- eq .Values.osDistro "flatcar" | ternary "/etc/kube-proxy-configuration.yaml" "/run/kubeadm/kube-proxy-configuration.yaml" -}}
{{- end -}}
