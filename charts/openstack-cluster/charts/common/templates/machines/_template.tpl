{{/*
The spec of an OpenStackMachineTemplate's machine. The credential is the cluster's and does not stand here, so
that a renamed Secret replaces no machine.
Arguments: root, api (v1beta1 or v1beta2), values (control plane, node group or bastion), metadata (text to text,
optional), etcd (block device, optional).
*/}}
{{- define "openstack-cluster.machine" -}}
{{- $devices := .values.additionalBlockDevices | default dict -}}
{{- if .etcd -}}
{{- $devices = set (omit $devices "etcd") "etcd" .etcd -}}
{{- end -}}
{{- with .values.containerdBlockDevice -}}
{{- $devices = set (omit $devices "containerd") "containerd" . -}}
{{- end -}}
{{- $networking := .values.machineNetworking | default dict -}}
{{- $rootVolume := .values.machineRootVolume | default dict -}}
{{- if eq .api "v1beta2" -}}
flavor:
  filter:
    name: {{ .values.machineFlavor | quote }}
{{- else -}}
flavor: {{ .values.machineFlavor | quote }}
{{- end }}
image: {{- include "openstack-cluster.machine.image" . | nindent 2 }}
{{- with .root.Values.machineSSHKeyName }}
sshKeyName: {{ . | quote }}
{{- end }}
{{- if int $rootVolume.diskSize }}
rootVolume: {{- include "openstack-cluster.machine.rootVolume" $rootVolume | nindent 2 }}
{{- end }}
{{- if or $devices .values.machineConfigDrive }}
# A disk is found by its tag, which a server reads from its config drive.
configDrive: true
{{- end }}
{{- with $devices }}
additionalBlockDevices: {{- include "openstack-cluster.machine.blockDevices" . | nindent 2 }}
{{- end }}
{{- with $networking.ports }}
ports: {{- include "openstack-cluster.ports" (dict "api" $.api "ports" .) | nindent 2 }}
{{- end }}
{{- if $networking.trunk }}
trunk: true
{{- end }}
{{- with $networking.securityGroups }}
securityGroups: {{- include "openstack-cluster.filters" . | nindent 2 }}
{{- end }}
{{- if .values.serverGroupId }}
serverGroup:
  id: {{ .values.serverGroupId | quote }}
{{- else if .values.serverGroupName }}
serverGroup:
  filter:
    name: {{ .values.serverGroupName | quote }}
{{- end }}
{{- with .values.schedulerHints }}
schedulerHintAdditionalProperties:
  {{- range $name, $value := . }}
  - name: {{ $name | quote }}
    value: {{- include "openstack-cluster.machine.schedulerHint" (dict "value" $value) | nindent 6 }}
  {{- end }}
{{- end }}
{{- with .values.machineTags }}
tags: {{ toJson . }}
{{- end }}
{{- with .metadata }}
serverMetadata:
  {{- range $key, $value := . }}
  - key: {{ $key | quote }}
    value: {{ include "openstack-cluster.text" $value | quote }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The image that is named nearest, an id before a name. Arguments: root, values. */}}
{{- define "openstack-cluster.machine.image" -}}
{{- $nearest := or .values.machineImageId .values.machineImage | empty | ternary .root.Values .values -}}
{{- if $nearest.machineImageId -}}
id: {{ $nearest.machineImageId | quote }}
{{- else -}}
filter:
  name: {{ include "openstack-cluster.machine.imageName" (dict "root" .root "name" $nearest.machineImage) | quote }}
{{- end -}}
{{- end -}}

{{/* The one template that an image's name may have, as a regular expression. */}}
{{- define "openstack-cluster.machine.imageName.template" -}}
{{ "{{" }}\s*\.Values\.kubernetesVersion\s*{{ "}}" }}
{{- end -}}

{{/*
An image's name with the cluster's Kubernetes version in it. Nothing of the values is run as a template: the version
replaces that one text, and the result is not looked at again. A v before it and the version's own v are one.
Arguments: root, name.
*/}}
{{- define "openstack-cluster.machine.imageName" -}}
{{- $version := .root.Values.kubernetesVersion | default "" | toString -}}
{{- $template := include "openstack-cluster.machine.imageName.template" . -}}
{{- $name := regexReplaceAllLiteral (printf "v%s" $template) (.name | default "") (printf "v%s" (trimPrefix "v" $version)) -}}
{{ regexReplaceAllLiteral $template $name $version }}
{{- end -}}

{{/* Argument: diskSize, volumeType, availabilityZone. */}}
{{- define "openstack-cluster.machine.rootVolume" -}}
sizeGiB: {{ .diskSize | int }}
{{- with .volumeType }}
type: {{ . | quote }}
{{- end }}
availabilityZone: {{- include "openstack-cluster.machine.volumeZone" .availabilityZone | nindent 2 }}
{{- end -}}

{{/* A Cinder zone by name, or else the zone of the server. */}}
{{- define "openstack-cluster.machine.volumeZone" -}}
{{- if . -}}
from: Name
name: {{ . | quote }}
{{- else -}}
from: Machine
{{- end -}}
{{- end -}}

{{/* Argument: block devices by their name. */}}
{{- define "openstack-cluster.machine.blockDevices" -}}
{{- range $name, $device := . }}
{{- $type := $device.type | default "Volume" }}
- name: {{ $name | quote }}
  sizeGiB: {{ $device.size | int }}
  storage:
    type: {{ $type }}
    {{- if eq $type "Volume" }}
    volume:
      {{- with $device.volumeType }}
      type: {{ . | quote }}
      {{- end }}
      availabilityZone: {{- include "openstack-cluster.machine.volumeZone" $device.availabilityZone | nindent 8 }}
    {{- end }}
{{- end }}
{{- end -}}

{{/* A hint for Nova's scheduler with the type that it was given. Argument: value. */}}
{{- define "openstack-cluster.machine.schedulerHint" -}}
{{- if kindIs "bool" .value -}}
type: Bool
bool: {{ .value }}
{{- else if kindIs "string" .value -}}
type: String
string: {{ .value | quote }}
{{- else -}}
type: Number
number: {{ .value | int }}
{{- end -}}
{{- end -}}

{{/* The machine template of the control plane. Arguments: root, api. */}}
{{- define "openstack-cluster.machine.template.controlPlane" -}}
{{- $metadata := include "openstack-cluster.machine.values.merged" (dict "defaults" .root.Values.machineMetadata
      "values" .root.Values.controlPlane.machineMetadata) | fromJson -}}
template:
  spec: {{- include "openstack-cluster.machine" (dict "root" .root "api" .api "values" .root.Values.controlPlane
      "metadata" $metadata "etcd" .root.Values.etcd.blockDevice) | nindent 4 }}
{{- end -}}

{{/* The machine template of a node group. Arguments: root, group, api. */}}
{{- define "openstack-cluster.machine.template.nodeGroup" -}}
{{- $metadata := include "openstack-cluster.machine.values.merged" (dict "defaults" .root.Values.machineMetadata
      "values" .group.machineMetadata) | fromJson -}}
template:
  spec: {{- include "openstack-cluster.machine" (dict "root" .root "api" .api "values" .group
      "metadata" $metadata) | nindent 4 }}
{{- end -}}
