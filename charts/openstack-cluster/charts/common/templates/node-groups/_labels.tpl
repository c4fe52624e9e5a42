{{/* Labels of a node group's Nodes and Machines. */}}

{{/* All labels of a group's Nodes as JSON: its name, its role, and merged with nodeLabels. Arguments: root, group. */}}
{{- define "openstack-cluster.nodeGroup.nodeLabels" -}}
{{- $defaults := dict
      (printf "%s/node-group" .root.Values.projectPrefix) .group.name
      "node.cluster.x-k8s.io/node-group" .group.name -}}
{{- with .group.role -}}
{{- $_ := set $defaults (printf "node-role.kubernetes.io/%s" .) "" -}}
{{- end -}}
{{- include "openstack-cluster.machine.values.merged" (dict "defaults" $defaults "values" .group.nodeLabels) -}}
{{- end -}}

{{/* Labels of a group's Machines that Cluster API syncs to its Nodes. Arguments: root, group. */}}
{{- define "openstack-cluster.nodeGroup.machineLabels" -}}
{{- $labels := include "openstack-cluster.nodeGroup.nodeLabels" . | fromJson -}}
{{- $machine := include "openstack-cluster.nodeMetadata.labels.machine" (dict "root" .root "labels" $labels) | fromJson -}}
{{- /* Machines have this one anyway, to be selected by. */ -}}
{{- range $key, $value := omit $machine (printf "%s/node-group" .root.Values.projectPrefix) }}
{{ $key | quote }}: {{ $value | quote }}
{{- end }}
{{- end -}}
