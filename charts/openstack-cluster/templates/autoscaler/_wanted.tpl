{{/* Text "true" if the autoscaler scales a node group. Argument: root. */}}
{{- define "openstack-cluster.autoscaler.enabled" -}}
{{- $default := .Values.nodeGroupDefaults.autoscale -}}
{{- range .Values.nodeGroups -}}
{{- include "openstack-cluster.nodeGroup.autoscales" (dict "autoscale" (kindIs "invalid" .autoscale | ternary $default .autoscale)) -}}
{{- end -}}
{{- end -}}

{{/* The MachineDeployments whose number it sets, as a JSON list of names. Argument: root. */}}
{{- define "openstack-cluster.autoscaler.scales" -}}
{{- $names := list -}}
{{- range include "openstack-cluster.nodeGroups" . | fromJsonArray -}}
{{- if include "openstack-cluster.nodeGroup.autoscales" . -}}
{{- $names = append $names (include "openstack-cluster.name.nodeGroup" (dict "root" $ "group" .name)) -}}
{{- end -}}
{{- end -}}
{{ toJson $names }}
{{- end -}}

{{- define "openstack-cluster.autoscaler.name" -}}
{{- include "openstack-cluster.name" (dict "parts" (list .Release.Name "autoscaler")) -}}
{{- end -}}

{{/*
The image: what is put before the names of the cluster's images does not reach it, for it runs on the management
cluster. Argument: root.
*/}}
{{- define "openstack-cluster.autoscaler.image" -}}
{{ .Values.autoscaler.image.repository }}:{{ .Values.autoscaler.image.tag | default (include "openstack-cluster.autoscaler.tag" .) }}
{{- end -}}

{{/* The release that goes with the cluster's Kubernetes, see files/autoscaler-tags.yaml. Argument: root. */}}
{{- define "openstack-cluster.autoscaler.tag" -}}
{{- $tags := .Files.Get "files/autoscaler-tags.yaml" | fromYaml -}}
{{- $known := keys $tags | sortAlpha -}}
{{- $version := include "openstack-cluster.machine.values.version" (dict "root" . "values" .Values.controlPlane) -}}
{{- $minor := $version | trimPrefix "v1." | splitList "." | first -}}
{{- get $tags (max (first $known) (min (last $known) $minor) | toString) -}}
{{- end -}}
