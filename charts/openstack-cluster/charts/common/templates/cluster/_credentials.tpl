{{/* The credential of the cloud, and the annotations that decide on its deletion. */}}

{{/* The Secret with clouds.yaml: the one that the values name, or else the chart's own. Argument: root. */}}
{{- define "openstack-cluster.credentials.name" -}}
{{- if .Values.cloudCredentialsSecretName -}}
{{ .Values.cloudCredentialsSecretName }}
{{- else -}}
{{- include "openstack-cluster.name" (dict "parts" (list .Release.Name "cloud-credentials")) -}}
{{- end -}}
{{- end -}}

{{/* The prefix of the annotations that cluster-api-janitor-openstack reads, whatever projectPrefix is. */}}
{{- define "openstack-cluster.credentials.janitor" -}}
janitor.capi.stackhpc.com
{{- end -}}
