{{/*
Rules for node groups.
*/}}

{{/* No two groups may share an object. Argument: groups (list, with the defaults), root. */}}
{{- define "openstack-cluster.validate.nodeGroupNames" -}}
{{- $root := .root -}}
{{- $names := dict -}}
{{- range $group := .groups -}}
{{- range $max := list 63 54 -}}
{{- $name := include "openstack-cluster.name.nodeGroup" (dict "root" $root "group" $group.name "max" $max) -}}
{{- $key := printf "%d %s" $max $name -}}
{{- if hasKey $names $key -}}
{{- fail (printf "nodeGroups %q and %q would have the same objects (%s): use a different name for each group." (get $names $key) $group.name $name) -}}
{{- end -}}
{{- $_ := set $names $key $group.name -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Arguments: root, group (with the defaults). */}}
{{- define "openstack-cluster.validate.nodeGroup" -}}
{{- $group := .group -}}
{{- $where := printf "Node group %q" $group.name -}}
{{- if not $group.machineFlavor -}}
{{- fail (printf "%s has no flavor: set machineFlavor of the group or of nodeGroupDefaults." $where) -}}
{{- end -}}
{{- $version := include "openstack-cluster.machine.values.version" (dict "root" .root "values" $group) -}}
{{- $controlPlane := include "openstack-cluster.machine.values.version" (dict "root" .root "values" .root.Values.controlPlane) -}}
{{- if not (or $group.kubernetesVersion .root.Values.kubernetesVersion) -}}
{{- fail (printf "%s has no Kubernetes version: set kubernetesVersion of the group or of the whole cluster." $where) -}}
{{- /* helm lint goes on after a refusal, so that the control plane may have none here. */ -}}
{{- else if and (or .root.Values.controlPlane.kubernetesVersion .root.Values.kubernetesVersion) (gt ((semver $version).Compare (semver $controlPlane)) 0) -}}
{{- fail (printf "%s has Kubernetes %s, newer than the control plane's %s: upgrade the control plane first." $where $version $controlPlane) -}}
{{- else if and .root.Release.IsInstall (or .root.Values.controlPlane.kubernetesVersion .root.Values.kubernetesVersion) (gt (sub (semver $controlPlane).Minor (semver $version).Minor) 3) -}}
{{- fail (printf "%s has Kubernetes %s, more than three minor releases older than the control plane's %s, and Cluster API creates no machine with it: upgrade the group first." $where $version $controlPlane) -}}
{{- end -}}
{{- if hasKey (($group.kubeadmConfigSpec | default dict).joinConfiguration | default dict) "controlPlane" -}}
{{- fail (printf "%s: kubeadmConfigSpec.joinConfiguration.controlPlane is for machines of the control plane, and Cluster API creates no worker with it: remove it." $where) -}}
{{- end -}}
{{- if has $group.role (list "control-plane" "master") -}}
{{- fail (printf "%s has the role %q, which is the control plane's: use another one." $where $group.role) -}}
{{- end -}}
{{- include "openstack-cluster.validate.nodeGroup.size" (dict "where" $where "group" $group "new" .root.Release.IsInstall) -}}
{{- include "openstack-cluster.validate.nodeGroup.rollout" (dict "where" $where "group" $group) -}}
{{- include "openstack-cluster.validate.timeouts" (dict "where" $where "values" $group) -}}
{{- include "openstack-cluster.validate.seconds" (dict "root" .root "where" $where "values" $group) -}}
{{- include "openstack-cluster.validate.healthCheck" (dict "where" $where "values" $group) -}}
{{- include "openstack-cluster.validate.nodeLabels" (dict "root" .root "where" $where "values" $group) -}}
{{- include "openstack-cluster.validate.nodeAnnotations" (dict "root" .root "where" $where "values" $group) -}}
{{- include "openstack-cluster.validate.nodeTaints" (dict "where" $where "values" $group) -}}
{{- if (.root.Values.clusterApi).machineTaintPropagation -}}
{{- range $group.nodeTaints -}}
{{- if eq .key "node-role.kubernetes.io/control-plane" -}}
{{- fail (printf "%s: nodeTaints has %s, which Cluster API does not accept for workers while clusterApi.machineTaintPropagation is true: use another key." $where .key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Arguments: where (text), group, new (whether the cluster is). */}}
{{- define "openstack-cluster.validate.nodeGroup.size" -}}
{{- $group := .group -}}
{{- if include "openstack-cluster.nodeGroup.autoscales" $group -}}
{{- if or (kindIs "invalid" $group.machineCountMin) (kindIs "invalid" $group.machineCountMax) -}}
{{- fail (printf "%s has autoscale but no bounds: set machineCountMin and machineCountMax." .where) -}}
{{- end -}}
{{- if gt (int $group.machineCountMin) (int $group.machineCountMax) -}}
{{- fail (printf "%s has machineCountMin %d above machineCountMax %d: swap or change them." .where (int $group.machineCountMin) (int $group.machineCountMax)) -}}
{{- end -}}
{{- else if kindIs "invalid" $group.machineCount -}}
{{- fail (printf "%s has no number of machines: set machineCount, or autoscale with bounds." .where) -}}
{{- end -}}
{{- $capacity := $group.capacity | default dict -}}
{{- if ne (empty $capacity.cpu) (empty $capacity.memory) -}}
{{- fail (printf "%s: capacity has only one of cpu and memory, and the autoscaler needs both: set them, or none." .where) -}}
{{- end -}}
{{- if and $capacity.gpuCount (not $capacity.gpuType) -}}
{{- fail (printf "%s: capacity.gpuCount is %d, but capacity.gpuType is not set: set it, for example to nvidia.com/gpu." .where (int $capacity.gpuCount)) -}}
{{- end -}}
{{- if and .new $capacity.gpuType (kindIs "invalid" $capacity.gpuCount) -}}
{{- fail (printf "%s: capacity.gpuType is %s, but capacity.gpuCount is not set: set it, or remove the type." .where $capacity.gpuType) -}}
{{- end -}}
{{- end -}}

{{/* Arguments: where (text), group. */}}
{{- define "openstack-cluster.validate.nodeGroup.rollout" -}}
{{- $strategy := .group.rolloutStrategy -}}
{{- $rolling := $strategy.rollingUpdate -}}
{{- $surge := toString $rolling.maxSurge | trimSuffix "%" -}}
{{- $unavailable := toString $rolling.maxUnavailable | trimSuffix "%" -}}
{{- if and (eq $strategy.type "RollingUpdate") (eq $surge "0") (eq $unavailable "0") -}}
{{- fail (printf "%s: rolloutStrategy.rollingUpdate has maxSurge 0 and maxUnavailable 0, so no machine could ever be replaced: raise one of them." .where) -}}
{{- end -}}
{{- end -}}

{{/*
Rules for a key of labels, annotations and taints that the schema cannot express.
Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
Arguments: where (text), key.
*/}}
{{- define "openstack-cluster.validate.key" -}}
{{- if or (gt (len (base .key)) 63) (gt (len (dir .key)) 253) (regexMatch "([.]-|-[.]|[.][.]).*/" .key) -}}
{{- fail (printf "%s has %s, which is not a valid Kubernetes key: the name has at most 63 characters, and the prefix before the slash is a DNS name." .where .key) -}}
{{- end -}}
{{- end -}}

{{/*
A kubelet does not start with a label of a domain that is Kubernetes' own.
Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
Arguments: root, where (text), values (control plane or node group).
*/}}
{{- define "openstack-cluster.validate.nodeLabels" -}}
{{- $where := .where -}}
{{- $root := .root -}}
{{- $chart := printf "%s/" .root.Values.projectPrefix -}}
{{- $allowed := "(^|[.])(kubelet|node)[.]kubernetes[.]io/|^(beta[.])?kubernetes[.]io/(arch|os|hostname|instance-type)$|^(topology|failure-domain[.]beta)[.]kubernetes[.]io/(zone|region)$" -}}
{{- range $key, $value := .values.nodeLabels -}}
{{- include "openstack-cluster.validate.key" (dict "where" (printf "%s: nodeLabels" $where) "key" $key) -}}
{{- if and (eq $key "node-role.kubernetes.io/control-plane") (or (ne $where "controlPlane") (ne (toString $value) "")) -}}
{{- fail (printf "%s: nodeLabels has %s, by which Cluster API identifies the control plane: remove it." $where $key) -}}
{{- end -}}
{{- if include "openstack-cluster.nodeMetadata.labelIsSynced" (dict "root" $root "key" $key) -}}
{{- if or (hasPrefix "cluster.x-k8s.io/" $key) (hasPrefix $chart $key) -}}
{{- fail (printf "%s: nodeLabels has %s, by which Cluster API and this chart identify machines: use another key." $where $key) -}}
{{- end -}}
{{- else if and (regexMatch "(^|[.])(kubernetes|k8s)[.]io/" $key) (not (regexMatch $allowed $key)) -}}
{{- fail (printf "%s: nodeLabels has %s, with which the kubelet does not start: use another domain, node-role.kubernetes.io or node.cluster.x-k8s.io." $where $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Arguments: root, where (text), values (a node group). */}}
{{- define "openstack-cluster.validate.nodeAnnotations" -}}
{{- $where := .where -}}
{{- $root := .root -}}
{{- range $key, $_ := .values.nodeAnnotations -}}
{{- include "openstack-cluster.validate.key" (dict "where" (printf "%s: nodeAnnotations" $where) "key" $key) -}}
{{- if not (include "openstack-cluster.nodeMetadata.annotationIsSynced" (dict "root" $root "key" $key)) -}}
{{- fail (printf "%s: nodeAnnotations has %s, which Cluster API does not sync to Nodes: use a key below node.cluster.x-k8s.io, or start Cluster API with --additional-sync-machine-annotations and add it to clusterApi.additionalSyncMachineAnnotations." $where $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Arguments: where (text), values (control plane or node group). */}}
{{- define "openstack-cluster.validate.nodeTaints" -}}
{{- $where := .where -}}
{{- $seen := dict -}}
{{- range .values.nodeTaints -}}
{{- include "openstack-cluster.validate.key" (dict "where" (printf "%s: nodeTaints" $where) "key" .key) -}}
{{- if regexMatch "^node[.](kubernetes[.]io|cloudprovider[.]kubernetes[.]io|cluster[.]x-k8s[.]io)/" .key -}}
{{- fail (printf "%s: nodeTaints has %s, which Kubernetes or Cluster API sets and removes: use another key." $where .key) -}}
{{- end -}}
{{- $taint := printf "%s:%s" .key .effect -}}
{{- if hasKey $seen $taint -}}
{{- fail (printf "%s: nodeTaints has %s twice, and a Node can have it once: keep one of them." $where $taint) -}}
{{- end -}}
{{- $_ := set $seen $taint true -}}
{{- end -}}
{{- end -}}

{{/* Flags that the autoscaler gets from the chart. Argument: root. */}}
{{- define "openstack-cluster.validate.autoscaler" -}}
{{- range $flag, $value := pick (.Values.autoscaler.extraArgs | default dict)
      "cloud-provider" "kubeconfig" "clusterapi-cloud-config-authoritative" "node-group-auto-discovery" -}}
{{- fail (printf "autoscaler.extraArgs sets %s, which the chart sets to restrict it to this cluster: remove it." $flag) -}}
{{- end -}}
{{- end -}}

{{/* Features that the management cluster's Cluster API lacks. Argument: root. */}}
{{- define "openstack-cluster.validate.clusterApi" -}}
{{- $core := include "openstack-cluster.api.core" . -}}
{{- $release := (.Values.apiVersions).clusterApi -}}
{{- range $key, $expressions := pick (.Values.clusterApi | default dict) "additionalSyncMachineLabels" "additionalSyncMachineAnnotations" -}}
{{- range $expressions -}}
{{- if not (regexMatch (printf "|%s" .) "") -}}
{{- fail (printf "clusterApi.%s: %q is not a regular expression, and Cluster API does not start with it: use the value of its flag." $key .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (eq $core "v1beta2") (lt (include "openstack-cluster.clusterApi.minor" . | int) 11) -}}
{{- fail (printf "apiVersions.core is v1beta2, which Cluster API %s (apiVersions.clusterApi) does not serve: use v1beta1." $release) -}}
{{- end -}}
{{- if and (.Values.clusterApi).machineTaintPropagation (not (include "openstack-cluster.clusterApi.machineTaintsAndConditions" (dict "root" . "core" $core))) -}}
{{- fail (printf "clusterApi.machineTaintPropagation is true, but Machines have taints from Cluster API 1.12 on, in core v1beta1 from 1.13 on, and here are core %s and apiVersions.clusterApi %q: set it to false, or set the installed release." $core $release) -}}
{{- end -}}
{{- end -}}
