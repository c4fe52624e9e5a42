{{/* Rules for the machines' networks and for those of pods and services. */}}

{{/* Argument: root. */}}
{{- define "openstack-cluster.validate.networking" -}}
{{- $networking := .Values.clusterNetworking -}}
{{- $internal := $networking.internalNetwork -}}
{{- if and $networking.externalNetworkId $networking.externalNetworkFilter -}}
{{- fail "clusterNetworking.externalNetworkId and clusterNetworking.externalNetworkFilter both select the external network: remove one of them." -}}
{{- end -}}
{{- if and $networking.disableExternalNetwork (or $networking.externalNetworkId $networking.externalNetworkFilter) -}}
{{- fail "clusterNetworking.disableExternalNetwork is true, so externalNetworkId and externalNetworkFilter would not be used: remove them, or set it to false." -}}
{{- end -}}
{{- if and $networking.externalRouterIPs (or $networking.routerFilter $networking.disableExternalNetwork) -}}
{{- fail "clusterNetworking.externalRouterIPs are for a router that the OpenStack provider creates: remove routerFilter and disableExternalNetwork, or these addresses." -}}
{{- end -}}
{{- if and $internal.subnetFilter $internal.subnetFilters -}}
{{- fail "clusterNetworking.internalNetwork.subnetFilter and subnetFilters both select subnets: set all of them in subnetFilters." -}}
{{- end -}}
{{- if include "openstack-cluster.networking.existingNetwork" . -}}
{{- range $key := list "externalRouterIPs" "networkMTU" "disablePortSecurity" -}}
{{- if get $networking $key -}}
{{- fail (printf "clusterNetworking.%s is for a network that the OpenStack provider creates, and internalNetwork selects an existing one: remove one of them." $key) -}}
{{- end -}}
{{- end -}}
{{- if $internal.allocationPools -}}
{{- fail "clusterNetworking.internalNetwork.allocationPools is for a subnet that the OpenStack provider creates, and internalNetwork selects an existing one: remove one of them." -}}
{{- end -}}
{{- else if not $internal.nodeCidr -}}
{{- fail "clusterNetworking.internalNetwork.nodeCidr is not set, and internalNetwork selects no existing network: set the CIDR of the new subnet, or select a network or subnets." -}}
{{- else if contains ":" $internal.nodeCidr -}}
{{- fail (printf "clusterNetworking.internalNetwork.nodeCidr %s is IPv6, and the OpenStack provider creates IPv4 subnets only: create the subnets first and select them in subnetFilters." $internal.nodeCidr) -}}
{{- end -}}
{{- if and .Release.IsInstall $networking.routerFilter $networking.disableExternalNetwork (not (include "openstack-cluster.networking.existingNetwork" .)) -}}
{{- fail "clusterNetworking.routerFilter would not be used, because the OpenStack provider connects a router only with an external network: set disableExternalNetwork to false, or use an existing network with a router." -}}
{{- end -}}
{{- if and $networking.disablePortSecurity $networking.manageSecurityGroups -}}
{{- fail "clusterNetworking.disablePortSecurity leaves no security groups: set clusterNetworking.manageSecurityGroups to false." -}}
{{- end -}}
{{- include "openstack-cluster.validate.rules" . -}}
{{- end -}}

