{{/* How the control plane changes and heals. Arguments: core, from (controlPlane of the values). */}}
{{- define "openstack-cluster.controlPlane.rollout" -}}
{{- $remediation := .from.remediationStrategy -}}
{{- if eq .core "v1beta2" -}}
rollout:
  {{- with .from.rolloutAfter }}
  after: {{ . | quote }}
  {{- end }}
  {{- if .from.certificatesExpiryDays }}
  before:
    certificatesExpiryDays: {{ .from.certificatesExpiryDays | int }}
  {{- end }}
  {{- with .from.rolloutStrategy }}
  strategy: {{ toJson . }}
  {{- end }}
{{- with $remediation }}
remediation:
  {{- if not (kindIs "invalid" .maxRetry) }}
  maxRetry: {{ .maxRetry | int }}
  {{- end }}
  {{- with .retryPeriod }}
  retryPeriodSeconds: {{ include "openstack-cluster.seconds" . }}
  {{- end }}
  {{- with .minHealthyPeriod }}
  minHealthyPeriodSeconds: {{ include "openstack-cluster.seconds" . }}
  {{- end }}
{{- end }}
{{- else -}}
{{- with .from.rolloutAfter -}}
rolloutAfter: {{ . | quote }}
{{ end -}}
{{- if .from.certificatesExpiryDays -}}
rolloutBefore:
  certificatesExpiryDays: {{ .from.certificatesExpiryDays | int }}
{{ end -}}
{{- with .from.rolloutStrategy -}}
rolloutStrategy: {{ toJson . }}
{{ end -}}
{{- with $remediation -}}
remediationStrategy: {{ toJson . }}
{{- end -}}
{{- end -}}
{{- end -}}
