{{/*
What kubeadm and cloud-init (or Ignition) are told about a machine: the parts of the chart, section by section, each
with what the operator's own kubeadmConfigSpec says of that section. There the operator's word wins over the
chart's for a scalar or a flag; lists are the chart's items and then the operator's.
*/}}

{{/* kubeadmConfigSpec of the control plane. Arguments: root, core. */}}
{{- define "openstack-cluster.controlPlane.kubeadmConfigSpec" -}}
{{- $role := .root.Values.controlPlane -}}
{{- $own := $role.kubeadmConfigSpec | default dict -}}
{{- $machine := dict "root" .root "core" .core "role" "controlPlane" "from" $role "own" $own -}}
clusterConfiguration: {{- include "openstack-cluster.kubeadm.clusterConfiguration" . | trim | nindent 2 }}
initConfiguration: {{- include "openstack-cluster.kubeadm.initConfiguration" $machine | nindent 2 }}
joinConfiguration: {{- include "openstack-cluster.kubeadm.joinConfiguration" $machine | nindent 2 }}
{{- include "openstack-cluster.kubeadm.machine" $machine }}
{{- end -}}

{{/* The same of a node group's machines, which only join. Arguments: root, core, group. */}}
{{- define "openstack-cluster.nodeGroup.kubeadmConfigSpec" -}}
{{- $machine := dict "root" .root "core" .core "role" "worker" "from" .group "own" (.group.kubeadmConfigSpec | default dict) -}}
joinConfiguration: {{- include "openstack-cluster.kubeadm.joinConfiguration" $machine | nindent 2 }}
{{- include "openstack-cluster.kubeadm.machine" $machine }}
{{- end -}}

{{/*
What is the same for every machine, beside kubeadm's own configurations. Each section stands there only if it holds
something. Arguments: root, core, role (controlPlane or worker), from (control plane or node group), own.
*/}}
{{- define "openstack-cluster.kubeadm.machine" -}}
{{- $own := .own -}}
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
{{- with $own.users }}
users: {{ toJson . }}
{{- end }}
{{- with $own.ntp }}
ntp: {{ toJson . }}
{{- end }}
{{- with $own.bootCommands }}
bootCommands: {{ toJson . }}
{{- end }}
{{- with $own.verbosity }}
verbosity: {{ int . }}
{{- end }}
{{- if eq .root.Values.osDistro "flatcar" }}
{{- include "openstack-cluster.flatcar.format" . }}
{{- end }}
{{- end -}}

{{/*
What is left of the operator's map after the keys that the chart composes itself; what is empty says nothing.
Arguments: own (map or nothing), without (list of keys).
*/}}
{{- define "openstack-cluster.kubeadm.rest" -}}
{{- $without := .without -}}
{{- range $key, $value := .own }}
{{- if not (or (has $key $without) (has (toJson $value) (list "null" "{}" "[]" "\"\""))) }}
{{ $key }}: {{ toJson $value }}
{{- end }}
{{- end }}
{{- end -}}
