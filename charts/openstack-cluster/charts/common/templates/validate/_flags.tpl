{{/* Rules for the flags of Kubernetes' programs. */}}

{{/* A flag is set in one place. */}}
{{- define "openstack-cluster.validate.flags" -}}
{{- $tls := include "openstack-cluster.flags.tls" . | fromJson -}}
{{- range $where, $given := dict
      "apiServer" (merge (include "openstack-cluster.flags.apiServer" . | fromYaml) $tls)
      "controllerManager" $tls
      "scheduler" $tls
      "etcd" (include "openstack-cluster.flags.etcd" . | fromJson) -}}
{{- $extraArgs := (get $.Values $where | default dict).extraArgs -}}
{{- range $flag, $_ := $extraArgs -}}
{{- if hasKey $given $flag -}}
{{- fail (printf "%s.extraArgs sets %s, which %s also sets: use one of them." $where $flag (include "openstack-cluster.validate.flagKey" $flag)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Flags of the programs after all merges. Argument: root. */}}
{{- define "openstack-cluster.validate.programs" -}}
{{- $flags := dict -}}
{{- range $program := list "apiServer" "controllerManager" "scheduler" "etcd" -}}
{{- $_ := set $flags $program (include "openstack-cluster.controlPlane.flags" (dict "root" $ "program" $program) | fromYaml) -}}
{{- end -}}
{{- $server := $flags.apiServer -}}
{{- $source := "apiServer.extraArgs, or clusterConfiguration.apiServer.extraArgs of kubeadmConfigSpec, sets" -}}
{{- if and (get $server "authentication-config") (regexMatch "[{,]\"oidc-" (toJson $server)) -}}
{{- fail (printf "%s authentication-config, which the API server refuses together with the flags of oidc: configure the issuer in that file, or use oidc." $source) -}}
{{- end -}}
{{- range $flag := list "authorization-mode" "authorization-webhook-config-file" "authorization-webhook-version"
      "authorization-webhook-cache-authorized-ttl" "authorization-webhook-cache-unauthorized-ttl" -}}
{{- if and (get $server "authorization-config") (hasKey $server $flag) -}}
{{- fail (printf "%s %s, which the API server refuses together with an authorization file (authWebhook is %s): use one of them." $source $flag $.Values.authWebhook) -}}
{{- end -}}
{{- end -}}
{{- include "openstack-cluster.validate.port" (dict "root" . "flags" $server "source" $source) -}}
{{- $elsewhere := (((.Values.controlPlane.kubeadmConfigSpec).clusterConfiguration).etcd).external -}}
{{- /* A running cluster may have a patch of kubeadm's that mounts its own directory. */ -}}
{{- $new := or .Release.IsInstall (hasKey (.Values.etcd.extraArgs | default dict) "data-dir") -}}
{{- if and $new (hasKey $flags.etcd "data-dir") (not $elsewhere) -}}
{{- $directory := get $flags.etcd "data-dir" -}}
{{- if not (hasPrefix (printf "%s/" (trimSuffix "/" .Values.etcd.dataDir)) (printf "%s/" $directory)) -}}
{{- fail (printf "etcd.extraArgs, or clusterConfiguration.etcd.local.extraArgs of kubeadmConfigSpec, sets data-dir to %q, but only etcd.dataDir (%s) is kept when etcd restarts: use that key." $directory .Values.etcd.dataDir) -}}
{{- end -}}
{{- end -}}
{{- if and (.Values.tls).cipherSuites (eq (toString (.Values.tls).minVersion) "VersionTLS13") -}}
{{- fail "tls.cipherSuites cannot be set for TLS 1.3, and tls.minVersion is VersionTLS13: remove one of them." -}}
{{- end -}}
{{- range $program, $name := dict "apiServer" "the API server" "controllerManager" "the controller manager" "scheduler" "the scheduler" -}}
{{- $programFlags := get $flags $program -}}
{{- if not (has (get $programFlags "disable-http2-serving") (list "true" "True" "TRUE" "t" "T" "1")) -}}
{{- include "openstack-cluster.validate.suites" (dict "root" $ "program" $name "flags" $programFlags "flag" "tls-cipher-suites") -}}
{{- end -}}
{{- end -}}
{{- if not $elsewhere -}}
{{- if and (hasKey $flags.etcd "cipher-suites") (eq (get $flags.etcd "tls-min-version") "TLS1.3") -}}
{{- fail "etcd does not accept cipher-suites together with tls-min-version TLS1.3, and has both from tls, etcd.extraArgs and clusterConfiguration.etcd.local.extraArgs of kubeadmConfigSpec together: remove one of them." -}}
{{- end -}}
{{- /* etcd speaks HTTP/2 of Go's server only where it serves HTTP by TLS. */ -}}
{{- if not (hasPrefix "http://" (get $flags.etcd "listen-client-http-urls")) -}}
{{- include "openstack-cluster.validate.suites" (dict "root" . "program" "etcd" "flags" $flags.etcd "flag" "cipher-suites") -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
The same for kubelets. An existing cluster creates no first machine any more.
Arguments: root, where (text), role (controlPlane or worker), values (control plane or node group).
*/}}
{{- define "openstack-cluster.validate.kubelet" -}}
{{- $where := .where -}}
{{- $machine := dict "root" .root "core" "v1beta1" "role" .role "values" .values -}}
{{- $passthrough := .values.kubeadmConfigSpec | default dict -}}
{{- if or (.root.Values.tls).cipherSuites (contains "tls-cipher-suites" (toJson (list (.root.Values.kubelet).extraArgs .values.kubeletExtraArgs $passthrough))) -}}
{{- $sections := list "joinConfiguration" -}}
{{- if and .root.Release.IsInstall (eq .role "controlPlane") -}}
{{- $sections = append $sections "initConfiguration" -}}
{{- end -}}
{{- range $sections -}}
{{- $flags := include "openstack-cluster.kubeadm.kubeletArgs" (dict "machine" $machine "passthrough" ((get $passthrough . | default dict).nodeRegistration | default dict)) | fromYaml -}}
{{- include "openstack-cluster.validate.suites" (dict "root" $machine.root "program" (printf "the kubelet (%s)" $where) "flags" $flags "flag" "tls-cipher-suites") -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Go's HTTP/2 asks for one of two suites, and a server without them does not start. TLS 1.3 alone has no list.
Arguments: root, program (text), flags (a map), flag (the name of the one with suites).
Source: https://pkg.go.dev/golang.org/x/net/http2#ConfigureServer
*/}}
{{- define "openstack-cluster.validate.suites" -}}
{{- $needed := list "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256" -}}
{{- $given := get .flags .flag -}}
{{- $suites := splitList "," $given -}}
{{- if not (or (not (hasKey .flags .flag)) (and (not $given) (ne .program "etcd")) (eq (get .flags "tls-min-version") "VersionTLS13") (has (first $needed) $suites) (has (last $needed) $suites)) -}}
{{- $where := and (ne $given "") (eq $given (join "," (.root.Values.tls).cipherSuites)) | ternary "tls.cipherSuites" (printf "The flag %s of %s" .flag .program) -}}
{{- fail (printf "%s has neither %s, and without one of them %s does not start (HTTP/2): add one." $where (join " nor " $needed) .program) -}}
{{- end -}}
{{- end -}}

{{/*
kubeadm and the kubelet look for the API server at bindPort, load balancer and floating IP lead to apiServer.port.
Arguments: root, flags (of the API server), source (text: the keys that may set them).
*/}}
{{- define "openstack-cluster.validate.port" -}}
{{- $server := .root.Values.apiServer -}}
{{- $spec := .root.Values.controlPlane.kubeadmConfigSpec | default dict -}}
{{- $first := int (($spec.initConfiguration).localAPIEndpoint).bindPort | default (int $server.port) -}}
{{- $others := int ((($spec.joinConfiguration).controlPlane).localAPIEndpoint).bindPort | default (int $server.port) -}}
{{- range $where, $port := dict "initConfiguration" $first "joinConfiguration.controlPlane" $others -}}
{{- if and (or $server.enableLoadBalancer $server.associateFloatingIP) (ne $port (int $server.port)) -}}
{{- fail (printf "controlPlane.kubeadmConfigSpec.%s.localAPIEndpoint.bindPort is %d, but load balancer and floating IP forward to apiServer.port %d: set both to the same value." $where $port (int $server.port)) -}}
{{- end -}}
{{- end -}}
{{- /* A cluster that is there makes no first machine any more, and one of one machine may never have made another. */ -}}
{{- if hasKey .flags "secure-port" -}}
{{- $port := get .flags "secure-port" -}}
{{- $elsewhere := without (list $first $others) (atoi $port) -}}
{{- if gt (len $elsewhere) (.root.Release.IsInstall | ternary 0 1) -}}
{{- fail (printf "%s secure-port to %q, but kubeadm expects the API server at %d: use apiServer.port." .source $port (first $elsewhere)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The key that gives a flag. Argument: the flag. */}}
{{- define "openstack-cluster.validate.flagKey" -}}
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
