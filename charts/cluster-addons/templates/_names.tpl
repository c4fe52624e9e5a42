{{/*
Names and labels of all objects. The addon operator puts names of Secrets into annotation keys, which end at 63
characters; labels do too.
*/}}

{{/*
The parts joined by "-". What would be too long is shortened and ends in a hash of the whole name.
Argument: list of text.
*/}}
{{- define "cluster-addons.name" -}}
{{- $name := join "-" . -}}
{{- if le (len $name) 63 -}}
{{ $name }}
{{- else -}}
{{ $name | trunc 54 | trimSuffix "-" }}-{{ sha256sum $name | trunc 8 }}
{{- end -}}
{{- end -}}

{{- define "cluster-addons.clusterName" -}}
{{ .Values.clusterName | default .Release.Name }}
{{- end -}}

{{/* Arguments: root, component. */}}
{{- define "cluster-addons.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimAll "-_." | quote }}
capi.stackhpc.com/managed-by: {{ .root.Release.Service }}
capi.stackhpc.com/cluster: {{ include "cluster-addons.clusterName" .root | quote }}
capi.stackhpc.com/component: {{ .component | quote }}
{{- end -}}
