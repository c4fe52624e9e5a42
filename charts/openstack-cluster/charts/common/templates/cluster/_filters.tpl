{{/*
References to a network, subnet, router or security group, as the OpenStack provider takes them. What its older
versions took (keys of a filter without the key filter, tags in one text) becomes what it takes now.
*/}}

{{/* By id, or else by everything that was given. Argument: the filter. */}}
{{- define "openstack-cluster.filter" -}}
{{- if .id -}}
id: {{ .id | quote }}
{{- else -}}
filter:
  {{- range $key, $value := .filter | default . }}
  {{- if and (hasPrefix "tags" (lower $key | trimPrefix "not")) (kindIs "string" $value) }}
  {{ $key }}: {{ splitList "," $value | compact | toJson }}
  {{- else }}
  {{ $key }}: {{ toJson $value }}
  {{- end }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* Argument: list of filters. */}}
{{- define "openstack-cluster.filters" -}}
{{- range . }}
- {{- include "openstack-cluster.filter" . | nindent 2 }}
{{- end }}
{{- end -}}
