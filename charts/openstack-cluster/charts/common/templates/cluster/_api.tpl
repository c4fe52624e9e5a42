{{/*
API versions, references between objects, and fields that differ in shape between v1beta1 and v1beta2.
Rules: https://cluster-api.sigs.k8s.io/developer/providers/migrations/v1.10-to-v1.11
*/}}

{{/* The version of cluster.x-k8s.io, controlplane.cluster.x-k8s.io and bootstrap.cluster.x-k8s.io. */}}
{{- define "openstack-cluster.api.core" -}}
{{- if (.Values.apiVersions).core -}}
{{ (.Values.apiVersions).core }}
{{- else if lt (include "openstack-cluster.clusterApi.minor" . | int) 11 -}}
v1beta1
{{- else if .Capabilities.APIVersions.Has "cluster.x-k8s.io/v1beta2" -}}
v1beta2
{{- else if .Capabilities.APIVersions.Has "cluster.x-k8s.io/v1beta1" -}}
v1beta1
{{- else -}}
v1beta2
{{- end -}}
{{- end -}}

{{/*
The version of infrastructure.cluster.x-k8s.io. v1beta1 stays where both are served: every OpenStack provider from
0.12 on takes it, so its upgrade, and the way back, changes no object.
*/}}
{{- define "openstack-cluster.api.infrastructure" -}}
{{- $served := .Capabilities.APIVersions -}}
{{- if (.Values.apiVersions).infrastructure -}}
{{ (.Values.apiVersions).infrastructure }}
{{- else if $served.Has "infrastructure.cluster.x-k8s.io/v1beta1" -}}
v1beta1
{{- else if $served.Has "infrastructure.cluster.x-k8s.io/v1beta2" -}}
v1beta2
{{- else -}}
v1beta1
{{- end -}}
{{- end -}}

{{/* A reference to an object of the same namespace. Arguments: root, group, kind, name. */}}
{{- define "openstack-cluster.api.reference" -}}
{{- if eq (include "openstack-cluster.api.core" .root) "v1beta2" -}}
apiGroup: {{ .group }}
{{- else if eq .group "infrastructure.cluster.x-k8s.io" -}}
apiVersion: {{ .group }}/{{ include "openstack-cluster.api.infrastructure" .root }}
{{- else -}}
apiVersion: {{ .group }}/v1beta1
{{- end }}
kind: {{ .kind }}
name: {{ .name }}
{{- end -}}

{{/* Command line arguments: a map in v1beta1, a list in v1beta2. Arguments: core, args (text to text). */}}
{{- define "openstack-cluster.api.args" -}}
{{- $core := .core -}}
{{- range $name, $value := .args }}
{{- if eq $core "v1beta2" }}
- name: {{ $name | quote }}
  value: {{ $value | quote }}
{{- else }}
{{ $name | quote }}: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* A duration such as 1h5m0s as a number of seconds. */}}
{{- define "openstack-cluster.api.seconds" -}}
{{- $now := now -}}
{{- sub ($now | dateModify . | unixEpoch) ($now | unixEpoch) -}}
{{- end -}}

{{/* Timeouts of a machine's deletion. Arguments: core, values (control plane or node group). */}}
{{- define "openstack-cluster.api.deletion" -}}
{{- if eq .core "v1beta2" -}}
deletion:
  nodeDrainTimeoutSeconds: {{ include "openstack-cluster.api.seconds" .values.nodeDrainTimeout }}
  nodeVolumeDetachTimeoutSeconds: {{ include "openstack-cluster.api.seconds" .values.nodeVolumeDetachTimeout }}
  nodeDeletionTimeoutSeconds: {{ include "openstack-cluster.api.seconds" .values.nodeDeletionTimeout }}
{{- else -}}
nodeDrainTimeout: {{ .values.nodeDrainTimeout | quote }}
nodeVolumeDetachTimeout: {{ .values.nodeVolumeDetachTimeout | quote }}
nodeDeletionTimeout: {{ .values.nodeDeletionTimeout | quote }}
{{- end -}}
{{- end -}}
