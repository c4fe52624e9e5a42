{{/*
Ports of machines. What older versions of the OpenStack provider took (hostId, securityGroupFilters) becomes what it
takes now.
*/}}

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
