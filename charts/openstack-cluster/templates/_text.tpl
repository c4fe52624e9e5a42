{{/* A scalar as text: no number is written like 1e+07. */}}
{{- define "openstack-cluster.text" -}}
{{- if kindIs "string" . -}}
{{ . }}
{{- else -}}
{{ toJson . }}
{{- end -}}
{{- end -}}
