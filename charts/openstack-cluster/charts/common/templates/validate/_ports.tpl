{{/*
Rules for machines' ports: values of which the OpenStack provider or Neutron creates no port.
Source: https://github.com/kubernetes-sigs/cluster-api-provider-openstack/blob/main/pkg/cloud/services/networking/port.go
*/}}

{{/* Arguments: root, where (text), values (control plane, or node group with the defaults). */}}
{{- define "openstack-cluster.validate.ports" -}}
{{- $root := .root -}}
{{- $where := .where -}}
{{- $networking := .values.machineNetworking | default dict -}}
{{- $names := dict -}}
{{- range $place, $port := $networking.ports -}}
{{- $what := printf "%s: machineNetworking.ports[%d]" $where $place -}}
{{- if and $port.securityGroups $port.securityGroupFilters -}}
{{- fail (printf "%s has securityGroups and securityGroupFilters, which is its old name: set all of them in securityGroups." $what) -}}
{{- end -}}
{{- if and $port.hostID $port.hostId -}}
{{- fail (printf "%s has hostID and hostId, which is its old name: keep hostID." $what) -}}
{{- end -}}
{{- if and $port.disablePortSecurity (or $port.securityGroups $port.securityGroupFilters) -}}
{{- fail (printf "%s has disablePortSecurity, which does not allow security groups: remove one of them." $what) -}}
{{- end -}}
{{- /* Provider 0.12 does look at them; a cluster that lives with this must not be kept from upgrades. */ -}}
{{- if and $root.Release.IsInstall $port.fixedIPs (not $port.network) -}}
{{- fail (printf "%s has fixedIPs but no network, and newer OpenStack providers then ignore them: set the network." $what) -}}
{{- end -}}
{{- $suffix := hasKey $port "nameSuffix" | ternary $port.nameSuffix (toString $place) -}}
{{- $name := toJson (list $suffix $port.network) -}}
{{- if hasKey $names $name -}}
{{- fail (printf "%s and ports[%d] have the name %q on one network, and the OpenStack provider would use one port twice: set different values of nameSuffix; the default is the port's number." $what (get $names $name) $suffix) -}}
{{- end -}}
{{- $_ := set $names $name $place -}}
{{- end -}}
{{- if $root.Values.clusterNetworking.disablePortSecurity -}}
{{- include "openstack-cluster.validate.ports.withoutSecurity" . -}}
{{- end -}}
{{- end -}}

{{/* A port on the cluster's network inherits the network's port security, unless it sets its own. Arguments: as above. */}}
{{- define "openstack-cluster.validate.ports.withoutSecurity" -}}
{{- $where := .where -}}
{{- $networking := .values.machineNetworking | default dict -}}
{{- range $place, $port := $networking.ports | default (list dict) -}}
{{- if not (or $port.network (hasKey $port "disablePortSecurity")) -}}
{{- range $key := list "securityGroups" "securityGroupFilters" "allowedAddressPairs" -}}
{{- if get $port $key -}}
{{- fail (printf "%s: machineNetworking.ports[%d] has %s, but clusterNetworking.disablePortSecurity allows none on the cluster's network: remove one of them." $where $place $key) -}}
{{- end -}}
{{- end -}}
{{- if $networking.securityGroups -}}
{{- fail (printf "%s: machineNetworking.securityGroups cannot be on the cluster's network, because clusterNetworking.disablePortSecurity is true: remove one of them." $where) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Load balancer and floating IP lead to a port on the cluster's network. One that the provider makes has no id yet, and a
name that begins as below. Argument: root.
*/}}
{{- define "openstack-cluster.validate.ports.reached" -}}
{{- $ports := (.Values.controlPlane.machineNetworking).ports -}}
{{- $elsewhere := 0 -}}
{{- range $ports -}}
{{- $network := .network | default dict -}}
{{- $name := ($network.filter | default $network).name | default "k8s-clusterapi-cluster-" -}}
{{- if or $network.id (not (hasPrefix "k8s-clusterapi-cluster-" $name)) -}}
{{- $elsewhere = add1 $elsewhere -}}
{{- end -}}
{{- end -}}
{{- if and $ports (eq (len $ports) (int $elsewhere)) (or .Values.apiServer.enableLoadBalancer .Values.apiServer.associateFloatingIP) (not (include "openstack-cluster.networking.existingNetwork" .)) -}}
{{- fail "controlPlane.machineNetworking.ports are all on other networks, so the API would be unreachable on the cluster's network: add {}, which is a port there." -}}
{{- end -}}
{{- end -}}
