{{/*
Flags of the control plane's programs that keys of the values set, as YAML maps. Argument: root.
extraArgs may not set these flags too (validate/_flags.tpl).
*/}}

{{- define "openstack-cluster.flags.apiServer" -}}
{{- $values := .Values -}}
{{- if not (kindIs "invalid" $values.apiServer.logLevel) }}
v: {{ $values.apiServer.logLevel | int | quote }}
{{- end }}
{{- with $values.oidc }}
{{- if .issuerUrl }}
oidc-issuer-url: {{ .issuerUrl | quote }}
oidc-client-id: {{ .clientId | quote }}
{{- with .usernameClaim }}
oidc-username-claim: {{ . | quote }}
{{- end }}
{{- with .usernamePrefix }}
oidc-username-prefix: {{ . | quote }}
{{- end }}
{{- with .groupsClaim }}
oidc-groups-claim: {{ . | quote }}
{{- end }}
{{- with .groupsPrefix }}
oidc-groups-prefix: {{ . | quote }}
{{- end }}
{{- with .signingAlgs }}
oidc-signing-algs: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- if eq $values.authWebhook "k8s-keystone-auth" }}
authentication-token-webhook-config-file: {{ include "openstack-cluster.webhooks.keystone.directory" . }}/webhook.kubeconfig
authorization-config: {{ include "openstack-cluster.webhooks.keystone.directory" . }}/authorization.yaml
{{- else if eq $values.authWebhook "azimuth-authorization-webhook" }}
authorization-config: {{ include "openstack-cluster.webhooks.azimuth.directory" . }}/authorization.yaml
{{- end }}
{{- if $values.apiServer.admissionConfiguration }}
admission-control-config-file: {{ include "openstack-cluster.controlPlane.admission.path" . }}
{{- end }}
{{- with $values.apiServer.audit }}
{{- if .policy }}
audit-policy-file: {{ include "openstack-cluster.controlPlane.audit.policyPath" $ }}
audit-log-path: {{ (.log).path | default "-" | quote }}
{{- if ne ((.log).path | default "-") "-" }}
audit-log-maxage: {{ .log.maxAge | int | quote }}
audit-log-maxbackup: {{ .log.maxBackup | int | quote }}
audit-log-maxsize: {{ .log.maxSize | int | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- if ($values.etcd.encryption).enabled }}
encryption-provider-config: {{ include "openstack-cluster.encryption.directory" . }}/configuration.yaml
{{- end }}
{{- end -}}

{{/*
TLS flags, as JSON: the API server, controller manager, scheduler and kubelet know the same flags.
*/}}
{{- define "openstack-cluster.flags.tls" -}}
{{- $flags := dict -}}
{{- with (.Values.tls).cipherSuites -}}
{{- $_ := set $flags "tls-cipher-suites" (join "," .) -}}
{{- end -}}
{{- with (.Values.tls).minVersion -}}
{{- $_ := set $flags "tls-min-version" . -}}
{{- end -}}
{{ toJson $flags }}
{{- end -}}

{{/* The same of etcd, which has flags of its own, and calls VersionTLS12 TLS1.2. */}}
{{- define "openstack-cluster.flags.etcd" -}}
{{- $flags := dict -}}
{{- with (.Values.tls).cipherSuites -}}
{{- $_ := set $flags "cipher-suites" (join "," .) -}}
{{- end -}}
{{- with (.Values.tls).minVersion -}}
{{- $_ := set $flags "tls-min-version" (replace "VersionTLS1" "TLS1." .) -}}
{{- end -}}
{{ toJson $flags }}
{{- end -}}

{{/*
Flags of a program of the control plane as Cluster API takes them, the nearer ones winning: the chart's, extraArgs of
the program, and the operator's kubeadmConfigSpec.
Arguments: root, core, program (apiServer, controllerManager, scheduler or etcd).
*/}}
{{- define "openstack-cluster.controlPlane.args" -}}
{{- $passthrough := (.root.Values.controlPlane.kubeadmConfigSpec).clusterConfiguration | default dict -}}
{{- $component := get $passthrough .program | default dict -}}
{{- $flags := list (include "openstack-cluster.flags.tls" .root | fromJson) -}}
{{- if eq .program "etcd" -}}
{{- $component = $component.local | default dict -}}
{{- $flags = list (include "openstack-cluster.flags.etcd" .root | fromJson) -}}
{{- else if eq .program "apiServer" -}}
{{- $flags = append $flags (include "openstack-cluster.flags.apiServer" .root | fromYaml) -}}
{{- else -}}
{{- $flags = append $flags (dict "bind-address" "0.0.0.0") -}}
{{- if eq .program "controllerManager" -}}
{{- $flags = append $flags (dict "cloud-provider" "external") -}}
{{- end -}}
{{- end -}}
{{- $flags = concat $flags (list (get .root.Values .program | default dict).extraArgs $component.extraArgs) -}}
{{- include "openstack-cluster.flags.merged" (dict "core" .core "flags" $flags) -}}
{{- end -}}

{{/* The same as a YAML map, for rules between flags and other values. Arguments: root, program. */}}
{{- define "openstack-cluster.controlPlane.flags" -}}
{{- include "openstack-cluster.controlPlane.args" (dict "root" .root "core" "v1beta1" "program" .program) -}}
{{- end -}}

{{/*
Flags of a program as Cluster API takes them. Each map or list of name and value is merged over the one
before it; null removes a flag. Arguments: core, flags (list, the weakest first).
*/}}
{{- define "openstack-cluster.flags.merged" -}}
{{- $args := dict -}}
{{- range .flags -}}
{{- $given := . -}}
{{- if kindIs "slice" . -}}
{{- $given = dict -}}
{{- range . -}}
{{- $_ := set $given .name .value -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := $given -}}
{{- if kindIs "invalid" $value -}}
{{- $_ := unset $args $name -}}
{{- else -}}
{{- $_ := set $args $name (kindIs "string" $value | ternary $value (toJson $value)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "openstack-cluster.api.args" (dict "core" .core "args" $args) | trim -}}
{{- end -}}
