{{/* Rules for what kubeadm is told about the control plane. Argument: root. */}}
{{- define "openstack-cluster.validate.controlPlane" -}}
{{- include "openstack-cluster.validate.oidc" (.Values.oidc | default dict) -}}
{{- include "openstack-cluster.validate.authWebhook" . -}}
{{- include "openstack-cluster.validate.encryption" (.Values.etcd.encryption | default dict) -}}
{{- include "openstack-cluster.validate.certificates" . -}}
{{- include "openstack-cluster.validate.flags" . -}}
{{- include "openstack-cluster.validate.hostPaths" . -}}
{{- include "openstack-cluster.validate.clusterConfiguration" . -}}
{{- include "openstack-cluster.validate.cipherSuites" . -}}
{{- end -}}

{{- define "openstack-cluster.validate.oidc" -}}
{{- if and .issuerUrl (not .clientId) -}}
{{- fail (printf "oidc.clientId is not set, but oidc.issuerUrl is %s: name the client that tokens are made for." .issuerUrl) -}}
{{- end -}}
{{- if and .clientId (not .issuerUrl) -}}
{{- fail (printf "oidc.issuerUrl is not set, but oidc.clientId is %s: give the issuer's URL, or no client." .clientId) -}}
{{- end -}}
{{- end -}}

{{- define "openstack-cluster.validate.authWebhook" -}}
{{- $kind := .Values.authWebhook -}}
{{- $webhook := .Values.azimuthAuthorizationWebhook | default dict -}}
{{- $version := include "openstack-cluster.version" (dict "root" . "from" .Values.controlPlane) -}}
{{- if and (ne $kind "none") (semverCompare "<1.32.0-0" $version) -}}
{{- fail (printf "authWebhook %s needs Kubernetes 1.32 for its authorization file, and the control plane has %s: upgrade, or set authWebhook to none." $kind $version) -}}
{{- end -}}
{{- if ne $kind "azimuth-authorization-webhook" -}}
{{- with $webhook.server -}}
{{- fail (printf "azimuthAuthorizationWebhook.server is %s, but authWebhook is %s: set authWebhook to azimuth-authorization-webhook, or give no server." . $kind) -}}
{{- end -}}
{{- else -}}
{{- if not $webhook.server -}}
{{- fail "azimuthAuthorizationWebhook.server is not set, but authWebhook is azimuth-authorization-webhook: give the webhook's URL." -}}
{{- end -}}
{{- if and (ne (toString ($webhook.tls).enabled) "false") (not ($webhook.tls).cert) -}}
{{- fail "azimuthAuthorizationWebhook.tls.cert is not set: give the certificate of the webhook's CA, or set azimuthAuthorizationWebhook.tls.enabled to false to trust anybody." -}}
{{- end -}}
{{- if contains "PRIVATE KEY" (($webhook.tls).cert | default "") -}}
{{- fail "azimuthAuthorizationWebhook.tls.cert holds a private key, which would stand in the KubeadmControlPlane: give the certificate only." -}}
{{- end -}}
{{- $timeout := include "openstack-cluster.seconds" (toString $webhook.timeout) | int -}}
{{- if or (lt $timeout 1) (gt $timeout 30) -}}
{{- fail (printf "azimuthAuthorizationWebhook.timeout is %s: the API server takes 1s to 30s." ($webhook.timeout | default "not set")) -}}
{{- end -}}
{{- $seen := list -}}
{{- range $webhook.additionalAuthorizers -}}
{{- if ne .name (lower .type) -}}
{{- fail (printf "azimuthAuthorizationWebhook.additionalAuthorizers calls %s %q: the API server takes only the name %s." .type .name (lower .type)) -}}
{{- end -}}
{{- if has .type $seen -}}
{{- fail (printf "azimuthAuthorizationWebhook.additionalAuthorizers has %s twice: the API server asks it once." .type) -}}
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
{{- if and $encryption.enabled (not (get $encryption $key)) -}}
{{- fail (printf "etcd.encryption.%s is not set, but etcd.encryption.enabled is true: say what is encrypted, how and with which keys." $key) -}}
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

