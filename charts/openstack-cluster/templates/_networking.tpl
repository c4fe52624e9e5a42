{{/* Parts of the OpenStackCluster that look alike in v1beta1 and v1beta2, or nearly so. */}}

{{/* The Secret with clouds.yaml: the one that was named, or else the chart's own. Argument: root. */}}
{{- define "openstack-cluster.credentials.name" -}}
{{- if .Values.cloudCredentialsSecretName -}}
{{ .Values.cloudCredentialsSecretName }}
{{- else -}}
{{- include "openstack-cluster.name" (dict "parts" (list .Release.Name "cloud-credentials")) -}}
{{- end -}}
{{- end -}}

{{/* The prefix of the annotations that cluster-api-janitor-openstack reads, whatever projectPrefix is. */}}
{{- define "openstack-cluster.janitor" -}}
janitor.capi.stackhpc.com
{{- end -}}

{{/* Text "true" if pods or services have IPv6 addresses. Argument: root. */}}
{{- define "openstack-cluster.ipv6" -}}
{{- with .Values.kubeNetwork -}}
{{- if contains ":" (concat .pods.cidrBlocks .services.cidrBlocks | join " ") -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* The subnet that the provider makes. Argument: root. */}}
{{- define "openstack-cluster.managedSubnet" -}}
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
{{- define "openstack-cluster.externalRouterIPs" -}}
{{- range . }}
- subnet: {{- include "openstack-cluster.filter" .subnetFilter | nindent 4 }}
  {{- with .fixedIP }}
  fixedIP: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The load balancer in front of the API. Argument: apiServer of the values. */}}
{{- define "openstack-cluster.loadBalancer" -}}
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
{{- define "openstack-cluster.managedSecurityGroups" -}}
{{- $networking := .root.Values.clusterNetworking -}}
allowAllInClusterTraffic: {{ $networking.allowAllInClusterTraffic }}
{{- with include "openstack-cluster.rules.all" .root | fromJsonArray }}
{{ eq $.api "v1beta2" | ternary "clusterNodesSecurityGroupRules" "allNodesSecurityGroupRules" }}: {{ toJson . }}
{{- end }}
{{- with include "openstack-cluster.rules.controlPlane" .root | fromJsonArray }}
controlPlaneNodesSecurityGroupRules: {{ toJson . }}
{{- end }}
{{- with include "openstack-cluster.rules.workers" .root | fromJsonArray }}
workerNodesSecurityGroupRules: {{ toJson . }}
{{- end }}
{{- end -}}

{{/* Rules of all machines. Argument: root. */}}
{{- define "openstack-cluster.rules.all" -}}
{{- $more := list -}}
{{- if include "openstack-cluster.ipv6" . -}}
{{- $file := .Values.clusterNetworking.allowAllInClusterTraffic | ternary "ipv6-all" "ipv6-kubelet" -}}
{{- $more = include "openstack-cluster.rules.file" (dict "root" . "file" $file) | fromYamlArray -}}
{{- end -}}
{{- include "openstack-cluster.rules.both" (dict "own" .Values.clusterNetworking.allNodesSecurityGroupRules "more" $more) -}}
{{- end -}}

{{/* Rules of the control plane. Argument: root. */}}
{{- define "openstack-cluster.rules.controlPlane" -}}
{{- $more := list -}}
{{- $port := .Values.apiServer.port | int -}}
{{- if ne $port 6443 -}}
{{- $more = append $more (include "openstack-cluster.rules.api" (dict "etherType" "IPv4" "port" $port) | fromYaml) -}}
{{- end -}}
{{- if include "openstack-cluster.ipv6" . -}}
{{- $more = append $more (include "openstack-cluster.rules.api" (dict "etherType" "IPv6" "port" $port) | fromYaml) -}}
{{- $more = concat $more (include "openstack-cluster.rules.file" (dict "root" . "file" "ipv6-control-plane") | fromYamlArray) -}}
{{- end -}}
{{- include "openstack-cluster.rules.both" (dict "own" .Values.clusterNetworking.controlPlaneNodesSecurityGroupRules "more" $more) -}}
{{- end -}}

