{{/* A scalar as text: no number is written like 1e+07. */}}
{{- define "openstack-cluster.text" -}}
{{- if kindIs "string" . -}}
{{ . }}
{{- else -}}
{{ toJson . }}
{{- end -}}
{{- end -}}

{{/* A certificate in PEM, as a regular expression. */}}
{{- define "openstack-cluster.certificates.block" -}}
-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----
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
