{{/* Networks, load balancer and security groups of the OpenStackCluster. */}}

{{/* Text "true" if pods or services have IPv6 addresses. Argument: root. */}}
{{- define "openstack-cluster.networking.ipv6" -}}
{{- with .Values.kubeNetwork -}}
{{- if contains ":" (concat .pods.cidrBlocks .services.cidrBlocks | join " ") -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* The subnet that the provider makes. Argument: root. */}}
{{- define "openstack-cluster.networking.managedSubnet" -}}
{{- $internal := .Values.clusterNetworking.internalNetwork -}}
cidr: {{ $internal.nodeCidr | quote }}
{{- with $internal.allocationPools }}
allocationPools: {{ toJson . }}
{{- end }}
{{- with $internal.dnsNameservers | default .Values.clusterNetworking.dnsNameservers }}
dnsNameservers: {{ toJson . }}
{{- end }}
{{- end -}}

{{/* Addresses of the router that the provider makes. Argument: list of fixedIP and subnetFilter. */}}
{{- define "openstack-cluster.networking.externalRouterIPs" -}}
{{- range . }}
- subnet: {{- include "openstack-cluster.filter" .subnetFilter | nindent 4 }}
  {{- with .fixedIP }}
  fixedIP: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The load balancer in front of the API. Argument: apiServer of the values. */}}
{{- define "openstack-cluster.networking.loadBalancer" -}}
enabled: true
{{- with .loadBalancerProvider }}
provider: {{ . | quote }}
{{- end }}
{{- with .loadBalancerFlavor }}
flavor: {{ . | quote }}
{{- end }}
{{- with .loadBalancerAvailabilityZone }}
availabilityZone: {{ . | quote }}
{{- end }}
{{- with .loadBalancerNetworkFilter }}
network: {{- include "openstack-cluster.filter" . | nindent 2 }}
{{- end }}
{{- with .loadBalancerSubnetFilters }}
subnets: {{- include "openstack-cluster.filters" . | nindent 2 }}
{{- end }}
{{- with .loadBalancerAdditionalPorts }}
additionalPorts: {{ toJson . }}
{{- end }}
{{- with .allowedCIDRs | default .allowedCidrs }}
allowedCIDRs: {{ toJson . }}
{{- end }}
{{- with .loadBalancerMonitor }}
monitor: {{ toJson . }}
{{- end }}
{{- end -}}

{{/* Security groups that the provider makes. Arguments: root, api. */}}
{{- define "openstack-cluster.networking.managedSecurityGroups" -}}
{{- $networking := .root.Values.clusterNetworking -}}
allowAllInClusterTraffic: {{ $networking.allowAllInClusterTraffic }}
{{- with include "openstack-cluster.networking.rules.all" .root | fromJsonArray }}
{{ eq $.api "v1beta2" | ternary "clusterNodesSecurityGroupRules" "allNodesSecurityGroupRules" }}: {{ toJson . }}
{{- end }}
{{- with include "openstack-cluster.networking.rules.controlPlane" .root | fromJsonArray }}
controlPlaneNodesSecurityGroupRules: {{ toJson . }}
{{- end }}
{{- with include "openstack-cluster.networking.rules.workers" .root | fromJsonArray }}
workerNodesSecurityGroupRules: {{ toJson . }}
{{- end }}
{{- end -}}

{{/* Rules of all machines. Argument: root. */}}
{{- define "openstack-cluster.networking.rules.all" -}}
{{- $defaults := list -}}
{{- if include "openstack-cluster.networking.ipv6" . -}}
{{- $file := .Values.clusterNetworking.allowAllInClusterTraffic | ternary "ipv6-all" "ipv6-kubelet" -}}
{{- $defaults = include "openstack-cluster.networking.rules.file" (dict "root" . "file" $file) | fromYamlArray -}}
{{- end -}}
{{- include "openstack-cluster.networking.rules.merged" (dict "values" .Values.clusterNetworking.allNodesSecurityGroupRules "defaults" $defaults) -}}
{{- end -}}

{{/* Rules of the control plane. Argument: root. */}}
{{- define "openstack-cluster.networking.rules.controlPlane" -}}
{{- $defaults := list -}}
{{- $port := .Values.apiServer.port | int -}}
{{- if ne $port 6443 -}}
{{- $defaults = append $defaults (include "openstack-cluster.networking.rules.api" (dict "etherType" "IPv4" "port" $port) | fromYaml) -}}
{{- end -}}
{{- if include "openstack-cluster.networking.ipv6" . -}}
{{- $defaults = append $defaults (include "openstack-cluster.networking.rules.api" (dict "etherType" "IPv6" "port" $port) | fromYaml) -}}
{{- $defaults = concat $defaults (include "openstack-cluster.networking.rules.file" (dict "root" . "file" "ipv6-control-plane") | fromYamlArray) -}}
{{- end -}}
{{- include "openstack-cluster.networking.rules.merged" (dict "values" .Values.clusterNetworking.controlPlaneNodesSecurityGroupRules "defaults" $defaults) -}}
{{- end -}}

