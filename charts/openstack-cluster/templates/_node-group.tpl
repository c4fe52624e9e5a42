{{/*
A node group as it counts: nodeGroupDefaults with the group's own keys laid over them. Arguments: below, above.
A key that is set above wins whatever its value is, so false and 0 can undo a default; null counts as not set.
Maps are laid over key by key, lists and scalars as a whole. The result is JSON.
*/}}
{{- define "openstack-cluster.overlay" -}}
{{- $result := omit (.below | default dict) "" -}}
{{- range $key, $high := .above -}}
{{- $low := get $result $key -}}
{{- if and (kindIs "map" $low) (kindIs "map" $high) -}}
{{- $_ := set $result $key (include "openstack-cluster.overlay" (dict "below" $low "above" $high) | fromJson) -}}
{{- else if not (kindIs "invalid" $high) -}}
{{- $_ := set $result $key $high -}}
{{- end -}}
{{- end -}}
{{ toJson $result }}
{{- end -}}

{{/* One node group as JSON. Arguments: root, group (an entry of nodeGroups). */}}
{{- define "openstack-cluster.nodeGroup" -}}
{{- include "openstack-cluster.overlay" (dict "below" .root.Values.nodeGroupDefaults "above" .group) -}}
{{- end -}}

{{/* All node groups as a JSON list, in their order: a template asks once and ranges over it. Argument: root. */}}
{{- define "openstack-cluster.nodeGroups" -}}
[
{{- range $place, $group := .Values.nodeGroups -}}
{{- if $place }},{{ end -}}
{{- include "openstack-cluster.nodeGroup" (dict "root" $ "group" $group) -}}
{{- end -}}
]
{{- end -}}

{{/* Text "true" if the group is left to the autoscaler; true may come as text too. Argument: the group. */}}
{{- define "openstack-cluster.nodeGroup.autoscales" -}}
{{- if eq (toString .autoscale) "true" -}}true{{- end -}}
{{- end -}}

{{/* The Kubernetes version with its v. Arguments: root, from (control plane or node group). */}}
{{- define "openstack-cluster.version" -}}
v{{ .from.kubernetesVersion | default .root.Values.kubernetesVersion | toString | trimPrefix "v" }}
{{- end -}}
