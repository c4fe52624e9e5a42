{{/*
kubeadm's ClusterConfiguration: the parts of the control plane. Each part is merged with the same part of
controlPlane.kubeadmConfigSpec, lists after the chart's. Arguments: root, core.
*/}}
{{- define "openstack-cluster.kubeadm.clusterConfiguration" -}}
{{- $values := .root.Values -}}
{{- $passthrough := ($values.controlPlane.kubeadmConfigSpec | default dict).clusterConfiguration | default dict -}}
{{- with include "openstack-cluster.kubeadm.component" (dict "root" .root "core" .core "program" "apiServer"
      "volumes" (concat (include "openstack-cluster.kubeadm.apiServerVolumes" .root | fromYamlArray) ($values.apiServer.extraVolumes | default list))
      "certSANs" $values.apiServer.certSANs) | trim }}
apiServer: {{- . | nindent 2 }}
{{- end }}
{{- with include "openstack-cluster.kubeadm.component" (dict "root" .root "core" .core "program" "controllerManager"
      "volumes" ($values.controllerManager).extraVolumes) | trim }}
controllerManager: {{- . | nindent 2 }}
{{- end }}
{{- with include "openstack-cluster.kubeadm.component" (dict "root" .root "core" .core "program" "scheduler"
      "volumes" ($values.scheduler).extraVolumes) | trim }}
scheduler: {{- . | nindent 2 }}
{{- end }}
etcd: {{- include "openstack-cluster.kubeadm.etcd" (dict "root" .root "core" .core "passthrough" $passthrough.etcd) | nindent 2 }}
{{- include "openstack-cluster.kubeadm.images" (dict "root" .root "passthrough" $passthrough) }}
{{- if and $values.controlPlane.certificateValidityDays (include "openstack-cluster.clusterApi.certificateValidity" .) }}
certificateValidityPeriodDays: {{ $values.controlPlane.certificateValidityDays | int }}
{{- end }}
{{- include "openstack-cluster.kubeadm.remaining" (dict "passthrough" $passthrough "without"
      (list "apiServer" "controllerManager" "scheduler" "etcd" "imageRepository" "dns")) }}
{{- end -}}

{{/*
A program of the control plane. Arguments: root, core, program (apiServer, controllerManager or scheduler), volumes,
certSANs.
*/}}
{{- define "openstack-cluster.kubeadm.component" -}}
{{- $passthrough := get ((.root.Values.controlPlane.kubeadmConfigSpec).clusterConfiguration | default dict) .program | default dict -}}
{{- with include "openstack-cluster.controlPlane.args" . }}
extraArgs: {{- . | nindent 2 }}
{{- end }}
{{- with concat (.volumes | default list) ($passthrough.extraVolumes | default list) }}
extraVolumes: {{ toJson . }}
{{- end }}
{{- with concat (.certSANs | default list) ($passthrough.certSANs | default list) | uniq }}
certSANs: {{ toJson . }}
{{- end }}
{{- include "openstack-cluster.kubeadm.remaining" (dict "passthrough" $passthrough "without" (list "extraArgs" "extraVolumes" "certSANs")) }}
{{- end -}}

{{/* Host paths that the API server's pod mounts. Argument: root. */}}
{{- define "openstack-cluster.kubeadm.apiServerVolumes" -}}
{{- $directories := dict -}}
{{- if eq .Values.authWebhook "k8s-keystone-auth" -}}
{{- $_ := set $directories "keystone-auth" (include "openstack-cluster.webhooks.keystone.directory" .) -}}
{{- else if eq .Values.authWebhook "azimuth-authorization-webhook" -}}
{{- $_ := set $directories "webhooks" (include "openstack-cluster.webhooks.azimuth.directory" .) -}}
{{- end -}}
{{- if .Values.apiServer.admissionConfiguration -}}
{{- $_ := set $directories "admission-configuration" (include "openstack-cluster.controlPlane.admission.directory" .) -}}
{{- end -}}
{{- if (.Values.apiServer.audit).policy -}}
{{- $_ := set $directories "audit-policy" (include "openstack-cluster.controlPlane.audit.directory" .) -}}
{{- end -}}
{{- if (.Values.etcd.encryption).enabled -}}
{{- $_ := set $directories "etcd-encryption" (include "openstack-cluster.encryption.directory" .) -}}
{{- end -}}
{{- range $name, $directory := $directories }}
- name: {{ $name }}
  hostPath: {{ $directory }}
  mountPath: {{ $directory }}
  pathType: Directory
  readOnly: true
{{- end }}
{{- if include "openstack-cluster.barbican.enabled" . }}
- name: barbican-kms-plugin
  hostPath: {{ include "openstack-cluster.barbican.socketDirectory" . }}
  mountPath: {{ include "openstack-cluster.barbican.socketDirectory" . }}
  pathType: DirectoryOrCreate
  readOnly: true
{{- end }}
{{- with .Values.apiServer.audit }}
{{- if and .policy (ne ((.log).path | default "-") "-") }}
- name: audit-log
  hostPath: {{ dir .log.path | quote }}
  mountPath: {{ dir .log.path | quote }}
  pathType: DirectoryOrCreate
{{- end }}
{{- end }}
{{- end -}}

{{/*
Local etcd, or the external one that kubeadmConfigSpec names.
Arguments: root, core, passthrough (etcd of kubeadmConfigSpec).
*/}}
{{- define "openstack-cluster.kubeadm.etcd" -}}
{{- $etcd := .root.Values.etcd -}}
{{- $passthrough := .passthrough | default dict -}}
{{- if $passthrough.external -}}
external: {{ toJson $passthrough.external }}
{{- else -}}
{{- $local := $passthrough.local | default dict -}}
local:
  dataDir: {{ $etcd.dataDir | quote }}
  {{- with include "openstack-cluster.controlPlane.args" (dict "root" .root "core" .core "program" "etcd") }}
  extraArgs: {{- . | nindent 4 }}
  {{- end }}
  {{- with include "openstack-cluster.kubeadm.remaining" (dict "passthrough" $local "without" (list "dataDir" "extraArgs")) | trim }}
  {{- . | nindent 2 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/*
Where kubeadm's images come from. Below a prefix they keep their whole names, but kubeadm leaves out the first "coredns"
of registry.k8s.io/coredns/coredns wherever the registry is another one. Arguments: root, passthrough
(clusterConfiguration of kubeadmConfigSpec).
*/}}
{{- define "openstack-cluster.kubeadm.images" -}}
{{- $passthrough := .passthrough -}}
{{- $prefix := (.root.Values.global | default dict).imageRegistryPrefix -}}
{{- $dns := $passthrough.dns | default dict -}}
{{- if $passthrough.imageRepository }}
imageRepository: {{ $passthrough.imageRepository | quote }}
{{- else if $prefix }}
imageRepository: {{ printf "%s/registry.k8s.io" $prefix | quote }}
{{- if not $dns.imageRepository }}
{{- $dns = set (omit $dns "imageRepository") "imageRepository" (printf "%s/registry.k8s.io/coredns" $prefix) }}
{{- end }}
{{- end }}
{{- with $dns }}
dns: {{ toJson . }}
{{- end }}
{{- end -}}
