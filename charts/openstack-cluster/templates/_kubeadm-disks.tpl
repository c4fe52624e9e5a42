{{/*
Disks and mounts, as cloud-init has them: the etcd disk of the control plane, the disk of containerd, and the operator's.
containerd's is mounted by a command, as it may run already, and has images of the machine's own image.
Arguments: root, role, from (control plane or node group), own (kubeadmConfigSpec).
*/}}
{{- define "openstack-cluster.kubeadm.diskSetup" -}}
{{- $own := .own.diskSetup | default dict -}}
{{- $etcd := and (eq .role "controlPlane") .root.Values.etcd.blockDevice -}}
{{- if or $etcd .from.containerdBlockDevice $own.filesystems }}
filesystems:
  {{- if $etcd }}
  - device: /dev/disk/openstack/by-tag/etcd
    filesystem: ext4
    label: etcd_disk
  {{- end }}
  {{- if .from.containerdBlockDevice }}
  - device: /dev/disk/openstack/by-tag/containerd
    filesystem: ext4
    label: containerd
  {{- end }}
  {{- with $own.filesystems }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- include "openstack-cluster.kubeadm.rest" (dict "own" $own "without" (list "filesystems")) }}
{{- end -}}

{{- define "openstack-cluster.kubeadm.mounts" -}}
{{- if and (eq .role "controlPlane") .root.Values.etcd.blockDevice }}
- - LABEL=etcd_disk
  - {{ .root.Values.etcd.dataDir | quote }}
{{- end }}
{{- with .own.mounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}
