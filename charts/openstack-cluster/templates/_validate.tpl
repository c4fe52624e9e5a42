{{/* Rules for the parts of validate.yaml that come more than once. */}}

{{/* Arguments: root, group (with the defaults). */}}
{{- define "openstack-cluster.validate.nodeGroup" -}}
{{- $group := .group -}}
{{- $where := printf "Node group %q" $group.name -}}
{{- if not $group.machineFlavor -}}
{{- fail (printf "%s has no flavor: set machineFlavor of the group or of nodeGroupDefaults." $where) -}}
{{- end -}}
{{- if not (or $group.machineImageId .root.Values.machineImageId .root.Values.machineImage) -}}
{{- fail (printf "%s has no image: set machineImageId of the group or of the whole cluster." $where) -}}
{{- end -}}
{{- if not (or $group.kubernetesVersion .root.Values.kubernetesVersion) -}}
{{- fail (printf "%s has no Kubernetes version: set kubernetesVersion of the group or of the whole cluster." $where) -}}
{{- end -}}
{{- if include "openstack-cluster.nodeGroup.autoscales" $group -}}
{{- if not (and (hasKey $group "machineCountMin") (hasKey $group "machineCountMax")) -}}
{{- fail (printf "%s has autoscale but no bounds: set machineCountMin and machineCountMax." $where) -}}
{{- end -}}
{{- if gt (int $group.machineCountMin) (int $group.machineCountMax) -}}
{{- fail (printf "%s has machineCountMin %d above machineCountMax %d: swap or change them." $where (int $group.machineCountMin) (int $group.machineCountMax)) -}}
{{- end -}}
{{- else if not (hasKey $group "machineCount") -}}
{{- fail (printf "%s has no number of machines: set machineCount, or autoscale with its bounds." $where) -}}
{{- end -}}
{{- $version := include "openstack-cluster.version" (dict "root" .root "from" $group) -}}
{{- $controlPlane := include "openstack-cluster.version" (dict "root" .root "from" .root.Values.controlPlane) -}}
{{- if semverCompare (printf ">%s" $controlPlane) $version -}}
{{- fail (printf "%s has Kubernetes %s, newer than the control plane's %s: upgrade the control plane first." $where $version $controlPlane) -}}
{{- end -}}
{{- include "openstack-cluster.validate.timeouts" (dict "where" $where "from" $group) -}}
{{- end -}}

{{/* Cluster API takes 0 for "for ever". Arguments: where (text), from (control plane or node group). */}}
{{- define "openstack-cluster.validate.timeouts" -}}
{{- $where := .where -}}
{{- $from := .from -}}
{{- range $key := list "nodeDrainTimeout" "nodeVolumeDetachTimeout" "nodeDeletionTimeout" -}}
{{- if eq (include "openstack-cluster.seconds" (get $from $key)) "0" -}}
{{- fail (printf "%s: %s is %s, which would wait for ever: give a time." $where $key (get $from $key)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