{{/* The API for everyone; the provider's own rule is for port 6443 and IPv4 alone. Arguments: etherType, port. */}}
{{- define "openstack-cluster.rules.api" -}}
name: Kubernetes API {{ .etherType }}
description: Kubernetes API
direction: ingress
etherType: {{ .etherType }}
protocol: tcp
portRangeMin: {{ .port }}
portRangeMax: {{ .port }}
{{- end -}}

{{/* Rules of workers: load balancers of the provider OVN pass the client's address on. Argument: root. */}}
{{- define "openstack-cluster.rules.workers" -}}
{{- $files := list -}}
{{- if eq (.Values.apiServer.loadBalancerProvider | default "") "ovn" -}}
{{- $files = append $files "ovn-workers" -}}
{{- end -}}
{{- if include "openstack-cluster.ipv6" . -}}
{{- $files = append $files ($files | empty | ternary "ipv6-workers" "ovn-workers-ipv6") -}}
{{- end -}}
{{- $more := list -}}
{{- range $files -}}
{{- $more = concat $more (include "openstack-cluster.rules.file" (dict "root" $ "file" .) | fromYamlArray) -}}
{{- end -}}
{{- include "openstack-cluster.rules.both" (dict "own" .Values.clusterNetworking.workerNodesSecurityGroupRules "more" $more) -}}
{{- end -}}

{{/* A rule that somebody wrote under the name of one of the chart's takes its place. Arguments: own, more (lists). */}}
{{- define "openstack-cluster.rules.both" -}}
{{- $rules := list -}}
{{- $names := list -}}
{{- range .own -}}
{{- $rules = append $rules (include "openstack-cluster.rule" . | fromJson) -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- range .more -}}
{{- if not (has .name $names) -}}
{{- $rules = append $rules . -}}
{{- end -}}
{{- end -}}
{{ toJson $rules }}
{{- end -}}

{{/*
A rule as Neutron has it. Of one in capitals or of protocol "any" the provider thinks at each look that it is missing;
a rule without etherType, or without the last of its ports, it cannot make. Argument: rule.
*/}}
{{- define "openstack-cluster.rule" -}}
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
{{- if and .portRangeMin (not (hasKey . "portRangeMax")) (not (include "openstack-cluster.rule.icmp" .)) -}}
{{- $_ := set $rule "portRangeMax" .portRangeMin -}}
{{- end -}}
{{ toJson $rule }}
{{- end -}}

{{/* Text "true" for ICMP by any of Neutron's names: a rule's two ports are a type and a code then. Argument: rule. */}}
{{- define "openstack-cluster.rule.icmp" -}}
{{- if regexMatch "icmp|^(1|58)$" (.protocol | default "" | lower) -}}true{{- end -}}
{{- end -}}

{{/* Arguments: root, file (of files/security-groups, without its extension). */}}
{{- define "openstack-cluster.rules.file" -}}
{{- .root.Files.Get (printf "files/security-groups/%s.yaml" .file) -}}
{{- end -}}

{{/* The machine that one logs in to others from. Arguments: root, api. */}}
{{- define "openstack-cluster.bastion" -}}
{{- $bastion := .root.Values.bastion -}}
enabled: {{ $bastion.enabled }}
{{- if $bastion.enabled }}
spec: {{- include "openstack-cluster.machine" (dict "root" .root "api" .api "from" $bastion) | nindent 2 }}
{{- with $bastion.availabilityZone }}
availabilityZone: {{ . | quote }}
{{- end }}
{{- with $bastion.floatingIP }}
floatingIP: {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Text "true" if the network or its subnets are there already. Argument: root. */}}
{{- define "openstack-cluster.existingNetwork" -}}
{{- with .Values.clusterNetworking.internalNetwork -}}
{{- if or .networkFilter .subnetFilter .subnetFilters -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* The existing subnets as a JSON list. Argument: root. */}}
{{- define "openstack-cluster.subnetFilters" -}}
{{- with .Values.clusterNetworking.internalNetwork -}}
{{- if .subnetFilter -}}
{{ list .subnetFilter | toJson }}
{{- else -}}
{{ .subnetFilters | default list | toJson }}
{{- end -}}
{{- end -}}
{{- end -}}
