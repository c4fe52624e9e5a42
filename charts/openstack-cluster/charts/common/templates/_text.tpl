{{/* A scalar as text: no number is written like 1e+07. */}}
{{- define "openstack-cluster.text" -}}
{{- if kindIs "string" . -}}
{{ . }}
{{- else -}}
{{ toJson . }}
{{- end -}}
{{- end -}}

{{/* A certificate in PEM that OpenSSL reads, as a regular expression: lines, and none of them is empty. */}}
{{- define "openstack-cluster.certificates.block" -}}
-----BEGIN CERTIFICATE-----[ \t\r]*\n\s*([ \t]*[A-Za-z0-9+/=][A-Za-z0-9+/= \t]*\r?\n)+-----END CERTIFICATE-----
{{- end -}}

{{/*
The certificates in a text, which may explain them, as authorities and "openssl x509 -text" do (RFC 7468, section 2).
A text of certificates only stays as it is, so that no machine is replaced for other blank lines. Argument: text.
*/}}
{{- define "openstack-cluster.certificates" -}}
{{- $block := include "openstack-cluster.certificates.block" . -}}
{{- if regexMatch (printf "^\\s*(%s\\s*)+$" $block) . -}}
{{ trim . }}
{{- else -}}
{{ regexFindAll $block . -1 | join "\n" }}
{{- end -}}
{{- end -}}
