{{/*
Annotations of a MachineDeployment that the cluster autoscaler reads: bounds, its own options for this group, and the
shape of the group's Nodes, which an empty group has no Node to tell.
Source: https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/cloudprovider/clusterapi/README.md
Arguments: root, group.
*/}}
{{- define "openstack-cluster.nodeGroup.autoscaling" -}}
cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size: {{ .group.machineCountMin | int | quote }}
cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size: {{ .group.machineCountMax | int | quote }}
{{- range $option, $value := .group.autoscalingOptions }}
{{- if not (kindIs "invalid" $value) }}
cluster.x-k8s.io/autoscaling-options-{{ lower $option }}: {{ include "openstack-cluster.text" $value | quote }}
{{- end }}
{{- end }}
{{- range $resource, $annotation := dict
      "cpu" "cpu" "memory" "memory" "ephemeralDisk" "ephemeral-disk" "maxPods" "maxPods" "gpuType" "gpu-type" "gpuCount" "gpu-count" }}
{{- with get ($.group.capacity | default dict) $resource }}
capacity.cluster-autoscaler.kubernetes.io/{{ $annotation }}: {{ include "openstack-cluster.text" . | quote }}
{{- end }}
{{- end }}
capacity.cluster-autoscaler.kubernetes.io/labels: {{ include "openstack-cluster.nodeGroup.autoscaling.labels" . | quote }}
{{- with include "openstack-cluster.nodeGroup.autoscaling.taints" . }}
capacity.cluster-autoscaler.kubernetes.io/taints: {{ . | quote }}
{{- end }}
{{- end -}}

{{/*
key=value,key=value. The zone is what the cloud controller will say, which puts hyphens in place of what a label
cannot have; one of which nothing is left, or whose cut end is no label, is left out.
Source: https://github.com/kubernetes/cloud-provider-openstack/blob/master/pkg/util/util.go (SanitizeLabel)
Arguments: root, group.
*/}}
{{- define "openstack-cluster.nodeGroup.autoscaling.labels" -}}
{{- $pairs := list -}}
{{- with .group.failureDomain -}}
{{- $zone := regexReplaceAll "[^-a-zA-Z0-9_.]+" . "-" | trimAll "-_." | trunc 63 -}}
{{- if regexMatch "^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$" $zone -}}
{{- $pairs = list (printf "topology.kubernetes.io/zone=%s" $zone) -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := include "openstack-cluster.nodeGroup.nodeLabels" . | fromJson -}}
{{- $pairs = append $pairs (printf "%s=%s" $key (include "openstack-cluster.text" $value)) -}}
{{- end -}}
{{- join "," $pairs -}}
{{- end -}}

{{/*
key=value:effect,key:effect. The kubelet takes the operator's list in place of nodeTaints; what Cluster API propagates
from the Machine comes beside it. Arguments: root, group.
*/}}
{{- define "openstack-cluster.nodeGroup.autoscaling.taints" -}}
{{- $own := (((.group.kubeadmConfigSpec).joinConfiguration).nodeRegistration).taints -}}
{{- $given := .group.nodeTaints | default list -}}
{{- if not (kindIs "invalid" $own) -}}
{{- $given = concat ((.root.Values.clusterApi).machineTaintPropagation | empty | ternary list $given) $own -}}
{{- end -}}
{{- $taints := list -}}
{{- range $given -}}
{{- $pair := .value | empty | ternary .key (printf "%s=%s" .key .value) -}}
{{- $taints = append $taints (printf "%s:%s" $pair .effect) -}}
{{- end -}}
{{- $taints | uniq | join "," -}}
{{- end -}}
