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
Flags of a program of the control plane as Cluster API takes them, the nearer ones winning: the chart's, extraArgs of the
program, and the operator's kubeadmConfigSpec.
Arguments: root, core, program (apiServer, controllerManager, scheduler or etcd).
*/}}
{{- define "openstack-cluster.controlPlane.args" -}}
{{- $own := (.root.Values.controlPlane.kubeadmConfigSpec).clusterConfiguration | default dict -}}
{{- $said := get $own .program | default dict -}}
{{- $flags := list (include "openstack-cluster.tls.flags" .root | fromJson) -}}
{{- if eq .program "etcd" -}}
{{- $said = $said.local | default dict -}}
{{- $flags = list (include "openstack-cluster.etcd.flags" .root | fromJson) -}}
{{- else if eq .program "apiServer" -}}
{{- $flags = append $flags (include "openstack-cluster.apiServer.flags" .root | fromYaml) -}}
{{- else -}}
{{- $flags = append $flags (dict "bind-address" "0.0.0.0") -}}
{{- if eq .program "controllerManager" -}}
{{- $flags = append $flags (dict "cloud-provider" "external") -}}
{{- end -}}
{{- end -}}
{{- $flags = concat $flags (list (get .root.Values .program | default dict).extraArgs $said.extraArgs) -}}
{{- include "openstack-cluster.kubeadm.args" (dict "core" .core "flags" $flags) -}}
{{- end -}}

{{/* The same as a YAML map, for rules between flags and other values. Arguments: root, program. */}}
{{- define "openstack-cluster.controlPlane.flags" -}}
{{- include "openstack-cluster.controlPlane.args" (dict "root" .root "core" "v1beta1" "program" .program) -}}
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
