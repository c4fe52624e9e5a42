{{/* Values of a set of machines: of the control plane or of a node group. */}}

{{/*
Values merged with their defaults, as JSON. A key that is set in the values wins whatever its value is, so false and 0
undo a default; null counts as not set. Maps are merged key by key, lists and scalars are replaced.
Arguments: defaults, values.
*/}}
{{- define "openstack-cluster.machine.values.merged" -}}
{{- $result := omit (.defaults | default dict) "" -}}
{{- range $key, $value := .values -}}
{{- $default := get $result $key -}}
{{- if and (kindIs "map" $default) (kindIs "map" $value) -}}
{{- $_ := set $result $key (include "openstack-cluster.machine.values.merged" (dict "defaults" $default "values" $value) | fromJson) -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $_ := set $result $key $value -}}
{{- end -}}
{{- end -}}
{{ toJson $result }}
{{- end -}}

{{/* The Kubernetes version with its v. Arguments: root, values (control plane or node group). */}}
{{- define "openstack-cluster.machine.values.version" -}}
v{{ .values.kubernetesVersion | default .root.Values.kubernetesVersion | toString | trimPrefix "v" }}
{{- end -}}
