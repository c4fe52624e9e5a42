{{/*
Rollout of a node group. Arguments: core, group.
*/}}
{{- define "openstack-cluster.nodeGroup.rollout" -}}
{{- $strategy := .group.rolloutStrategy -}}
{{- $rolling := $strategy.rollingUpdate | default dict -}}
{{- if eq .core "v1beta2" -}}
rollout:
  {{- with .group.rolloutAfter }}
  after: {{ . | quote }}
  {{- end }}
  strategy:
    type: {{ $strategy.type }}
    {{- if eq $strategy.type "RollingUpdate" }}
    {{- with omit $rolling "deletePolicy" }}
    rollingUpdate: {{ toJson . }}
    {{- end }}
    {{- end }}
{{- with $rolling.deletePolicy }}
deletion:
  order: {{ . }}
{{- end }}
{{- with ($strategy.remediation | default dict).maxInFlight }}
remediation:
  maxInFlight: {{ toJson . }}
{{- end }}
{{- else -}}
{{- with .group.rolloutAfter -}}
rolloutAfter: {{ . | quote }}
{{ end -}}
{{- with .group.minReadySeconds -}}
minReadySeconds: {{ . | int }}
{{ end -}}
strategy:
  type: {{ $strategy.type }}
  {{- if and $rolling (eq $strategy.type "RollingUpdate") }}
  rollingUpdate: {{ toJson $rolling }}
  {{- else if $rolling.deletePolicy }}
  rollingUpdate:
    deletePolicy: {{ $rolling.deletePolicy }}
  {{- end }}
  {{- with ($strategy.remediation | default dict).maxInFlight }}
  remediation:
    maxInFlight: {{ toJson . }}
  {{- end }}
{{- end -}}
{{- end -}}