{{/* What the API server takes as kinds to encrypt. Argument: resources. */}}
{{- define "openstack-cluster.validate.encryption.resources" -}}
{{- $resources := . -}}
{{- range $resource := $resources -}}
{{- if regexMatch "^(apiserveripinfo|serviceipallocations|servicenodeportallocations)$|^[^.]*[.](events[.]k8s[.]io|extensions)$" $resource -}}
{{- fail (printf "etcd.encryption.resources has %s, which the API server does not take: leave it out, or name the kind where it is stored, like events." $resource) -}}
{{- end -}}
{{- range without $resources $resource -}}
{{- if or (eq $resource "*.*") (and (hasPrefix "*." $resource) (eq (trimPrefix "*." $resource) (regexFind "[.].*" . | trimPrefix "."))) -}}
{{- fail (printf "etcd.encryption.resources has %s and also %s, which is among them: leave out one of them." $resource .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Cluster API replaces a machine whose certificates end soon, also when it is a minute old. Where kubeadm cannot be told
how long they are good, that is its own 365 days. Argument: root.
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
{{- fail (printf "controlPlane.%s is %d, but machines are replaced %d days before that (controlPlane.certificatesExpiryDays), so without end: let certificates live longer." $key $days $before) -}}
{{- else -}}
{{- fail (printf "controlPlane.certificatesExpiryDays is %d, but certificates live kubeadm's 365 days, so machines would be replaced without end: give fewer days, or set certificateValidityDays where Cluster API knows it (core v1beta2)." $before) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Go's HTTP/2 asks for one of two suites, and without it neither API server nor kubelet starts. Flags of the operator's
own may have another list, or TLS 1.3 alone, which has no list; the API server may also be told to leave HTTP/2 out.
Argument: root.
Source: https://pkg.go.dev/golang.org/x/net/http2#ConfigureServer
*/}}
{{- define "openstack-cluster.validate.cipherSuites" -}}
{{- $suites := (.Values.tls).cipherSuites -}}
{{- if and $suites (eq (toString (.Values.tls).minVersion) "VersionTLS13") -}}
{{- fail "tls.cipherSuites cannot be chosen for TLS 1.3, and tls.minVersion is VersionTLS13: leave one of them out." -}}
{{- end -}}
{{- $needed := list "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256" -}}
{{- if and $suites (not (has (first $needed) $suites)) (not (has (last $needed) $suites)) -}}
{{- $own := .Values.controlPlane.kubeadmConfigSpec | default dict -}}
{{- $node := dict "root" . "core" "v1beta1" "role" "controlPlane" "from" .Values.controlPlane "own" $own -}}
{{- range $program, $text := dict
      "the API server" (include "openstack-cluster.controlPlane.flags" (dict "root" . "program" "apiServer"))
      "the kubelet" (include "openstack-cluster.kubeadm.kubeletArgs" (dict "of" $node "own" (($own.initConfiguration).nodeRegistration | default dict))) -}}
{{- $flags := fromYaml $text -}}
{{- $free := or (eq (get $flags "tls-min-version") "VersionTLS13") (eq (get $flags "disable-http2-serving") "true") -}}
{{- if and (not $free) (eq (get $flags "tls-cipher-suites") (join "," $suites)) -}}
{{- fail (printf "tls.cipherSuites has neither %s, and without one of them %s does not start (HTTP/2): add one." (join " nor " $needed) $program) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A flag has one place. */}}
{{- define "openstack-cluster.validate.flags" -}}
{{- $tls := include "openstack-cluster.tls.flags" . | fromJson -}}
{{- range $where, $given := dict
      "apiServer" (merge (include "openstack-cluster.apiServer.flags" . | fromYaml) $tls)
      "controllerManager" $tls
      "scheduler" $tls
      "etcd" (include "openstack-cluster.etcd.flags" . | fromJson) -}}
{{- $own := (get $.Values $where | default dict).extraArgs -}}
{{- range $flag, $_ := $own -}}
{{- if hasKey $given $flag -}}
{{- fail (printf "%s.extraArgs sets %s, which %s sets too: use one of them." $where $flag (include "openstack-cluster.flagKey" $flag)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $own := .Values.apiServer.extraArgs | default dict -}}
{{- if and (.Values.oidc).issuerUrl (hasKey $own "authentication-config") -}}
{{- fail "apiServer.extraArgs sets authentication-config, which the API server refuses beside the flags of oidc: describe the issuer in that file, or use oidc." -}}
{{- end -}}
{{- range $flag := list "authorization-mode" "authorization-webhook-config-file" "authorization-webhook-version"
      "authorization-webhook-cache-authorized-ttl" "authorization-webhook-cache-unauthorized-ttl" -}}
{{- if and (ne $.Values.authWebhook "none") (hasKey $own $flag) -}}
{{- fail (printf "apiServer.extraArgs sets %s, which the API server refuses beside the authorization file of authWebhook %s: use one of them." $flag $.Values.authWebhook) -}}
{{- end -}}
{{- end -}}
{{- $elsewhere := (((.Values.controlPlane.kubeadmConfigSpec).clusterConfiguration).etcd).external -}}
{{- with get (include "openstack-cluster.controlPlane.flags" (dict "root" . "program" "etcd") | fromYaml) "data-dir" -}}
{{- if not (or $elsewhere (hasPrefix (printf "%s/" (trimSuffix "/" $.Values.etcd.dataDir)) (printf "%s/" .))) -}}
{{- fail (printf "etcd.extraArgs, or clusterConfiguration.etcd.local.extraArgs of kubeadmConfigSpec, sets data-dir to %s, but only etcd.dataDir (%s) outlives a restart of etcd: use that key." . $.Values.etcd.dataDir) -}}
{{- end -}}
{{- end -}}
{{- include "openstack-cluster.validate.port" . -}}
{{- end -}}

{{/* kubeadm and the kubelet look for the API server at bindPort, load balancer and floating IP lead to apiServer.port. Argument: root. */}}
{{- define "openstack-cluster.validate.port" -}}
{{- $server := .Values.apiServer -}}
{{- $spec := .Values.controlPlane.kubeadmConfigSpec | default dict -}}
{{- $first := int (($spec.initConfiguration).localAPIEndpoint).bindPort | default (int $server.port) -}}
{{- $others := int ((($spec.joinConfiguration).controlPlane).localAPIEndpoint).bindPort | default (int $server.port) -}}
{{- range $where, $port := dict "initConfiguration" $first "joinConfiguration.controlPlane" $others -}}
{{- if and (or $server.enableLoadBalancer $server.associateFloatingIP) (ne $port (int $server.port)) -}}
{{- fail (printf "controlPlane.kubeadmConfigSpec.%s.localAPIEndpoint.bindPort is %d, but load balancer and floating IP lead to apiServer.port %d: give both the same." $where $port (int $server.port)) -}}
{{- end -}}
{{- end -}}
{{- with get (include "openstack-cluster.controlPlane.flags" (dict "root" . "program" "apiServer") | fromYaml) "secure-port" -}}
{{- if ne . (toString $first) -}}
{{- fail (printf "apiServer.extraArgs, or clusterConfiguration.apiServer.extraArgs of kubeadmConfigSpec, sets secure-port to %s, but kubeadm looks for the API server at %d: use apiServer.port." . $first) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The key that gives a flag. Argument: the flag. */}}
{{- define "openstack-cluster.flagKey" -}}
{{- $flag := . -}}
{{- range $pattern, $key := dict
      "^v$" "apiServer.logLevel"
      "^oidc-" "oidc"
      "^authorization-config$|^authentication-token-webhook-" "authWebhook"
      "^admission-control-" "apiServer.admissionConfiguration"
      "^audit-" "apiServer.audit"
      "^encryption-" "etcd.encryption"
      "^tls-|^cipher-suites$" "tls" -}}
{{- if regexMatch $pattern $flag -}}{{ $key }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* What kubeadmConfigSpec may not say of the control plane: Cluster API drops it, or another key must agree with it. */}}
{{- define "openstack-cluster.validate.clusterConfiguration" -}}
{{- $spec := .Values.controlPlane.kubeadmConfigSpec | default dict -}}
{{- $own := $spec.clusterConfiguration | default dict -}}
{{- if and .Release.IsInstall ($own.etcd).external ($own.etcd).local -}}
{{- fail "controlPlane.kubeadmConfigSpec.clusterConfiguration.etcd has external and local, and only external would be used: leave one of them out." -}}
{{- end -}}
{{- $health := "controlPlaneComponentHealthCheckSeconds" -}}
{{- if ne (toJson (get (($spec.initConfiguration).timeouts | default dict) $health | default "")) (toJson (get (($spec.joinConfiguration).timeouts | default dict) $health | default "")) -}}
{{- fail (printf "controlPlane.kubeadmConfigSpec.initConfiguration.timeouts.%s differs from that of joinConfiguration, and Cluster API takes both alike only: give both the same." $health) -}}
{{- end -}}
{{- with (($own.etcd | default dict).local | default dict).dataDir -}}
{{- fail (printf "controlPlane.kubeadmConfigSpec.clusterConfiguration.etcd.local.dataDir is %s, but a disk is mounted at etcd.dataDir: use that key." .) -}}
{{- end -}}
{{- if and (eq (include "openstack-cluster.api.core" .) "v1beta2") (($own.apiServer | default dict).timeoutForControlPlane) -}}
{{- fail "controlPlane.kubeadmConfigSpec.clusterConfiguration.apiServer.timeoutForControlPlane is not known in core v1beta2: use timeouts.controlPlaneComponentHealthCheckSeconds of initConfiguration and joinConfiguration." -}}
{{- end -}}
{{- range $program := list "apiServer" "controllerManager" "scheduler" -}}
{{- include "openstack-cluster.validate.flagList" (dict "where" $program "flags" (get $own $program | default dict).extraArgs) -}}
{{- end -}}
{{- include "openstack-cluster.validate.flagList" (dict "where" "etcd.local" "flags" (($own.etcd | default dict).local | default dict).extraArgs) -}}
{{- end -}}

{{/* Arguments: where (below clusterConfiguration), flags (a map, a list, or nothing). */}}
{{- define "openstack-cluster.validate.flagList" -}}
{{- $where := .where -}}
{{- if kindIs "slice" .flags -}}
{{- $seen := dict -}}
{{- range .flags -}}
{{- if hasKey $seen .name -}}
{{- fail (printf "controlPlane.kubeadmConfigSpec.clusterConfiguration.%s.extraArgs sets %s twice: Cluster API takes a flag once." $where .name) -}}
{{- end -}}
{{- $_ := set $seen .name true -}}
{{- end -}}
{{- end -}}
{{- end -}}
