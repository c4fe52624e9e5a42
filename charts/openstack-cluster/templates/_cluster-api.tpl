{{/*
What the management cluster's release of Cluster API knows. It cannot be asked: a release adds fields to API
versions that others serve without them, and these drop what they do not know without a word.
*/}}

{{/*
The minor release, 12 for 1.12. Argument: root.
*/}}
{{- define "openstack-cluster.clusterApi.minor" -}}
{{- (.Values.apiVersions).clusterApi | default "1.12" | trimPrefix "1." -}}
{{- end -}}

{{/*
Text "true" if Machines have taints, and health checks look at conditions of the Machine: since 1.12, in v1beta1
since 1.13. Arguments: root, core.
*/}}
{{- define "openstack-cluster.clusterApi.machineTaintsAndConditions" -}}
{{- $minor := include "openstack-cluster.clusterApi.minor" .root | int -}}
{{- if ge $minor (eq .core "v1beta2" | ternary 12 13) -}}true{{- end -}}
{{- end -}}
