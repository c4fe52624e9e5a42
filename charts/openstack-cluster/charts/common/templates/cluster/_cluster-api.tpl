{{/*
Features of the management cluster's release of Cluster API. Discovery does not tell it: a release adds fields to API
versions that others serve without them, and these drop unknown fields silently.
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

{{/*
Text "true" if the validity of kubeadm's certificates can be configured: since 1.11, in v1beta1 since 1.13. Arguments: root,
core.
*/}}
{{- define "openstack-cluster.clusterApi.certificateValidity" -}}
{{- if or (eq .core "v1beta2") (ge (include "openstack-cluster.clusterApi.minor" .root | int) 13) -}}true{{- end -}}
{{- end -}}
