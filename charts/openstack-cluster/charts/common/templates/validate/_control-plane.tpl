{{/* Rules for the control plane's kubeadm configuration. Argument: root. */}}
{{- define "openstack-cluster.validate.controlPlane" -}}
{{- include "openstack-cluster.validate.oidc" (.Values.oidc | default dict) -}}
{{- include "openstack-cluster.validate.authWebhook" . -}}
{{- include "openstack-cluster.validate.encryption" (.Values.etcd.encryption | default dict) -}}
{{- include "openstack-cluster.validate.barbican" . -}}
{{- include "openstack-cluster.validate.certificates" . -}}
{{- include "openstack-cluster.validate.flags" . -}}
{{- include "openstack-cluster.validate.programs" . -}}
{{- include "openstack-cluster.validate.hostPaths" . -}}
{{- include "openstack-cluster.validate.clusterConfiguration" . -}}
{{- end -}}

{{- define "openstack-cluster.validate.oidc" -}}
{{- if and .issuerUrl (not .clientId) -}}
{{- fail (printf "oidc.clientId is not set, but oidc.issuerUrl is %s: set the client for which tokens are issued." .issuerUrl) -}}
{{- end -}}
{{- if and .clientId (not .issuerUrl) -}}
{{- fail (printf "oidc.issuerUrl is not set, but oidc.clientId is %s: set the issuer's URL, or remove the client." .clientId) -}}
{{- end -}}
{{- end -}}

