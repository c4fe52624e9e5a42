{{/*
The body of a MachineHealthCheck's spec below its selector. A server that never came up shows as the machine
condition InfrastructureReady=False; only core v1beta2 (CAPI 1.12) can look at it.
Arguments: core, check (healthCheck of the values).
*/}}
{{- define "openstack-cluster.healthCheck" -}}
{{- $spec := .check.spec -}}
{{- if eq .core "v1beta2" -}}
checks:
  nodeStartupTimeoutSeconds: {{ include "openstack-cluster.seconds" $spec.nodeStartupTimeout }}
  {{- with $spec.unhealthyConditions }}
  unhealthyNodeConditions:
    {{- range . }}
    - type: {{ .type | quote }}
      status: {{ .status | quote }}
      timeoutSeconds: {{ include "openstack-cluster.seconds" .timeout }}
    {{- end }}
  {{- end }}
  {{- with .check.neverCameUpTimeout }}
  unhealthyMachineConditions:
    - type: InfrastructureReady
      status: "False"
      timeoutSeconds: {{ include "openstack-cluster.seconds" . }}
  {{- end }}
remediation:
  triggerIf:
    unhealthyLessThanOrEqualTo: {{ toJson $spec.maxUnhealthy }}
{{- else -}}
maxUnhealthy: {{ toJson $spec.maxUnhealthy }}
nodeStartupTimeout: {{ $spec.nodeStartupTimeout | quote }}
{{- with $spec.unhealthyConditions }}
unhealthyConditions:
  {{- range . }}
  - type: {{ .type | quote }}
    status: {{ .status | quote }}
    timeout: {{ .timeout | quote }}
  {{- end }}
{{- end }}
{{- end -}}
{{- end -}}
