{{/*
kubeadm's ClusterConfiguration: the parts of the control plane. What controlPlane.kubeadmConfigSpec says of a part is laid
over it, lists after the chart's. Arguments: root, core.
*/}}
{{- define "openstack-cluster.kubeadm.clusterConfiguration" -}}
{{- $values := .root.Values -}}
{{- $own := ($values.controlPlane.kubeadmConfigSpec | default dict).clusterConfiguration | default dict -}}
{{- with include "openstack-cluster.kubeadm.component" (dict "root" .root "core" .core "program" "apiServer"
      "volumes" (concat (include "openstack-cluster.apiServer.volumes" .root | fromYamlArray) ($values.apiServer.extraVolumes | default list))
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
etcd: {{- include "openstack-cluster.kubeadm.etcd" (dict "root" .root "core" .core "own" $own.etcd) | nindent 2 }}
{{- include "openstack-cluster.kubeadm.images" (dict "root" .root "own" $own) }}
{{- if and $values.controlPlane.certificateValidityDays (include "openstack-cluster.clusterApi.certificateValidity" .) }}
certificateValidityPeriodDays: {{ $values.controlPlane.certificateValidityDays | int }}
{{- end }}
{{- include "openstack-cluster.kubeadm.rest" (dict "own" $own "without"
      (list "apiServer" "controllerManager" "scheduler" "etcd" "imageRepository" "dns")) }}
{{- end -}}

{{/*
A program of the control plane. Arguments: root, core, program (apiServer, controllerManager or scheduler), volumes,
certSANs.
*/}}
{{- define "openstack-cluster.kubeadm.component" -}}
{{- $own := get ((.root.Values.controlPlane.kubeadmConfigSpec).clusterConfiguration | default dict) .program | default dict -}}
{{- with include "openstack-cluster.controlPlane.args" . }}
extraArgs: {{- . | nindent 2 }}
{{- end }}
{{- with concat (.volumes | default list) ($own.extraVolumes | default list) }}
extraVolumes: {{ toJson . }}
{{- end }}
{{- with concat (.certSANs | default list) ($own.certSANs | default list) | uniq }}
certSANs: {{ toJson . }}
{{- end }}
{{- include "openstack-cluster.kubeadm.rest" (dict "own" $own "without" (list "extraArgs" "extraVolumes" "certSANs")) }}
{{- end -}}

{{/* What the API server's pod sees of its host. Argument: root. */}}
{{- define "openstack-cluster.apiServer.volumes" -}}
{{- $directories := dict -}}
{{- if eq .Values.authWebhook "k8s-keystone-auth" -}}
{{- $_ := set $directories "keystone-auth" (include "openstack-cluster.keystoneAuth.directory" .) -}}
{{- else if eq .Values.authWebhook "azimuth-authorization-webhook" -}}
{{- $_ := set $directories "webhooks" (include "openstack-cluster.azimuthWebhook.directory" .) -}}
{{- end -}}
{{- if .Values.apiServer.admissionConfiguration -}}
{{- $_ := set $directories "admission-configuration" (include "openstack-cluster.admission.directory" .) -}}
{{- end -}}
{{- if (.Values.apiServer.audit).policy -}}
{{- $_ := set $directories "audit-policy" (include "openstack-cluster.audit.directory" .) -}}
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
etcd on the control plane's machines, or one of elsewhere that kubeadmConfigSpec names.
Arguments: root, core, own (what kubeadmConfigSpec says of it).
*/}}
{{- define "openstack-cluster.kubeadm.etcd" -}}
{{- $etcd := .root.Values.etcd -}}
{{- $own := .own | default dict -}}
{{- if $own.external -}}
external: {{ toJson $own.external }}
{{- else -}}
{{- $local := $own.local | default dict -}}
local:
  dataDir: {{ $etcd.dataDir | quote }}
  {{- with include "openstack-cluster.controlPlane.args" (dict "root" .root "core" .core "program" "etcd") }}
  extraArgs: {{- . | nindent 4 }}
  {{- end }}
  {{- with include "openstack-cluster.kubeadm.rest" (dict "own" $local "without" (list "dataDir" "extraArgs")) | trim }}
  {{- . | nindent 2 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/*
Where kubeadm's images come from. Below a prefix they keep their whole names, but kubeadm leaves out the first "coredns" of
registry.k8s.io/coredns/coredns wherever the registry is another one. Arguments: root, own (clusterConfiguration of
kubeadmConfigSpec).
*/}}
{{- define "openstack-cluster.kubeadm.images" -}}
{{- $own := .own -}}
{{- $prefix := (.root.Values.global | default dict).imageRegistryPrefix -}}
{{- $dns := $own.dns | default dict -}}
{{- if $own.imageRepository }}
imageRepository: {{ $own.imageRepository | quote }}
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

{{/* Text "true" if kubeadm can be told how long certificates are good: since 1.11, in v1beta1 since 1.13. Arguments: root, core. */}}
{{- define "openstack-cluster.clusterApi.certificateValidity" -}}
{{- if or (eq .core "v1beta2") (ge (include "openstack-cluster.clusterApi.minor" .root | int) 13) -}}true{{- end -}}
{{- end -}}
