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
  strategy: {{- toYaml .from.rolloutStrategy | nindent 4 }}
remediation:
  maxRetry: {{ $remediation.maxRetry | int }}
  retryPeriodSeconds: {{ include "openstack-cluster.seconds" $remediation.retryPeriod }}
  minHealthyPeriodSeconds: {{ include "openstack-cluster.seconds" $remediation.minHealthyPeriod }}
{{- else -}}
{{- with .from.rolloutAfter -}}
rolloutAfter: {{ . | quote }}
{{ end -}}
{{- if .from.certificatesExpiryDays -}}
rolloutBefore:
  certificatesExpiryDays: {{ .from.certificatesExpiryDays | int }}
{{ end -}}
rolloutStrategy: {{- toYaml .from.rolloutStrategy | nindent 2 }}
remediationStrategy: {{- toYaml $remediation | nindent 2 }}
{{- end -}}
{{- end -}}
