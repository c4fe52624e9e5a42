{{/* Rules for what kubeadm is told about the control plane. Argument: root. */}}
{{- define "openstack-cluster.validate.controlPlane" -}}
{{- include "openstack-cluster.validate.oidc" (.Values.oidc | default dict) -}}
{{- include "openstack-cluster.validate.authWebhook" . -}}
{{- include "openstack-cluster.validate.encryption" (.Values.etcd.encryption | default dict) -}}
{{- include "openstack-cluster.validate.certificates" .Values.controlPlane -}}
{{- include "openstack-cluster.validate.flags" . -}}
{{- include "openstack-cluster.validate.hostPaths" . -}}
{{- include "openstack-cluster.validate.clusterConfiguration" . -}}
{{- if and (.Values.tls).cipherSuites (eq (toString (.Values.tls).minVersion) "VersionTLS13") -}}
{{- fail "tls.cipherSuites cannot be chosen for TLS 1.3, and tls.minVersion is VersionTLS13: leave one of them out." -}}
{{- end -}}
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
{{- if and .writePlain (not .enabled) -}}
{{- fail "etcd.encryption.writePlain is true, but etcd.encryption.enabled is false, so nothing encrypted could be read: set enabled to true, or writePlain to false." -}}
{{- end -}}
{{- end -}}

{{/* Cluster API replaces a machine whose certificates end soon, also when it is a minute old. */}}
{{- define "openstack-cluster.validate.certificates" -}}
{{- if .certificateValidityDays -}}
{{- if le (int .certificateValidityDays) (int .certificatesExpiryDays) -}}
{{- fail (printf "controlPlane.certificateValidityDays is %d, but machines are replaced %d days before that (controlPlane.certificatesExpiryDays), so without end: let certificates live longer." (int .certificateValidityDays) (int .certificatesExpiryDays)) -}}
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
{{- range $flag := list "authorization-mode" "authorization-webhook-config-file" -}}
{{- if and (ne $.Values.authWebhook "none") (hasKey $own $flag) -}}
{{- fail (printf "apiServer.extraArgs sets %s, which the API server refuses beside the authorization file of authWebhook %s: use one of them." $flag $.Values.authWebhook) -}}
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

{{/* Kubernetes takes no pod with two volumes of a name, or two at a place. */}}
{{- define "openstack-cluster.validate.hostPaths" -}}
{{- range $where, $chart := dict
      "apiServer" (include "openstack-cluster.apiServer.volumes" . | fromYamlArray)
      "controllerManager" list
      "scheduler" list -}}
{{- $seen := dict -}}
{{- range $chart -}}
{{- if hasKey $seen .mountPath -}}
{{- fail (printf "apiServer.audit.log.path is in %s, which the chart uses for something else: choose another directory." .mountPath) -}}
{{- end -}}
{{- $_ := set $seen .mountPath true -}}
{{- end -}}
{{- $seen = dict -}}
{{- range concat $chart ((get $.Values $where | default dict).extraVolumes | default list) -}}
{{- range $what := list .name .mountPath -}}
{{- if hasKey $seen $what -}}
{{- fail (printf "%s.extraVolumes has %q twice, or the chart itself has it: give each volume a name and a mountPath of its own." $where $what) -}}
{{- end -}}
{{- $_ := set $seen $what true -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What kubeadmConfigSpec may not say of the control plane: Cluster API drops it, or another key must agree with it. */}}
{{- define "openstack-cluster.validate.clusterConfiguration" -}}
{{- $spec := .Values.controlPlane.kubeadmConfigSpec | default dict -}}
{{- $own := $spec.clusterConfiguration | default dict -}}
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
