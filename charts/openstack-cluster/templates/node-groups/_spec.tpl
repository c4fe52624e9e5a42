{{/* The machine template of a node group. Arguments: root, group. */}}
{{- define "openstack-cluster.nodeGroup.machineTemplate.spec" -}}
{{- $metadata := include "openstack-cluster.overlay" (dict "below" .root.Values.machineMetadata
      "above" .group.machineMetadata) | fromJson -}}
template:
  spec: {{- include "openstack-cluster.machine" (dict "root" .root "from" .group "metadata" $metadata) | nindent 4 }}
{{- end -}}

{{- define "openstack-cluster.nodeGroup.machineTemplate.name" -}}
{{- include "openstack-cluster.name.template" (dict
      "base" (include "openstack-cluster.name.nodeGroup" (dict "root" .root "group" .group.name "max" 54))
      "spec" (include "openstack-cluster.nodeGroup.machineTemplate.spec" .)) -}}
{{- end -}}

{{/* The bootstrap template of a node group. Arguments: root, group, core. */}}
{{- define "openstack-cluster.nodeGroup.bootstrapTemplate.spec" -}}
{{- $own := dict (printf "%s/node-group" (include "openstack-cluster.prefix" .root)) .group.name -}}
{{- $labels := include "openstack-cluster.overlay" (dict "below" $own "above" .group.nodeLabels) | fromJson -}}
template:
  spec:
    joinConfiguration:
      nodeRegistration: {{- include "openstack-cluster.kubeadm.nodeRegistration" (dict "core" .core "labels" $labels) | nindent 8 }}
{{- end -}}

{{/* Named after the v1beta2 shape whatever is rendered: another API version is no other machine. */}}
{{- define "openstack-cluster.nodeGroup.bootstrapTemplate.name" -}}
{{- include "openstack-cluster.name.template" (dict
      "base" (include "openstack-cluster.name.nodeGroup" (dict "root" .root "group" .group.name "max" 54))
      "spec" (include "openstack-cluster.nodeGroup.bootstrapTemplate.spec"
        (dict "root" .root "group" .group "core" "v1beta2"))) -}}
{{- end -}}

{{/* How a node group changes. Arguments: core, strategy (rolloutStrategy of the group). */}}
{{- define "openstack-cluster.nodeGroup.rollout" -}}
{{- $rolling := .strategy.rollingUpdate -}}
{{- if eq .core "v1beta2" -}}
rollout:
  strategy:
    type: {{ .strategy.type }}
    {{- if eq .strategy.type "RollingUpdate" }}
    rollingUpdate: {{- omit $rolling "deletePolicy" | toYaml | nindent 6 }}
    {{- end }}
{{- with $rolling.deletePolicy }}
deletion:
  order: {{ . }}
{{- end }}
{{- else -}}
strategy:
  type: {{ .strategy.type }}
  {{- if eq .strategy.type "RollingUpdate" }}
  rollingUpdate: {{- toYaml $rolling | nindent 4 }}
  {{- else if $rolling.deletePolicy }}
  rollingUpdate:
    deletePolicy: {{ $rolling.deletePolicy }}
  {{- end }}
{{- end -}}
{{- end -}}
