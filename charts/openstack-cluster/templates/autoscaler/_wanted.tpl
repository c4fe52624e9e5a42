{{/* Text "true" if some node group is left to the autoscaler. Argument: root. */}}
{{- define "openstack-cluster.autoscaler.wanted" -}}
{{- range .Values.nodeGroups -}}
{{- $group := include "openstack-cluster.nodeGroup" (dict "root" $ "group" .) | fromJson -}}
{{- include "openstack-cluster.nodeGroup.autoscales" $group -}}
{{- end -}}
{{- end -}}

{{- define "openstack-cluster.autoscaler.name" -}}
{{- include "openstack-cluster.name" (dict "parts" (list .Release.Name "autoscaler")) -}}
{{- end -}}
