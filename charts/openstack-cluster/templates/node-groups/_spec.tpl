{{/* The bootstrap template of a node group. Arguments: root, group, core. */}}
{{- define "openstack-cluster.nodeGroup.bootstrapTemplate.spec" -}}
template:
  spec: {{- include "openstack-cluster.nodeGroup.kubeadmConfigSpec" . | nindent 4 }}
{{- end -}}

{{/* Named after the v1beta2 shape whatever is rendered: another API version is no other machine. */}}
{{- define "openstack-cluster.nodeGroup.bootstrapTemplate.name" -}}
{{- include "openstack-cluster.name.template" (dict
      "base" (include "openstack-cluster.name.nodeGroup" (dict "root" .root "group" .group.name "max" 54))
      "spec" (include "openstack-cluster.nodeGroup.bootstrapTemplate.spec"
        (dict "root" .root "group" .group "core" "v1beta2"))) -}}
{{- end -}}
