{{/*
Flags that the values' own keys give to the control plane's programs, as YAML maps. Argument: root.
A flag that stands here may not come by extraArgs too (validate.yaml).
*/}}

{{- define "openstack-cluster.apiServer.flags" -}}
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
authentication-token-webhook-config-file: {{ include "openstack-cluster.keystoneAuth.directory" . }}/webhook.kubeconfig
authorization-config: {{ include "openstack-cluster.keystoneAuth.directory" . }}/authorization.yaml
{{- else if eq $values.authWebhook "azimuth-authorization-webhook" }}
authorization-config: {{ include "openstack-cluster.azimuthWebhook.directory" . }}/authorization.yaml
{{- end }}
{{- if $values.apiServer.admissionConfiguration }}
admission-control-config-file: {{ include "openstack-cluster.admission.path" . }}
{{- end }}
{{- with $values.apiServer.audit }}
{{- if .policy }}
audit-policy-file: {{ include "openstack-cluster.audit.policyPath" $ }}
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
What Kubernetes' servers speak, as JSON: the API server, controller manager, scheduler and kubelet know the same flags.
*/}}
{{- define "openstack-cluster.tls.flags" -}}
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
{{- define "openstack-cluster.etcd.flags" -}}
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
Flags of a program as Cluster API takes them. A map or list of name and value is laid over the one before it; a
null takes a flag away. Arguments: core, flags (list, the weakest first).
*/}}
{{- define "openstack-cluster.kubeadm.args" -}}
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
{{- include "openstack-cluster.args" (dict "core" .core "args" $args) | trim -}}
{{- end -}}
