{{/* cloud-init's view of the etcd disk. Argument: etcd (of the values). */}}
{{- define "openstack-cluster.kubeadm.diskSetup" -}}
filesystems:
  - device: /dev/disk/openstack/by-tag/etcd
    filesystem: ext4
    label: etcd_disk
{{- end -}}

{{- define "openstack-cluster.kubeadm.mounts" -}}
- - LABEL=etcd_disk
  - {{ .dataDir | quote }}
{{- end -}}
