{{/* Text "true" if some node group is left to the autoscaler. Argument: root. */}}
{{- define "openstack-cluster.autoscaler.wanted" -}}
{{- $default := .Values.nodeGroupDefaults.autoscale -}}
{{- range .Values.nodeGroups -}}
{{- include "openstack-cluster.nodeGroup.autoscales" (dict "autoscale" (kindIs "invalid" .autoscale | ternary $default .autoscale)) -}}
{{- end -}}
{{- end -}}

{{- define "openstack-cluster.autoscaler.name" -}}
{{- include "openstack-cluster.name" (dict "parts" (list .Release.Name "autoscaler")) -}}
{{- end -}}

{{/* The image, below the registry prefix by its whole name. Argument: root. */}}
{{- define "openstack-cluster.autoscaler.image" -}}
{{- with (.Values.global | default dict).imageRegistryPrefix -}}
{{ . }}/
{{- end -}}
{{ .Values.autoscaler.image.repository }}:{{ .Values.autoscaler.image.tag | default (include "openstack-cluster.autoscaler.tag" .) }}
{{- end -}}

{{/* The release that goes with the cluster's Kubernetes, see files/autoscaler-tags.yaml. Argument: root. */}}
{{- define "openstack-cluster.autoscaler.tag" -}}
{{- $tags := .Files.Get "files/autoscaler-tags.yaml" | fromYaml -}}
{{- $known := keys $tags | sortAlpha -}}
{{- $version := include "openstack-cluster.version" (dict "root" . "from" .Values.controlPlane) -}}
{{- $minor := $version | trimPrefix "v1." | splitList "." | first -}}
{{- get $tags (max (first $known) (min (last $known) $minor) | toString) -}}
{{- end -}}
