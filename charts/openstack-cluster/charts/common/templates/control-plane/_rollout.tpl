{{/* Rollout and remediation of the control plane. Arguments: core, values (controlPlane of the values). */}}
{{- define "openstack-cluster.controlPlane.rollout" -}}
{{- $remediation := .values.remediationStrategy -}}
{{- if eq .core "v1beta2" -}}
rollout:
  {{- with .values.rolloutAfter }}
  after: {{ . | quote }}
  {{- end }}
  {{- if .values.certificatesExpiryDays }}
  before:
    certificatesExpiryDays: {{ .values.certificatesExpiryDays | int }}
  {{- end }}
  {{- with .values.rolloutStrategy }}
  strategy: {{ toJson . }}
  {{- end }}
{{- with $remediation }}
remediation:
  {{- if not (kindIs "invalid" .maxRetry) }}
  maxRetry: {{ .maxRetry | int }}
  {{- end }}
  {{- with .retryPeriod }}
  retryPeriodSeconds: {{ include "openstack-cluster.api.seconds" . }}
  {{- end }}
  {{- with .minHealthyPeriod }}
  minHealthyPeriodSeconds: {{ include "openstack-cluster.api.seconds" . }}
  {{- end }}
{{- end }}
{{- else -}}
{{- with .values.rolloutAfter -}}
rolloutAfter: {{ . | quote }}
{{ end -}}
{{- if .values.certificatesExpiryDays -}}
rolloutBefore:
  certificatesExpiryDays: {{ .values.certificatesExpiryDays | int }}
{{ end -}}
{{- with .values.rolloutStrategy -}}
rolloutStrategy: {{ toJson . }}
{{ end -}}
{{- with $remediation -}}
remediationStrategy: {{ toJson . }}
{{- end -}}
{{- end -}}
{{- end -}}
