{{/*
Disks and mounts, as cloud-init has them: the etcd disk of the control plane, the disk of containerd, and the
operator's. containerd's is mounted by a command, as it may run already, and has images of the machine's own image.
Arguments: root, role, values (control plane or node group), passthrough (kubeadmConfigSpec).
*/}}
{{- define "openstack-cluster.kubeadm.diskSetup" -}}
{{- $passthrough := .passthrough.diskSetup | default dict -}}
{{- $etcd := and (eq .role "controlPlane") .root.Values.etcd.blockDevice -}}
{{- if or $etcd .values.containerdBlockDevice $passthrough.filesystems }}
filesystems:
  {{- if $etcd }}
  - device: /dev/disk/openstack/by-tag/etcd
    filesystem: ext4
    label: etcd_disk
  {{- end }}
  {{- if .values.containerdBlockDevice }}
  - device: /dev/disk/openstack/by-tag/containerd
    filesystem: ext4
    label: containerd
  {{- end }}
  {{- with $passthrough.filesystems }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- include "openstack-cluster.kubeadm.remaining" (dict "passthrough" $passthrough "without" (list "filesystems")) }}
{{- end -}}

{{- define "openstack-cluster.kubeadm.mounts" -}}
{{- if and (eq .role "controlPlane") .root.Values.etcd.blockDevice }}
- - LABEL=etcd_disk
  - {{ .root.Values.etcd.dataDir | quote }}
{{- end }}
{{- with .passthrough.mounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}
