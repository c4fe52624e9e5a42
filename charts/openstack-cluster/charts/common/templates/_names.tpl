{{/*
Names and labels of all objects. A label and a host name end at 63 characters, so every name does.
*/}}

{{/*
The parts joined by "-". What would be too long is shortened and ends in a hash of the whole name, so two
long names that begin alike stay two. Arguments: parts (list of text), max (default 63).
*/}}
{{- define "openstack-cluster.name" -}}
{{- $name := join "-" .parts -}}
{{- $max := .max | default 63 | int -}}
{{- if le (len $name) $max -}}
{{ $name }}
{{- else -}}
{{ $name | trunc (sub $max 9 | int) | trimSuffix "-" }}-{{ sha256sum $name | trunc 8 }}
{{- end -}}
{{- end -}}

{{/* The KubeadmControlPlane and its health check. */}}
{{- define "openstack-cluster.name.controlPlane" -}}
{{- include "openstack-cluster.name" (dict "parts" (list .Release.Name "control-plane")) -}}
{{- end -}}

{{/*
A node group's MachineDeployment and health check. A group that is called control-plane carries a hash, or its
objects would be the control plane's. Arguments: root, group (name), max (default 63).
*/}}
{{- define "openstack-cluster.name.nodeGroup" -}}
{{- $parts := list .root.Release.Name .group -}}
{{- if eq .group "control-plane" -}}
{{- $parts = append $parts (sha256sum .group | trunc 8) -}}
{{- end -}}
{{- include "openstack-cluster.name" (dict "parts" $parts "max" .max) -}}
{{- end -}}

{{/*
An immutable template: a new spec is a new name, and Cluster API then replaces machines. The hash is taken from
the spec's data, so neither the order of its keys nor the layout of this chart can move it.
Arguments: base (a name of at most 54 characters), spec (YAML text).
*/}}
{{- define "openstack-cluster.name.template" -}}
{{ .base }}-{{ fromYaml .spec | toJson | sha256sum | trunc 8 }}
{{- end -}}

{{/* An immutable template of a node group. Arguments: root, group (name), spec (YAML text). */}}
{{- define "openstack-cluster.name.nodeGroup.template" -}}
{{- $base := include "openstack-cluster.name.nodeGroup" (dict "root" .root "group" .group "max" 54) -}}
{{- include "openstack-cluster.name.template" (dict "base" $base "spec" .spec) -}}
{{- end -}}

{{/* What selects machines; without the chart's version. Arguments: root, component, nodeGroup (name). */}}
{{- define "openstack-cluster.selectorLabels" -}}
{{- $prefix := .root.Values.projectPrefix -}}
{{ $prefix }}/cluster: {{ .root.Release.Name | quote }}
{{- with .component }}
{{ $prefix }}/component: {{ . }}
{{- end }}
{{- with .nodeGroup }}
{{ $prefix }}/node-group: {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Labels of every object of this chart. Arguments: as of selectorLabels. */}}
{{- define "openstack-cluster.labels" -}}
{{- $prefix := .root.Values.projectPrefix -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimAll "-_." | quote }}
{{ $prefix }}/managed-by: {{ .root.Release.Service }}
{{ $prefix }}/infrastructure-provider: openstack
{{ include "openstack-cluster.selectorLabels" . }}
{{- end -}}
