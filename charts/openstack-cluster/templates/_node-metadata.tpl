{{/*
What a Node carries, and who puts it there. Cluster API keeps a Machine's labels and annotations of some domains
on its Node as long as both live, so a change is made in place. Anything else the kubelet gives its Node when it
registers, and a change replaces the machines.
Source: https://cluster-api.sigs.k8s.io/reference/api/metadata-propagation
*/}}

{{/* A regular expression for the labels that Cluster API keeps on the Nodes. Argument: root. */}}
{{- define "openstack-cluster.nodeLabels.kept" -}}
^(node-role\.kubernetes\.io|([^/]+\.)?(node-restriction\.kubernetes\.io|node\.cluster\.x-k8s\.io))/
{{- range (.Values.clusterApi).additionalSyncMachineLabels }}|({{ . }}){{ end -}}
{{- end -}}

{{/* The same for annotations. Argument: root. */}}
{{- define "openstack-cluster.nodeAnnotations.kept" -}}
^([^/]+\.)?node\.cluster\.x-k8s\.io/
{{- range (.Values.clusterApi).additionalSyncMachineAnnotations }}|({{ . }}){{ end -}}
{{- end -}}

{{/* Labels that stand on the Machine, because Cluster API keeps them on the Node, as JSON. Arguments: root, labels. */}}
{{- define "openstack-cluster.nodeLabels.machine" -}}
{{- $kept := include "openstack-cluster.nodeLabels.kept" .root -}}
{{- $labels := dict -}}
{{- range $key, $value := .labels -}}
{{- if regexMatch $kept $key -}}
{{- $_ := set $labels $key $value -}}
{{- end -}}
{{- end -}}
{{ toJson $labels }}
{{- end -}}

{{/* The other labels, which the kubelet gives its Node, as JSON. Arguments: root, labels. */}}
{{- define "openstack-cluster.nodeLabels.kubelet" -}}
{{- $kept := include "openstack-cluster.nodeLabels.kept" .root -}}
{{- $labels := dict -}}
{{- range $key, $value := .labels -}}
{{- if not (regexMatch $kept $key) -}}
{{- $_ := set $labels $key $value -}}
{{- end -}}
{{- end -}}
{{ toJson $labels }}
{{- end -}}

{{/* All labels of a group's Nodes as JSON: its name, its role, and nodeLabels over them. Arguments: root, group. */}}
{{- define "openstack-cluster.nodeGroup.nodeLabels" -}}
{{- $own := dict
      (printf "%s/node-group" (include "openstack-cluster.prefix" .root)) .group.name
      "node.cluster.x-k8s.io/node-group" .group.name -}}
{{- with .group.role -}}
{{- $_ := set $own (printf "node-role.kubernetes.io/%s" .) "" -}}
{{- end -}}
{{- include "openstack-cluster.overlay" (dict "below" $own "above" .group.nodeLabels) -}}
{{- end -}}

{{/* Labels of a group's Machines that Cluster API keeps on its Nodes. Arguments: root, group. */}}
{{- define "openstack-cluster.nodeGroup.machineLabels" -}}
{{- $labels := include "openstack-cluster.nodeGroup.nodeLabels" . | fromJson -}}
{{- $machine := include "openstack-cluster.nodeLabels.machine" (dict "root" .root "labels" $labels) | fromJson -}}
{{- /* Machines have this one anyway, to be selected by. */ -}}
{{- omit $machine (printf "%s/node-group" (include "openstack-cluster.prefix" .root)) | toYaml -}}
{{- end -}}

{{/* Taints as Kubernetes has them. Arguments: taints, more (what every one of them has besides, optional). */}}
{{- define "openstack-cluster.nodeTaints" -}}
{{- $more := .more -}}
{{- range .taints }}
- key: {{ .key | quote }}
  {{- with .value }}
  value: {{ . | quote }}
  {{- end }}
  effect: {{ .effect }}
  {{- with $more }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Taints that the kubelet gives its Node; none if Cluster API does it. Arguments: root, from (a node group). */}}
{{- define "openstack-cluster.nodeTaints.kubelet" -}}
{{- if not (.root.Values.clusterApi).machineTaintPropagation -}}
{{- include "openstack-cluster.nodeTaints" (dict "taints" .from.nodeTaints) | trim -}}
{{- end -}}
{{- end -}}

{{/* Taints that Cluster API keeps on the Node as long as the Machine has them. Arguments: root, from (a node group). */}}
{{- define "openstack-cluster.nodeTaints.machine" -}}
{{- if (.root.Values.clusterApi).machineTaintPropagation -}}
{{- include "openstack-cluster.nodeTaints" (dict "taints" .from.nodeTaints "more" (dict "propagation" "Always")) | trim -}}
{{- end -}}
{{- end -}}