{{/* The first of the networks decides what pods and services prefer, so it must be the same. Argument: root. */}}
{{- define "openstack-cluster.validate.addresses" -}}
{{- $pods := .Values.kubeNetwork.pods.cidrBlocks -}}
{{- $services := .Values.kubeNetwork.services.cidrBlocks -}}
{{- range $kind, $blocks := dict "pods" $pods "services" $services -}}
{{- if or (gt (len $blocks) 2) (and (eq (len $blocks) 2) (eq (contains ":" (first $blocks)) (contains ":" (last $blocks)))) -}}
{{- fail (printf "kubeNetwork.%s.cidrBlocks is %s: set one network, or one of IPv4 and one of IPv6." $kind (join ", " $blocks)) -}}
{{- end -}}
{{- end -}}
{{- /* kubeadm counts 2 to the power of 20 addresses of services at most. */ -}}
{{- range $services -}}
{{- $shortest := contains ":" . | ternary 108 12 -}}
{{- if lt (splitList "/" . | last | atoi) $shortest -}}
{{- fail (printf "kubeNetwork.services.cidrBlocks has %s, which is too large for kubeadm: use a network of /%d or smaller." . $shortest) -}}
{{- end -}}
{{- end -}}
{{- if ne (contains ":" (first $pods)) (contains ":" (first $services)) -}}
{{- fail (printf "kubeNetwork.pods.cidrBlocks begins with %s and kubeNetwork.services.cidrBlocks with %s: use the same IP version first in both." (first $pods) (first $services)) -}}
{{- end -}}
{{- $named := list -}}
{{- range $pods -}}
{{- $named = append $named (list "kubeNetwork.pods.cidrBlocks" .) -}}
{{- end -}}
{{- range $services -}}
{{- $named = append $named (list "kubeNetwork.services.cidrBlocks" .) -}}
{{- end -}}
{{- if not (include "openstack-cluster.networking.existingNetwork" .) -}}
{{- $named = append $named (list "clusterNetworking.internalNetwork.nodeCidr" .Values.clusterNetworking.internalNetwork.nodeCidr) -}}
{{- end -}}
{{- $before := list -}}
{{- range $entry := $named -}}
{{- include "openstack-cluster.validate.noHost" (dict "where" (first $entry) "network" (last $entry)) -}}
{{- if not (contains ":" (last $entry)) -}}
{{- $network := include "openstack-cluster.validate.network" (last $entry) -}}
{{- range $other := $before -}}
{{- if or (hasPrefix $network (last $other)) (hasPrefix (last $other) $network) -}}
{{- fail (printf "%s %s and %s %s overlap: use separate addresses." (first $other) (index $other 1) (first $entry) (last $entry)) -}}
{{- end -}}
{{- end -}}
{{- $before = append $before (append $entry $network) -}}
{{- end -}}
{{- end -}}
{{- include "openstack-cluster.validate.sizes" . -}}
{{- include "openstack-cluster.validate.managedSubnet" . -}}
{{- range .Values.apiServer.allowedCIDRs | default .Values.apiServer.allowedCidrs -}}
{{- include "openstack-cluster.validate.noHost" (dict "where" "apiServer.allowedCIDRs" "network" .) -}}
{{- end -}}
{{- $networking := .Values.clusterNetworking -}}
{{- range $key := list "allNodesSecurityGroupRules" "controlPlaneNodesSecurityGroupRules" "workerNodesSecurityGroupRules" -}}
{{- range get $networking $key | default list -}}
{{- if .remoteIPPrefix -}}
{{- include "openstack-cluster.validate.noHost" (dict "network" .remoteIPPrefix
      "where" (printf "clusterNetworking.%s: remoteIPPrefix of the rule %q" $key .name)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Addresses of the subnet that the OpenStack provider makes. Argument: root. */}}
{{- define "openstack-cluster.validate.managedSubnet" -}}
{{- $internal := .Values.clusterNetworking.internalNetwork -}}
{{- $server := .Values.apiServer -}}
{{- if not (include "openstack-cluster.networking.existingNetwork" .) -}}
{{- $network := include "openstack-cluster.validate.network" $internal.nodeCidr -}}
{{- $inside := list -}}
{{- if and $server.fixedIP $server.enableLoadBalancer (not $server.loadBalancerNetworkFilter) -}}
{{- $inside = append $inside (list "apiServer.fixedIP" $server.fixedIP) -}}
{{- end -}}
{{- range $internal.allocationPools -}}
{{- $where := "clusterNetworking.internalNetwork.allocationPools: " -}}
{{- $inside = concat $inside (list (list (print $where "start") .start) (list (print $where "end") .end)) -}}
{{- end -}}
{{- range $internal.dnsNameservers | default .Values.clusterNetworking.dnsNameservers -}}
{{- if not (regexMatch "^[0-9.]+$|:" .) -}}
{{- fail (printf "clusterNetworking.internalNetwork.dnsNameservers has %s, and Neutron accepts addresses of name servers only: use its IP address." .) -}}
{{- end -}}
{{- end -}}
{{- range $inside -}}
{{- if or (contains ":" (last .)) (not (hasPrefix $network (include "openstack-cluster.validate.bits" (last .)))) -}}
{{- fail (printf "%s %s is not an address of clusterNetworking.internalNetwork.nodeCidr %s: use one of that network." (first .) (last .) $internal.nodeCidr) -}}
{{- end -}}
{{- end -}}
{{- range $internal.allocationPools -}}
{{- if gt (include "openstack-cluster.validate.bits" .start) (include "openstack-cluster.validate.bits" .end) -}}
{{- fail (printf "clusterNetworking.internalNetwork.allocationPools has start %s above end %s: swap or change them." .start .end) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Each Node gets a part of the pods' network; a flag of the controller manager sets its size. Argument: root.
Source: ValidatePodSubnetNodeMask and ValidateServiceSubnetSize of https://github.com/kubernetes/kubernetes/blob/v1.34.4/cmd/kubeadm/app/apis/kubeadm/validation/validation.go
*/}}
{{- define "openstack-cluster.validate.sizes" -}}
{{- range .Values.kubeNetwork.services.cidrBlocks -}}
{{- $longest := contains ":" . | ternary 124 28 -}}
{{- if gt (splitList "/" . | last | atoi) $longest -}}
{{- fail (printf "kubeNetwork.services.cidrBlocks has %s, which is too small for kubeadm: use a network of /%d or larger." . $longest) -}}
{{- end -}}
{{- end -}}
{{- $flags := include "openstack-cluster.controlPlane.flags" (dict "root" . "program" "controllerManager") | fromYaml -}}
{{- if ne (get $flags "allocate-node-cidrs") "false" -}}
{{- range .Values.kubeNetwork.pods.cidrBlocks -}}
{{- $length := splitList "/" . | last | atoi -}}
{{- $version := contains ":" . | ternary "ipv6" "ipv4" -}}
{{- $node := get $flags (printf "node-cidr-mask-size-%s" $version) | default (get (dict "ipv4" "24" "ipv6" "64") $version) | atoi -}}
{{- if or (gt $length $node) (gt (sub $node $length) 16) -}}
{{- fail (printf "kubeNetwork.pods.cidrBlocks has %s, and kubeadm assigns each Node a /%d of it: use a network of /%d to /%d." . $node (max 0 (sub $node 16)) $node) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The bits of an IPv4 address, with or without the length of its network, as text. */}}
{{- define "openstack-cluster.validate.bits" -}}
{{- range splitList "/" . | first | splitList "." -}}
{{ atoi . | printf "%08b" }}
{{- end -}}
{{- end -}}

{{/* The bits that all addresses of an IPv4 network share, as text. Argument: the network. */}}
{{- define "openstack-cluster.validate.network" -}}
{{- include "openstack-cluster.validate.bits" . | trunc (splitList "/" . | last | atoi) -}}
{{- end -}}

{{/*
Neutron takes a network by its own address, which ends in zeros; of IPv6 the last 16 bits are looked at.
Arguments: where (text), network.
*/}}
{{- define "openstack-cluster.validate.noHost" -}}
{{- $length := splitList "/" .network | last | atoi -}}
{{- if regexMatch "::.*::|:::" .network -}}
{{- fail (printf "%s %s is not a network, because it has \"::\" twice: write out the groups except for one \"::\"." .where .network) -}}
{{- end -}}
{{- $host := false -}}
{{- if not (contains ":" .network) -}}
{{- $host = include "openstack-cluster.validate.bits" .network | substr $length 32 | contains "1" -}}
{{- else if le $length 112 -}}
{{- $host = not (regexMatch ":0*/" .network) -}}
{{- end -}}
{{- if $host -}}
{{- fail (printf "%s %s is a host address: use the network address." .where .network) -}}
{{- end -}}
{{- end -}}

{{/* Rules of security groups. Argument: root. */}}
{{- define "openstack-cluster.validate.rules" -}}
{{- $networking := .Values.clusterNetworking -}}
{{- $bastion := and .Values.bastion .Values.bastion.enabled -}}
{{- range $key := list "allNodesSecurityGroupRules" "controlPlaneNodesSecurityGroupRules" "workerNodesSecurityGroupRules" -}}
{{- $rules := get $networking $key | default list -}}
{{- if and $rules (not $networking.manageSecurityGroups) -}}
{{- fail (printf "clusterNetworking.%s are rules of managed security groups, and clusterNetworking.manageSecurityGroups is false: set it to true, or create the rules in existing groups." $key) -}}
{{- end -}}
{{- $names := list -}}
{{- range $rules -}}
{{- $rule := printf "clusterNetworking.%s: the rule %q" $key .name -}}
{{- if has .name $names -}}
{{- fail (printf "%s exists twice: use a different name for each rule." $rule) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- if gt (len (pick . "remoteIPPrefix" "remoteGroupID" "remoteManagedGroups")) 1 -}}
{{- fail (printf "%s has more than one of remoteIPPrefix, remoteGroupID and remoteManagedGroups: keep one." $rule) -}}
{{- end -}}
{{- if and (has "bastion" (.remoteManagedGroups | default list)) (not $bastion) -}}
{{- fail (printf "%s is for the bastion, and bastion.enabled is false: set it to true, or remove the rule." $rule) -}}
{{- end -}}
{{- if and (or .portRangeMin .portRangeMax) (has (.protocol | default "" | lower) (list "" "any")) -}}
{{- fail (printf "%s has ports but no protocol: set tcp or udp." $rule) -}}
{{- end -}}
{{- if and .portRangeMax (not .portRangeMin) -}}
{{- fail (printf "%s has portRangeMax %d and no portRangeMin above 0, which the OpenStack provider requires: set the first port." $rule (int .portRangeMax)) -}}
{{- end -}}
{{- if and .etherType .remoteIPPrefix (ne (eq .etherType "IPv6") (contains ":" .remoteIPPrefix)) -}}
{{- fail (printf "%s has etherType %s and remoteIPPrefix %s: use a network of that IP version, or remove etherType." $rule .etherType .remoteIPPrefix) -}}
{{- end -}}
{{- /* Of ICMP the two are a type and a code. */ -}}
{{- if and (not (include "openstack-cluster.networking.rule.icmp" .)) (gt (int .portRangeMin) (int (.portRangeMax | default .portRangeMin))) -}}
{{- fail (printf "%s has portRangeMin %d above portRangeMax %d: swap or change them." $rule (int .portRangeMin) (int .portRangeMax)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
