{{/*
The spec of an OpenStackMachineTemplate's machine. The credential is the cluster's and does not stand here, so
that a renamed Secret replaces no machine.
Arguments: root, from (control plane or node group), metadata (text to text), etcd (block device, optional).
*/}}
{{- define "openstack-cluster.machine" -}}
{{- $values := .root.Values -}}
flavor: {{ .from.machineFlavor | quote }}
image:
  {{- if or .from.machineImageId $values.machineImageId }}
  id: {{ .from.machineImageId | default $values.machineImageId | quote }}
  {{- else }}
  filter:
    name: {{ $values.machineImage | quote }}
  {{- end }}
{{- with $values.machineSSHKeyName }}
sshKeyName: {{ . | quote }}
{{- end }}
{{- if .from.machineRootVolume.diskSize }}
rootVolume: {{- include "openstack-cluster.machine.rootVolume" .from.machineRootVolume | nindent 2 }}
{{- end }}
{{- with .etcd }}
# The disk is found by its tag, which a server reads from its config drive.
configDrive: true
additionalBlockDevices: {{- include "openstack-cluster.machine.etcd" . | nindent 2 }}
{{- end }}
{{- with .from.machineNetworking.ports }}
ports: {{- include "openstack-cluster.machine.ports" . | nindent 2 }}
{{- end }}
{{- with .from.serverGroupId }}
serverGroup:
  id: {{ . | quote }}
{{- end }}
{{- with .metadata }}
serverMetadata:
  {{- range $key, $value := . }}
  - key: {{ $key | quote }}
    value: {{ $value | quote }}
  {{- end }}
{{- end }}
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

{{/* Argument: etcd.blockDevice. */}}
{{- define "openstack-cluster.machine.etcd" -}}
{{- $type := .type | default "Volume" -}}
- name: etcd
  sizeGiB: {{ .size | int }}
  storage:
    type: {{ $type }}
    {{- if eq $type "Volume" }}
    volume:
      {{- with .volumeType }}
      type: {{ . | quote }}
      {{- end }}
      availabilityZone: {{- include "openstack-cluster.machine.volumeZone" .availabilityZone | nindent 8 }}
    {{- end }}
{{- end -}}

{{/*
Ports as the OpenStack provider takes them, but for a network that is given by name alone, the spelling of its
older versions: that becomes a filter. Argument: list of ports.
*/}}
{{- define "openstack-cluster.machine.ports" -}}
{{- range . }}
{{- $port := . }}
{{- with .network }}
{{- if not (or (hasKey . "id") (hasKey . "filter")) }}
{{- $port = set (omit $port "network") "network" (dict "filter" .) }}
{{- end }}
{{- end }}
- {{ toJson $port }}
{{- end }}
{{- end -}}
