{{/* Rules for the parts of validate.yaml that come more than once. */}}

{{/* Cluster API takes 0 for "for ever". Arguments: where (text), from (control plane or node group). */}}
{{- define "openstack-cluster.validate.timeouts" -}}
{{- $where := .where -}}
{{- $from := .from -}}
{{- range $key := list "nodeDrainTimeout" "nodeVolumeDetachTimeout" "nodeDeletionTimeout" -}}
{{- if eq (include "openstack-cluster.seconds" (get $from $key)) "0" -}}
{{- fail (printf "%s: %s is %s, which would wait for ever: give a time." $where $key (get $from $key)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
What no health check can be. Cluster API refuses a shorter wait for a Node; a range that begins above its end has no
number in it, so no machine would ever be replaced.
Source: https://cluster-api.sigs.k8s.io/tasks/automated-machine-management/healthchecking
Arguments: where (text), from (control plane or node group).
*/}}
{{- define "openstack-cluster.validate.healthCheck" -}}
{{- $where := .where -}}
{{- $spec := (.from.healthCheck | default dict).spec | default dict -}}
{{- with $spec.nodeStartupTimeout -}}
{{- $seconds := include "openstack-cluster.seconds" . | int -}}
{{- if and (gt $seconds 0) (lt $seconds 30) -}}
{{- fail (printf "%s: healthCheck.spec.nodeStartupTimeout is %s, and Cluster API takes 30s at least, or 0s for ever: give a longer time." $where .) -}}
{{- end -}}
{{- end -}}
{{- with $spec.unhealthyRange -}}
{{- $bounds := splitList "-" (trimAll "[]" .) -}}
{{- if gt (first $bounds | atoi) (last $bounds | atoi) -}}
{{- fail (printf "%s: healthCheck.spec.unhealthyRange %s begins above its end, so no machine would ever be replaced: swap them." $where .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
