{{/* Rules for keys that control plane and node groups share. */}}

{{/* Cluster API takes 0 for "for ever". Arguments: where (text), values (control plane or node group). */}}
{{- define "openstack-cluster.validate.timeouts" -}}
{{- $where := .where -}}
{{- $values := .values -}}
{{- range $key := list "nodeDrainTimeout" "nodeVolumeDetachTimeout" "nodeDeletionTimeout" -}}
{{- if eq (include "openstack-cluster.api.seconds" (get $values $key)) "0" -}}
{{- fail (printf "%s: %s is %s, which would wait for ever: set a time." $where $key (get $values $key)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Core v1beta2 has 32 bits for seconds. Arguments: root, where (text), values (control plane or node group). */}}
{{- define "openstack-cluster.validate.seconds" -}}
{{- $where := .where -}}
{{- $check := .values.healthCheck | default dict -}}
{{- $spec := $check.spec | default dict -}}
{{- $durations := pick .values "nodeDrainTimeout" "nodeVolumeDetachTimeout" "nodeDeletionTimeout" -}}
{{- range $key, $duration := pick (.values.remediationStrategy | default dict) "retryPeriod" "minHealthyPeriod" -}}
{{- $_ := set $durations (printf "remediationStrategy.%s" $key) $duration -}}
{{- end -}}
{{- $_ := set $durations "healthCheck.neverCameUpTimeout" $check.neverCameUpTimeout -}}
{{- $_ := set $durations "healthCheck.spec.nodeStartupTimeout" $spec.nodeStartupTimeout -}}
{{- range $key, $conditions := pick $spec "unhealthyConditions" "unhealthyMachineConditions" -}}
{{- range $place, $condition := $conditions -}}
{{- $_ := set $durations (printf "healthCheck.spec.%s[%d].timeout" $key $place) $condition.timeout -}}
{{- end -}}
{{- end -}}
{{- range $key, $duration := eq (include "openstack-cluster.api.core" .root) "v1beta2" | ternary $durations dict -}}
{{- if and $duration (gt (include "openstack-cluster.api.seconds" $duration | int64) 2147483647) -}}
{{- fail (printf "%s: %s is %s, but core v1beta2 has at most 2147483647 seconds: set a shorter time." $where $key $duration) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Impossible health checks. Cluster API refuses a shorter wait for a Node; a range that begins above its end has no
number in it, so no machine would ever be replaced.
Source: https://cluster-api.sigs.k8s.io/tasks/automated-machine-management/healthchecking
Arguments: where (text), values (control plane or node group).
*/}}
{{- define "openstack-cluster.validate.healthCheck" -}}
{{- $where := .where -}}
{{- $spec := (.values.healthCheck | default dict).spec | default dict -}}
{{- with $spec.nodeStartupTimeout -}}
{{- $seconds := include "openstack-cluster.api.seconds" . | int -}}
{{- if and (gt $seconds 0) (lt $seconds 30) -}}
{{- fail (printf "%s: healthCheck.spec.nodeStartupTimeout is %s, and Cluster API accepts 30s at least, or 0s for ever: set a longer time." $where .) -}}
{{- end -}}
{{- end -}}
{{- with $spec.unhealthyRange -}}
{{- $bounds := splitList "-" (trimAll "[]" .) -}}
{{- if gt (first $bounds | atoi) (last $bounds | atoi) -}}
{{- fail (printf "%s: healthCheck.spec.unhealthyRange %s has a start above its end, so no machine would ever be replaced: swap them." $where .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
