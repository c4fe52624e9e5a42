{{/*
The body of a MachineHealthCheck's spec below its selector.
Arguments: root, core, check (healthCheck of the values).
*/}}
{{- define "openstack-cluster.healthCheck" -}}
{{- $spec := .check.spec -}}
{{- $machineConditions := include "openstack-cluster.healthCheck.machineConditions" . | trim -}}
{{- if eq .core "v1beta2" -}}
checks:
  nodeStartupTimeoutSeconds: {{ include "openstack-cluster.api.seconds" $spec.nodeStartupTimeout }}
  {{- with $spec.unhealthyConditions }}
  unhealthyNodeConditions: {{- include "openstack-cluster.healthCheck.conditions" (dict "core" "v1beta2" "conditions" .) | trim | nindent 4 }}
  {{- end }}
  {{- with $machineConditions }}
  unhealthyMachineConditions: {{- . | nindent 4 }}
  {{- end }}
remediation:
  triggerIf:
    {{- if $spec.unhealthyRange }}
    unhealthyInRange: {{ $spec.unhealthyRange | quote }}
    {{- else }}
    unhealthyLessThanOrEqualTo: {{ toJson $spec.maxUnhealthy }}
    {{- end }}
  {{- with $spec.remediationTemplate }}
  templateRef: {{ toJson . }}
  {{- end }}
{{- else -}}
{{- if $spec.unhealthyRange -}}
unhealthyRange: {{ $spec.unhealthyRange | quote }}
{{- else -}}
maxUnhealthy: {{ toJson $spec.maxUnhealthy }}
{{- end }}
nodeStartupTimeout: {{ $spec.nodeStartupTimeout | quote }}
{{- with $spec.unhealthyConditions }}
unhealthyConditions: {{- include "openstack-cluster.healthCheck.conditions" (dict "core" "v1beta1" "conditions" .) | trim | nindent 2 }}
{{- end }}
{{- with $machineConditions }}
unhealthyMachineConditions: {{- . | nindent 2 }}
{{- end }}
{{- with $spec.remediationTemplate }}
remediationTemplate: {{ toJson . }}
{{- end }}
{{- end -}}
{{- end -}}

{{/*
Conditions of the Machine that make it sick, if Cluster API can look at them. A server that never came up has
no Node; its Machine has InfrastructureReady False. Arguments: root, core, check.
*/}}
{{- define "openstack-cluster.healthCheck.machineConditions" -}}
{{- $conditions := .check.spec.unhealthyMachineConditions | default list -}}
{{- with .check.neverCameUpTimeout -}}
{{- $conditions = prepend $conditions (dict "type" "InfrastructureReady" "status" "False" "timeout" .) -}}
{{- end -}}
{{- if include "openstack-cluster.clusterApi.machineTaintsAndConditions" . -}}
{{- include "openstack-cluster.healthCheck.conditions" (dict "core" .core "conditions" $conditions) -}}
{{- end -}}
{{- end -}}

{{/* Arguments: core, conditions (type, status, timeout). */}}
{{- define "openstack-cluster.healthCheck.conditions" -}}
{{- $core := .core -}}
{{- range .conditions }}
- type: {{ .type | quote }}
  status: {{ .status | quote }}
  {{- if eq $core "v1beta2" }}
  timeoutSeconds: {{ include "openstack-cluster.api.seconds" .timeout }}
  {{- else }}
  timeout: {{ .timeout | quote }}
  {{- end }}
{{- end -}}
{{- end -}}
