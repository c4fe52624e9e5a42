{{/* The bastion, from which the other machines are reached by SSH. Arguments: root, api. */}}
{{- define "openstack-cluster.bastion" -}}
{{- $bastion := .root.Values.bastion -}}
enabled: {{ $bastion.enabled }}
{{- if $bastion.enabled }}
spec: {{- include "openstack-cluster.machine" (dict "root" .root "api" .api "values" $bastion) | nindent 2 }}
{{- with $bastion.availabilityZone }}
availabilityZone: {{ . | quote }}
{{- end }}
{{- with $bastion.floatingIP }}
floatingIP: {{ . | quote }}
{{- end }}
{{- end }}
{{- end -}}