{{- define "openstack-cluster.validate.authWebhook" -}}
{{- $kind := .Values.authWebhook -}}
{{- $webhook := .Values.azimuthAuthorizationWebhook | default dict -}}
{{- $version := include "openstack-cluster.machine.values.version" (dict "root" . "values" .Values.controlPlane) -}}
{{- if and (ne $kind "none") (semverCompare "<1.32.0-0" $version) -}}
{{- fail (printf "authWebhook %s needs Kubernetes 1.32 for its authorization file, and the control plane has %s: upgrade, or set authWebhook to none." $kind $version) -}}
{{- end -}}
{{- if ne $kind "azimuth-authorization-webhook" -}}
{{- with $webhook.server -}}
{{- fail (printf "azimuthAuthorizationWebhook.server is %s, but authWebhook is %s: set authWebhook to azimuth-authorization-webhook, or remove the server." . $kind) -}}
{{- end -}}
{{- else -}}
{{- if not $webhook.server -}}
{{- fail "azimuthAuthorizationWebhook.server is not set, but authWebhook is azimuth-authorization-webhook: set the webhook's URL." -}}
{{- end -}}
{{- if and (ne (toString ($webhook.tls).enabled) "false") (not ($webhook.tls).cert) -}}
{{- fail "azimuthAuthorizationWebhook.tls.cert is not set: set the certificate of the webhook's CA, or set azimuthAuthorizationWebhook.tls.enabled to false to disable verification." -}}
{{- end -}}
{{- if contains "PRIVATE KEY" (($webhook.tls).cert | default "") -}}
{{- fail "azimuthAuthorizationWebhook.tls.cert has a private key, which would be stored in the KubeadmControlPlane: set the certificate only." -}}
{{- end -}}
{{- $timeout := include "openstack-cluster.api.seconds" (toString $webhook.timeout) | int -}}
{{- if or (lt $timeout 1) (gt $timeout 30) -}}
{{- fail (printf "azimuthAuthorizationWebhook.timeout is %s: the API server accepts 1s to 30s." ($webhook.timeout | default "not set")) -}}
{{- end -}}
{{- $seen := list -}}
{{- range $webhook.additionalAuthorizers -}}
{{- if ne .name (lower .type) -}}
{{- fail (printf "azimuthAuthorizationWebhook.additionalAuthorizers names %s %q: the API server accepts only the name %s." .type .name (lower .type)) -}}
{{- end -}}
{{- if has .type $seen -}}
{{- fail (printf "azimuthAuthorizationWebhook.additionalAuthorizers has %s twice: remove one of them." .type) -}}
{{- end -}}
{{- $seen = append $seen .type -}}
{{- end -}}
{{- range $type := has "AlwaysAllow" $seen | ternary list (list "Node" "RBAC") -}}
{{- if not (has $type $seen) -}}
{{- fail (printf "azimuthAuthorizationWebhook.additionalAuthorizers lacks %s, without which no Node can join: add {type: %s, name: %s}." $type $type (lower $type)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "openstack-cluster.validate.encryption" -}}
{{- $encryption := . -}}
{{- range $key := list "resources" "provider" "keys" -}}
{{- if and $encryption.enabled (not (get $encryption $key)) (not (and (eq $key "keys") (eq (toString $encryption.provider) "barbican"))) -}}
{{- fail (printf "etcd.encryption.%s is not set, but etcd.encryption.enabled is true: set resources, provider and keys." $key) -}}
{{- end -}}
{{- end -}}
{{- if hasKey (.otherProviders | default dict) (toString .provider) -}}
{{- fail (printf "etcd.encryption.otherProviders has %s, which is etcd.encryption.provider: add its keys to etcd.encryption.keys." .provider) -}}
{{- end -}}
{{- if .enabled -}}
{{- include "openstack-cluster.validate.encryption.resources" .resources -}}
{{- end -}}
{{- if and .writePlain (not .enabled) -}}
{{- fail "etcd.encryption.writePlain is true, but etcd.encryption.enabled is false, so nothing encrypted could be read: set enabled to true, or writePlain to false." -}}
{{- end -}}
{{- end -}}

{{/* Argument: root. */}}
{{- define "openstack-cluster.validate.barbican" -}}
{{- $encryption := .Values.etcd.encryption | default dict -}}
{{- if and $encryption.enabled (eq (toString $encryption.provider) "barbican") (not ($encryption.barbican).keyId) -}}
{{- fail "etcd.encryption.barbican.keyId is not set, but etcd.encryption.provider is barbican: set the id of a key in Barbican." -}}
{{- end -}}
{{- if include "openstack-cluster.barbican.enabled" . -}}
{{- $version := include "openstack-cluster.machine.values.version" (dict "root" . "values" .Values.controlPlane) -}}
{{- if semverCompare "<1.29.0-0" $version -}}
{{- fail (printf "etcd.encryption.barbican needs Kubernetes 1.29 for version 2 of its protocol, and the control plane has %s: upgrade, or remove barbican.keyId." $version) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Kinds that the API server can encrypt. Argument: resources. */}}
{{- define "openstack-cluster.validate.encryption.resources" -}}
{{- $resources := . -}}
{{- range $resource := $resources -}}
{{- if regexMatch "^(apiserveripinfo|serviceipallocations|servicenodeportallocations)$|^[^.]*[.](events[.]k8s[.]io|extensions)$" $resource -}}
{{- fail (printf "etcd.encryption.resources has %s, which the API server does not accept: remove it, or use the name of the stored resource, such as events." $resource) -}}
{{- end -}}
{{- range without $resources $resource -}}
{{- if or (eq $resource "*.*") (and (hasPrefix "*." $resource) (eq (trimPrefix "*." $resource) (regexFind "[.].*" . | trimPrefix "."))) -}}
{{- fail (printf "etcd.encryption.resources has %s and also %s, which it includes: remove one of them." $resource .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Cluster API replaces a machine whose certificates expire soon, also when it is a minute old. Where their validity cannot
be configured, it is kubeadm's default of 365 days. Argument: root.
*/}}
{{- define "openstack-cluster.validate.certificates" -}}
{{- $controlPlane := .Values.controlPlane -}}
{{- $before := int $controlPlane.certificatesExpiryDays -}}
{{- $days := 0 -}}
{{- $key := "certificateValidityDays" -}}
{{- if include "openstack-cluster.clusterApi.certificateValidity" (dict "root" . "core" (include "openstack-cluster.api.core" .)) -}}
{{- $days = int $controlPlane.certificateValidityDays -}}
{{- with (($controlPlane.kubeadmConfigSpec).clusterConfiguration).certificateValidityPeriodDays -}}
{{- $days = int . -}}
{{- $key = "kubeadmConfigSpec.clusterConfiguration.certificateValidityPeriodDays" -}}
{{- end -}}
{{- end -}}
{{- if and $before (le ($days | default 365) $before) -}}
{{- if $days -}}
{{- fail (printf "controlPlane.%s is %d, but machines are replaced %d days before that (controlPlane.certificatesExpiryDays), so continuously: set a longer validity." $key $days $before) -}}
{{- else -}}
{{- fail (printf "controlPlane.certificatesExpiryDays is %d, but kubeadm's certificates are valid for 365 days, so machines would be replaced continuously: set fewer days, or set certificateValidityDays if Cluster API supports it (core v1beta2)." $before) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Keys that kubeadmConfigSpec of the control plane may not set: Cluster API drops them, or another key must agree.
*/}}
{{- define "openstack-cluster.validate.clusterConfiguration" -}}
{{- $spec := .Values.controlPlane.kubeadmConfigSpec | default dict -}}
{{- $passthrough := $spec.clusterConfiguration | default dict -}}
{{- if and .Release.IsInstall ($passthrough.etcd).external ($passthrough.etcd).local -}}
{{- fail "controlPlane.kubeadmConfigSpec.clusterConfiguration.etcd has external and local, and only external would be used: remove one of them." -}}
{{- end -}}
{{- $health := "controlPlaneComponentHealthCheckSeconds" -}}
{{- if ne (toJson (get (($spec.initConfiguration).timeouts | default dict) $health | default "")) (toJson (get (($spec.joinConfiguration).timeouts | default dict) $health | default "")) -}}
{{- fail (printf "controlPlane.kubeadmConfigSpec.initConfiguration.timeouts.%s differs from that of joinConfiguration, and Cluster API accepts equal values only: set both to the same value." $health) -}}
{{- end -}}
{{- with (($passthrough.etcd | default dict).local | default dict).dataDir -}}
{{- fail (printf "controlPlane.kubeadmConfigSpec.clusterConfiguration.etcd.local.dataDir is %s, but a disk is mounted at etcd.dataDir: use that key." .) -}}
{{- end -}}
{{- if and (eq (include "openstack-cluster.api.core" .) "v1beta2") (($passthrough.apiServer | default dict).timeoutForControlPlane) -}}
{{- fail "controlPlane.kubeadmConfigSpec.clusterConfiguration.apiServer.timeoutForControlPlane does not exist in core v1beta2: use timeouts.controlPlaneComponentHealthCheckSeconds of initConfiguration and joinConfiguration." -}}
{{- end -}}
{{- $programs := pick $passthrough "apiServer" "controllerManager" "scheduler" -}}
{{- $_ := set $programs "etcd.local" ($passthrough.etcd | default dict).local -}}
{{- range $where, $program := $programs -}}
{{- include "openstack-cluster.validate.flagList" (dict "where" $where "flags" ($program | default dict).extraArgs) -}}
{{- /* A cluster that lives with these must not be kept from upgrades. */ -}}
{{- if $.Release.IsInstall -}}
{{- include "openstack-cluster.validate.environment" (dict "root" $ "where" $where "variables" ($program | default dict).extraEnvs) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
A program with a proxy sends requests to the cluster's own addresses there too, unless NO_PROXY lists them.
Source: https://pkg.go.dev/golang.org/x/net/http/httpproxy#FromEnvironment
Arguments: root, where (below clusterConfiguration), variables (list of name and value, or nothing).
*/}}
{{- define "openstack-cluster.validate.environment" -}}
{{- $extraEnvs := printf "controlPlane.kubeadmConfigSpec.clusterConfiguration.%s.extraEnvs" .where -}}
{{- $names := list -}}
{{- range .variables -}}
{{- if has .name $names -}}
{{- fail (printf "%s sets %s twice, and one of them has no effect: keep one." $extraEnvs .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- if not (or (has "NO_PROXY" $names) (has "no_proxy" $names)) -}}
{{- range $name := $names -}}
{{- if has (upper $name) (list "HTTP_PROXY" "HTTPS_PROXY") -}}
{{- fail (printf "%s sets %s without NO_PROXY, so requests to pods, services and machines of the cluster would go to the proxy: add NO_PROXY, for example with %s" $extraEnvs $name (include "openstack-cluster.proxy.exceptions" $.root)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Arguments: where (below clusterConfiguration), flags (a map, a list, or nothing). */}}
{{- define "openstack-cluster.validate.flagList" -}}
{{- $where := .where -}}
{{- if kindIs "slice" .flags -}}
{{- $seen := dict -}}
{{- range .flags -}}
{{- if hasKey $seen .name -}}
{{- fail (printf "controlPlane.kubeadmConfigSpec.clusterConfiguration.%s.extraArgs sets %s twice: Cluster API accepts a flag once." $where .name) -}}
{{- end -}}
{{- $_ := set $seen .name true -}}
{{- end -}}
{{- end -}}
{{- end -}}
