{{/* The bootstrap template of a node group. Arguments: root, group, core. */}}
{{- define "openstack-cluster.nodeGroup.bootstrapTemplate.spec" -}}
template:
  spec: {{- include "openstack-cluster.kubeadm.configSpec.nodeGroup" . | nindent 4 }}
{{- end -}}
