{{/*
Labels, annotations and taints of a Node. Cluster API syncs a Machine's labels and annotations of some domains to its
Node as long as both exist, so a change is made in place. The kubelet sets all others when it registers the Node, and
a change replaces the machines.
Source: https://cluster-api.sigs.k8s.io/reference/api/metadata-propagation
*/}}

{{/*
Text "true" if Cluster API syncs a label of a Machine to its Node: by the domain of its key, or by a flag.
Arguments: root, key.
*/}}
{{- define "openstack-cluster.nodeMetadata.labelIsSynced" -}}
{{- $key := .key -}}
{{- $domain := dir $key -}}
{{- $synced := eq $domain "node-role.kubernetes.io" "node-restriction.kubernetes.io" "node.cluster.x-k8s.io" -}}
{{- $synced = or $synced (hasSuffix ".node-restriction.kubernetes.io" $domain) (hasSuffix ".node.cluster.x-k8s.io" $domain) -}}
{{- range (.root.Values.clusterApi).additionalSyncMachineLabels -}}
{{- $synced = or $synced (regexMatch . $key) -}}
{{- end -}}
{{- if $synced -}}true{{- end -}}
{{- end -}}

{{/* The same for annotations. Arguments: root, key. */}}
{{- define "openstack-cluster.nodeMetadata.annotationIsSynced" -}}
{{- $key := .key -}}
{{- $domain := dir $key -}}
{{- $synced := or (eq $domain "node.cluster.x-k8s.io") (hasSuffix ".node.cluster.x-k8s.io" $domain) -}}
{{- range (.root.Values.clusterApi).additionalSyncMachineAnnotations -}}
{{- $synced = or $synced (regexMatch . $key) -}}
{{- end -}}
{{- if $synced -}}true{{- end -}}
{{- end -}}

{{/* Labels of the Machine, which Cluster API syncs to the Node, as JSON. Arguments: root, labels. */}}
{{- define "openstack-cluster.nodeMetadata.labels.machine" -}}
{{- $root := .root -}}
{{- $labels := dict -}}
{{- range $key, $value := .labels -}}
{{- if include "openstack-cluster.nodeMetadata.labelIsSynced" (dict "root" $root "key" $key) -}}
{{- $_ := set $labels $key (include "openstack-cluster.text" $value) -}}
{{- end -}}
{{- end -}}
{{ toJson $labels }}
{{- end -}}

{{/* The other labels, which the kubelet gives its Node, as JSON. Arguments: root, labels. */}}
{{- define "openstack-cluster.nodeMetadata.labels.kubelet" -}}
{{- $root := .root -}}
{{- $labels := dict -}}
{{- range $key, $value := .labels -}}
{{- if not (include "openstack-cluster.nodeMetadata.labelIsSynced" (dict "root" $root "key" $key)) -}}
{{- $_ := set $labels $key (include "openstack-cluster.text" $value) -}}
{{- end -}}
{{- end -}}
{{ toJson $labels }}
{{- end -}}

{{/* Taints as Kubernetes has them. Arguments: taints, fields (more fields of each, optional). */}}
{{- define "openstack-cluster.nodeMetadata.taints" -}}
{{- $fields := .fields -}}
{{- range .taints }}
- key: {{ .key | quote }}
  {{- with .value }}
  value: {{ . | quote }}
  {{- end }}
  effect: {{ .effect }}
  {{- with $fields }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Taints that the kubelet sets; none if Cluster API propagates them. Arguments: root, values (a node group). */}}
{{- define "openstack-cluster.nodeMetadata.taints.kubelet" -}}
{{- if not (.root.Values.clusterApi).machineTaintPropagation -}}
{{- include "openstack-cluster.nodeMetadata.taints" (dict "taints" .values.nodeTaints) | trim -}}
{{- end -}}
{{- end -}}

{{/* Taints that Cluster API propagates from the Machine to the Node. Arguments: root, values (a node group). */}}
{{- define "openstack-cluster.nodeMetadata.taints.machine" -}}
{{- if (.root.Values.clusterApi).machineTaintPropagation -}}
{{- include "openstack-cluster.nodeMetadata.taints" (dict "taints" .values.nodeTaints "fields" (dict "propagation" "Always")) | trim -}}
{{- end -}}
{{- end -}}
