{{/*
The spec of a KubeadmConfig: the chart's part of each section, merged with the same section of the operator's
kubeadmConfigSpec, which is passed through. For a scalar or a flag the operator's value wins; lists are the chart's
items and then the operator's.
*/}}

{{/* kubeadmConfigSpec of the control plane. Arguments: root, core. */}}
{{- define "openstack-cluster.kubeadm.configSpec.controlPlane" -}}
{{- $role := .root.Values.controlPlane -}}
{{- $passthrough := $role.kubeadmConfigSpec | default dict -}}
{{- $machine := dict "root" .root "core" .core "role" "controlPlane" "values" $role "passthrough" $passthrough -}}
clusterConfiguration: {{- include "openstack-cluster.kubeadm.clusterConfiguration" . | trim | nindent 2 }}
initConfiguration: {{- include "openstack-cluster.kubeadm.initConfiguration" $machine | nindent 2 }}
joinConfiguration: {{- include "openstack-cluster.kubeadm.joinConfiguration" $machine | nindent 2 }}
{{- include "openstack-cluster.kubeadm.configSpec.machine" $machine }}
{{- end -}}

{{/* The same of a node group's machines, which only join. Arguments: root, core, group. */}}
{{- define "openstack-cluster.kubeadm.configSpec.nodeGroup" -}}
{{- $machine := dict "root" .root "core" .core "role" "worker" "values" .group "passthrough" (.group.kubeadmConfigSpec | default dict) -}}
joinConfiguration: {{- include "openstack-cluster.kubeadm.joinConfiguration" $machine | nindent 2 }}
{{- include "openstack-cluster.kubeadm.configSpec.machine" $machine }}
{{- end -}}

{{/*
The sections that every machine has beside kubeadm's own configurations. An empty section is left out. Arguments: root,
core, role (controlPlane or worker), values (control plane or node group), passthrough (kubeadmConfigSpec).
*/}}
{{- define "openstack-cluster.kubeadm.configSpec.machine" -}}
{{- $passthrough := .passthrough -}}
{{- with include "openstack-cluster.kubeadm.files" . | trim }}
files: {{- . | nindent 2 }}
{{- end }}
{{- with include "openstack-cluster.kubeadm.preCommands" . | trim }}
preKubeadmCommands: {{- . | nindent 2 }}
{{- end }}
{{- with include "openstack-cluster.kubeadm.postCommands" . | trim }}
postKubeadmCommands: {{- . | nindent 2 }}
{{- end }}
{{- with include "openstack-cluster.kubeadm.diskSetup" . | trim }}
diskSetup: {{- . | nindent 2 }}
{{- end }}
{{- with include "openstack-cluster.kubeadm.mounts" . | trim }}
mounts: {{- . | nindent 2 }}
{{- end }}
{{- with $passthrough.users }}
users: {{ toJson . }}
{{- end }}
{{- with $passthrough.ntp }}
ntp: {{ toJson . }}
{{- end }}
{{- with $passthrough.bootCommands }}
bootCommands: {{ toJson . }}
{{- end }}
{{- with $passthrough.verbosity }}
verbosity: {{ int . }}
{{- end }}
{{- if eq .root.Values.osDistro "flatcar" }}
{{- include "openstack-cluster.flatcar.format" . }}
{{- end }}
{{- end -}}

{{/*
The remaining keys of the operator's map, without those that the chart composes itself; empty values are left out.
Arguments: passthrough (map or nothing), without (list of keys).
*/}}
{{- define "openstack-cluster.kubeadm.remaining" -}}
{{- $without := .without -}}
{{- range $key, $value := .passthrough }}
{{- if not (or (has $key $without) (has (toJson $value) (list "null" "{}" "[]" "\"\""))) }}
{{ $key }}: {{ toJson $value }}
{{- end }}
{{- end }}
{{- end -}}
