{{/*
What a Node carries, and who puts it there. Cluster API keeps a Machine's labels and annotations of some domains
on its Node as long as both live, so a change is made in place. Anything else the kubelet gives its Node when it
registers, and a change replaces the machines.
Source: https://cluster-api.sigs.k8s.io/reference/api/metadata-propagation
*/}}

{{/*
Text "true" if Cluster API keeps a label of a Machine on its Node: by the domain of its key, or because it was told to.
Arguments: root, key.
*/}}
{{- define "openstack-cluster.nodeLabels.kept" -}}
{{- $key := .key -}}
{{- $domain := dir $key -}}
{{- $kept := eq $domain "node-role.kubernetes.io" "node-restriction.kubernetes.io" "node.cluster.x-k8s.io" -}}
{{- $kept = or $kept (hasSuffix ".node-restriction.kubernetes.io" $domain) (hasSuffix ".node.cluster.x-k8s.io" $domain) -}}
{{- range (.root.Values.clusterApi).additionalSyncMachineLabels -}}
{{- $kept = or $kept (regexMatch . $key) -}}
{{- end -}}
{{- if $kept -}}true{{- end -}}
{{- end -}}

{{/* The same for annotations. Arguments: root, key. */}}
{{- define "openstack-cluster.nodeAnnotations.kept" -}}
{{- $key := .key -}}
{{- $domain := dir $key -}}
{{- $kept := or (eq $domain "node.cluster.x-k8s.io") (hasSuffix ".node.cluster.x-k8s.io" $domain) -}}
{{- range (.root.Values.clusterApi).additionalSyncMachineAnnotations -}}
{{- $kept = or $kept (regexMatch . $key) -}}
{{- end -}}
{{- if $kept -}}true{{- end -}}
{{- end -}}

{{/* Labels that stand on the Machine, because Cluster API keeps them on the Node, as JSON. Arguments: root, labels. */}}
{{- define "openstack-cluster.nodeLabels.machine" -}}
{{- $root := .root -}}
{{- $labels := dict -}}
{{- range $key, $value := .labels -}}
{{- if include "openstack-cluster.nodeLabels.kept" (dict "root" $root "key" $key) -}}
{{- $_ := set $labels $key (include "openstack-cluster.text" $value) -}}
{{- end -}}
{{- end -}}
{{ toJson $labels }}
{{- end -}}

{{/* The other labels, which the kubelet gives its Node, as JSON. Arguments: root, labels. */}}
{{- define "openstack-cluster.nodeLabels.kubelet" -}}
{{- $root := .root -}}
{{- $labels := dict -}}
{{- range $key, $value := .labels -}}
{{- if not (include "openstack-cluster.nodeLabels.kept" (dict "root" $root "key" $key)) -}}
{{- $_ := set $labels $key (include "openstack-cluster.text" $value) -}}
{{- end -}}
{{- end -}}
{{ toJson $labels }}
{{- end -}}

{{/* All labels of a group's Nodes as JSON: its name, its role, and nodeLabels over them. Arguments: root, group. */}}
{{- define "openstack-cluster.nodeGroup.nodeLabels" -}}
{{- $own := dict
      (printf "%s/node-group" .root.Values.projectPrefix) .group.name
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
{{- range $key, $value := omit $machine (printf "%s/node-group" .root.Values.projectPrefix) }}
{{ $key | quote }}: {{ $value | quote }}
{{- end }}
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
