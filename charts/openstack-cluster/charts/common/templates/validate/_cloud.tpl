{{/*
Rules for the credential, the API's address and the bastion: the OpenStackCluster without its networks.
*/}}

{{/* Argument: root. */}}
{{- define "openstack-cluster.validate.credentials" -}}
{{- $values := .Values -}}
{{- if $values.cloudCredentialsSecretName -}}
{{- if and $values.addons.enabled (gt (len $values.cloudCredentialsSecretName) 63) -}}
{{- fail (printf "cloudCredentialsSecretName %q has %d characters, and the addon operator writes it into an annotation, which takes 63: use a shorter name." $values.cloudCredentialsSecretName (len $values.cloudCredentialsSecretName)) -}}
{{- end -}}
{{- if or $values.clouds $values.cloudCACert -}}
{{- fail (printf "cloudCredentialsSecretName %q is an existing Secret, so clouds and cloudCACert would have no effect: write them to its keys clouds.yaml and cacert, or set cloudCredentialsSecretName to null." $values.cloudCredentialsSecretName) -}}
{{- end -}}
{{- if ne $values.cloudName "openstack" -}}
{{- fail (printf "cloudName %q selects one of clouds, and cloudCredentialsSecretName is an existing Secret: name the cloud openstack in that Secret, and remove cloudName." $values.cloudName) -}}
{{- end -}}
{{- if eq $values.credentialPolicy "delete" -}}
{{- fail (printf "credentialPolicy delete applies to the chart's own Secret: annotate %q with janitor.capi.stackhpc.com/credential-policy: delete." $values.cloudCredentialsSecretName) -}}
{{- end -}}
{{- else if not $values.clouds -}}
{{- fail "cloudCredentialsSecretName is not set: set it to a Secret of this namespace with the key clouds.yaml, or set clouds." -}}
{{- else if not (get $values.clouds $values.cloudName) -}}
{{- fail (printf "cloudName %q is none of clouds (%s): set it to one of them." $values.cloudName (keys $values.clouds | sortAlpha | join ", ")) -}}
{{- end -}}
{{- end -}}

