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