{{/* The API for everyone; the provider's own rule is for port 6443 and IPv4 alone. Arguments: etherType, port. */}}
{{- define "openstack-cluster.networking.rules.api" -}}
name: Kubernetes API {{ .etherType }}
description: Kubernetes API
direction: ingress
etherType: {{ .etherType }}
protocol: tcp
portRangeMin: {{ .port }}
portRangeMax: {{ .port }}
{{- end -}}

{{/* Rules of workers: load balancers of the provider OVN pass the client's address on. Argument: root. */}}
{{- define "openstack-cluster.networking.rules.workers" -}}
{{- $files := list -}}
{{- if eq (.Values.apiServer.loadBalancerProvider | default "") "ovn" -}}
{{- $files = append $files "ovn-workers" -}}
{{- end -}}
{{- if include "openstack-cluster.networking.ipv6" . -}}
{{- $files = append $files ($files | empty | ternary "ipv6-workers" "ovn-workers-ipv6") -}}
{{- end -}}
{{- $defaults := list -}}
{{- range $files -}}
{{- $defaults = concat $defaults (include "openstack-cluster.networking.rules.file" (dict "root" $ "file" .) | fromYamlArray) -}}
{{- end -}}
{{- include "openstack-cluster.networking.rules.merged" (dict "values" .Values.clusterNetworking.workerNodesSecurityGroupRules "defaults" $defaults) -}}
{{- end -}}

{{/*
Rules of the values merged with the chart's: a rule of the values replaces the chart's of that name.
Arguments: values, defaults (lists).
*/}}
{{- define "openstack-cluster.networking.rules.merged" -}}
{{- $rules := list -}}
{{- $names := list -}}
{{- range .values -}}
{{- $rules = append $rules (include "openstack-cluster.networking.rule" . | fromJson) -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- range .defaults -}}
{{- if not (has .name $names) -}}
{{- $rules = append $rules . -}}
{{- end -}}
{{- end -}}
{{ toJson $rules }}
{{- end -}}

{{/*
A rule as Neutron has it. The provider takes one in capitals or of protocol "any" for missing at each reconciliation;
it cannot create a rule without etherType or without portRangeMax. Argument: rule.
*/}}
{{- define "openstack-cluster.networking.rule" -}}
{{- $rule := omit . "protocol" "remoteIPPrefix" "remoteGroupID" -}}
{{- $prefix := .remoteIPPrefix | default "" | lower -}}
{{- $protocol := .protocol | default "" | lower -}}
{{- $six := or (contains ":" $prefix) (has $protocol (list "icmpv6" "ipv6-icmp" "58")) -}}
{{- $_ := set $rule "etherType" (.etherType | default (ternary "IPv6" "IPv4" $six)) -}}
{{- with .remoteGroupID -}}
{{- $_ := set $rule "remoteGroupID" . -}}
{{- end -}}
{{- with $prefix -}}
{{- $_ := set $rule "remoteIPPrefix" . -}}
{{- end -}}
{{- if not (has $protocol (list "" "any")) -}}
{{- $_ := set $rule "protocol" $protocol -}}
{{- end -}}
{{- if and .portRangeMin (not (hasKey . "portRangeMax")) (not (include "openstack-cluster.networking.rule.icmp" .)) -}}
{{- $_ := set $rule "portRangeMax" .portRangeMin -}}
{{- end -}}
{{ toJson $rule }}
{{- end -}}

{{/* Text "true" for ICMP by any of Neutron's names: a rule's two ports are a type and a code then. Argument: rule. */}}
{{- define "openstack-cluster.networking.rule.icmp" -}}
{{- if regexMatch "icmp|^(1|58)$" (.protocol | default "" | lower) -}}true{{- end -}}
{{- end -}}

{{/* Arguments: root, file (of files/security-groups, without its extension). */}}
{{- define "openstack-cluster.networking.rules.file" -}}
{{- .root.Files.Get (printf "files/security-groups/%s.yaml" .file) -}}
{{- end -}}

{{/* Text "true" if the network or its subnets are there already. Argument: root. */}}
{{- define "openstack-cluster.networking.existingNetwork" -}}
{{- with .Values.clusterNetworking.internalNetwork -}}
{{- if or .networkFilter .subnetFilter .subnetFilters -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* The existing subnets as a JSON list. Argument: root. */}}
{{- define "openstack-cluster.networking.subnetFilters" -}}
{{- with .Values.clusterNetworking.internalNetwork -}}
{{- if .subnetFilter -}}
{{ list .subnetFilter | toJson }}
{{- else -}}
{{ .subnetFilters | default list | toJson }}
{{- end -}}
{{- end -}}
{{- end -}}
