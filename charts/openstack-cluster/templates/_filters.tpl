{{/*
How the OpenStack provider is told which network, subnet, router or security group is meant, and the ports of
machines. What its older versions took (what stands in a filter without the word, tags in one text, hostId,
securityGroupFilters) becomes what it takes now.
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

{{/* Arguments: api, ports (list). */}}
{{- define "openstack-cluster.ports" -}}
{{- range .ports }}
- {{ include "openstack-cluster.port" (dict "api" $.api "port" .) | fromYaml | toJson }}
{{- end }}
{{- end -}}

{{/* An empty port is one on the cluster's network. Arguments: api, port. */}}
{{- define "openstack-cluster.port" -}}
{{- range $key, $value := omit .port "network" "fixedIPs" "securityGroups" "securityGroupFilters" "hostId" "disablePortSecurity" }}
{{ $key }}: {{ toJson $value }}
{{- end }}
{{- with .port.network }}
network: {{- include "openstack-cluster.filter" . | nindent 2 }}
{{- end }}
{{- with .port.fixedIPs }}
fixedIPs:
  {{- range . }}
  - {{ include "openstack-cluster.port.fixedIP" . | fromYaml | toJson }}
  {{- end }}
{{- end }}
{{- if or (hasKey .port "securityGroups") (hasKey .port "securityGroupFilters") }}
# The provider takes an empty list for none, but templates that have one keep their names.
securityGroups: {{- include "openstack-cluster.filters" (concat (.port.securityGroups | default list) (.port.securityGroupFilters | default list)) | default "[]" | nindent 2 }}
{{- end }}
{{- with .port.hostId }}
hostID: {{ . | quote }}
{{- end }}
{{- if and (hasKey .port "disablePortSecurity") (eq .api "v1beta2") }}
enablePortSecurity: {{ not .port.disablePortSecurity }}
{{- else if hasKey .port "disablePortSecurity" }}
disablePortSecurity: {{ .port.disablePortSecurity }}
{{- end }}
{{- end -}}

{{/* Argument: ipAddress, subnet. */}}
{{- define "openstack-cluster.port.fixedIP" -}}
{{- with .ipAddress }}
ipAddress: {{ . | quote }}
{{- end }}
{{- with .subnet }}
subnet: {{- include "openstack-cluster.filter" . | nindent 2 }}
{{- end }}
{{- end -}}
