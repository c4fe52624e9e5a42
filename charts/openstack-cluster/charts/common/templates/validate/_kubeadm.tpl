{{/* Rules for kubeadmConfigSpec, which is passed through, of the control plane and of each node group. */}}

{{/* Arguments: where (text), passthrough (kubeadmConfigSpec). */}}
{{- define "openstack-cluster.validate.kubeadmSources" -}}
{{- $where := .where -}}
{{- range .passthrough.files -}}
{{- if and .content .contentFrom -}}
{{- fail (printf "%s: kubeadmConfigSpec.files has %s with content and contentFrom: keep one of them." $where .path) -}}
{{- end -}}
{{- end -}}
{{- range .passthrough.users -}}
{{- if and .passwd .passwdFrom -}}
{{- fail (printf "%s: kubeadmConfigSpec.users has %s with passwd and passwdFrom: keep one of them." $where .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Sections that Ignition lacks: Cluster API refuses them, or creates no machine. It finds the disk of a mount by its label
alone; a cluster that lives without its mount must not be kept from upgrades. Arguments: root, where (text), passthrough
(kubeadmConfigSpec).
Source: https://cluster-api.sigs.k8s.io/tasks/experimental-features/ignition
*/}}
{{- define "openstack-cluster.validate.flatcar" -}}
{{- $root := .root -}}
{{- $where := .where -}}
{{- $disks := .passthrough.diskSetup | default dict -}}
{{- if .passthrough.bootCommands -}}
{{- fail (printf "%s: kubeadmConfigSpec.bootCommands require cloud-init, which Flatcar does not have: use preKubeadmCommands, or a unit in ignition." $where) -}}
{{- end -}}
{{- $unknown := list -}}
{{- range .passthrough.files -}}
{{- if hasPrefix "gzip" (toString .encoding) -}}
{{- $unknown = append $unknown (printf "files has encoding %v" .encoding) -}}
{{- end -}}
{{- end -}}
{{- range .passthrough.users -}}
{{- if .inactive -}}
{{- $unknown = append $unknown "users has inactive" -}}
{{- end -}}
{{- end -}}
{{- range $disks.partitions -}}
{{- if not (has .tableType (list nil "" "gpt")) -}}
{{- $unknown = append $unknown (printf "diskSetup.partitions has tableType %v" .tableType) -}}
{{- end -}}
{{- end -}}
{{- $labels := list -}}
{{- range $disk := $disks.filesystems -}}
{{- range $key := list "partition" "replaceFS" -}}
{{- if get $disk $key -}}
{{- $unknown = append $unknown (printf "diskSetup.filesystems has %s" $key) -}}
{{- end -}}
{{- end -}}
{{- $labels = append $labels $disk.label -}}
{{- end -}}
{{- range $unknown -}}
{{- fail (printf "%s: kubeadmConfigSpec.%s, which requires cloud-init, and Flatcar does not have it: remove it." $where .) -}}
{{- end -}}
{{- range .passthrough.mounts -}}
{{- if or (lt (len .) 2) (and $root.Release.IsInstall (not (has (first .) $labels))) -}}
{{- fail (printf "%s: kubeadmConfigSpec.mounts has %s, and on Flatcar a mount is the label of one of diskSetup.filesystems, without LABEL=, and a directory: write it like [data, /var/data]." $where (toJson .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
