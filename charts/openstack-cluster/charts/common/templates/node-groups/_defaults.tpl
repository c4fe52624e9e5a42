{{/* Node groups as the templates take them: the entries of nodeGroups with their defaults. */}}

{{/* One node group, merged with nodeGroupDefaults, as JSON. Arguments: root, group (an entry of nodeGroups). */}}
{{- define "openstack-cluster.nodeGroup" -}}
{{- include "openstack-cluster.machine.values.merged" (dict "defaults" .root.Values.nodeGroupDefaults "values" .group) -}}
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

{{/* Text "true" if the autoscaler scales the group; true may come as text too. Argument: the group. */}}
{{- define "openstack-cluster.nodeGroup.autoscales" -}}
{{- if eq (toString .autoscale) "true" -}}true{{- end -}}
{{- end -}}