{{/* Argument: root. */}}
{{- define "openstack-cluster.validate.apiServer" -}}
{{- $server := .Values.apiServer -}}
{{- if and $server.allowedCIDRs $server.allowedCidrs (ne (toJson $server.allowedCIDRs) (toJson $server.allowedCidrs)) -}}
{{- fail "apiServer.allowedCIDRs and apiServer.allowedCidrs are two spellings of one key and differ: set only allowedCIDRs." -}}
{{- end -}}
{{- if not $server.enableLoadBalancer -}}
{{- if or $server.allowedCIDRs $server.allowedCidrs -}}
{{- fail "apiServer.allowedCIDRs is enforced by the load balancer, and apiServer.enableLoadBalancer is false, so access to the API would not be restricted: change one of them." -}}
{{- end -}}
{{- range $key := list "loadBalancerFlavor" "loadBalancerAvailabilityZone" "loadBalancerNetworkFilter" "loadBalancerSubnetFilters" "loadBalancerAdditionalPorts" "loadBalancerMonitor" -}}
{{- if get $server $key -}}
{{- fail (printf "apiServer.%s is for a load balancer, and apiServer.enableLoadBalancer is false: set it to true, or remove the key." $key) -}}
{{- end -}}
{{- end -}}
{{- if and .Release.IsInstall $server.associateFloatingIP (not $server.floatingIP) (gt (int .Values.controlPlane.machineCount) 1) -}}
{{- fail (printf "apiServer.enableLoadBalancer is false, so the API's floating IP belongs to one machine, and the OpenStack provider deletes it with that machine although controlPlane.machineCount is %d: set apiServer.floatingIP, which is kept, or enable the load balancer." (int .Values.controlPlane.machineCount)) -}}
{{- end -}}
{{- if not (or $server.associateFloatingIP $server.fixedIP $.Values.controlPlaneEndpoint) -}}
{{- fail "apiServer.enableLoadBalancer and apiServer.associateFloatingIP are false, so the API has no address: set apiServer.fixedIP or controlPlaneEndpoint, and route that address to the control plane." -}}
{{- end -}}
{{- end -}}
{{- /* A running cluster keeps such values: they have no effect, and must not prevent other changes. */ -}}
{{- if and .Release.IsInstall $server.enableLoadBalancer -}}
{{- range $server.allowedCIDRs | default $server.allowedCidrs -}}
{{- if eq ($server.loadBalancerProvider | default "") "ovn" -}}
{{- fail (printf "apiServer.allowedCIDRs has %s, but load balancers of the provider ovn do not restrict access: remove it and protect the API by other means, or use another apiServer.loadBalancerProvider." .) -}}
{{- end -}}
{{- if contains ":" . -}}
{{- fail (printf "apiServer.allowedCIDRs has %s, and the OpenStack provider ignores IPv6: use IPv4 networks." .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Release.IsInstall $server.fixedIP (not $server.enableLoadBalancer) $server.associateFloatingIP -}}
{{- fail (printf "apiServer.fixedIP is %s, and without a load balancer the API has its floating IP only: remove it, or set apiServer.associateFloatingIP to false." $server.fixedIP) -}}
{{- end -}}
{{- if and $server.loadBalancerSubnetFilters (not $server.loadBalancerNetworkFilter) -}}
{{- fail "apiServer.loadBalancerSubnetFilters are subnets of apiServer.loadBalancerNetworkFilter, which is not set: set it too." -}}
{{- end -}}
{{- if contains (printf " %d " (int $server.port)) (printf " %s " (join " " $server.loadBalancerAdditionalPorts)) -}}
{{- fail (printf "apiServer.loadBalancerAdditionalPorts has %d, which is apiServer.port: remove it." (int $server.port)) -}}
{{- end -}}
{{- if and $server.floatingIP (not $server.associateFloatingIP) -}}
{{- fail (printf "apiServer.floatingIP is %s, but apiServer.associateFloatingIP is false: set it to true, or remove the address." $server.floatingIP) -}}
{{- end -}}
{{- if and .Values.clusterNetworking.disableExternalNetwork $server.associateFloatingIP -}}
{{- fail "clusterNetworking.disableExternalNetwork leaves no network for a floating IP: set apiServer.associateFloatingIP to false." -}}
{{- end -}}
{{- end -}}

{{/*
The provider takes the endpoint for the address of its load balancer or floating IP, if it makes one.
Argument: root.
*/}}
{{- define "openstack-cluster.validate.endpoint" -}}
{{- $server := .Values.apiServer -}}
{{- with .Values.controlPlaneEndpoint -}}
{{- if or $server.floatingIP $server.fixedIP -}}
{{- fail (printf "controlPlaneEndpoint.host is %s, and apiServer.floatingIP or apiServer.fixedIP sets an address of the API, too: remove one of them." .host) -}}
{{- end -}}
{{- if or $server.enableLoadBalancer $server.associateFloatingIP -}}
{{- if not (or (regexMatch "^[0-9.]+$" .host) (contains ":" .host)) -}}
{{- fail (printf "controlPlaneEndpoint.host %q is a name, and the OpenStack provider would create an address for it: set apiServer.enableLoadBalancer and apiServer.associateFloatingIP to false, or use an IP address." .host) -}}
{{- end -}}
{{- if ne (int .port) (int $server.port) -}}
{{- fail (printf "controlPlaneEndpoint.port is %d and apiServer.port %d, but load balancer and machines listen on the same port: set both to the same value." (int .port) (int $server.port)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Argument: root. */}}
{{- define "openstack-cluster.validate.bastion" -}}
{{- $values := .Values -}}
{{- with .Values.bastion -}}
{{- if .enabled -}}
{{- if not .machineFlavor -}}
{{- fail "bastion.machineFlavor is not set: set the Nova flavor of the bastion." -}}
{{- end -}}
{{- if not $values.machineSSHKeyName -}}
{{- fail "bastion.enabled is true, but login requires a key: set machineSSHKeyName." -}}
{{- end -}}
{{- if $values.clusterNetworking.disableExternalNetwork -}}
{{- fail "clusterNetworking.disableExternalNetwork leaves no floating IP for a bastion: set bastion.enabled to false." -}}
{{- end -}}
{{- if and .floatingIP (eq .floatingIP ($values.apiServer.floatingIP | default "")) -}}
{{- fail (printf "bastion.floatingIP %s is apiServer.floatingIP, too: use different addresses." .floatingIP) -}}
{{- end -}}
{{- include "openstack-cluster.validate.image" (dict "root" $ "where" "bastion" "values" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
