{{/*
Commands before and after kubeadm, each a shell's. cloud-init goes on after a command that failed, Ignition does not.
Arguments: root, role (controlPlane or worker), values (control plane or node group), passthrough (kubeadmConfigSpec).
*/}}

{{- define "openstack-cluster.kubeadm.preCommands" -}}
{{- $values := .root.Values -}}
{{- if eq $values.osDistro "flatcar" }}
{{- include "openstack-cluster.flatcar.commands" . }}
{{- end }}
{{- if .values.containerdBlockDevice }}
- sh /opt/openstack-cluster/containerd-disk.sh
{{- end }}
{{- $restart := false }}
{{- if $values.trustedCAs }}
{{- $restart = true }}
- update-ca-certificates
{{- end }}
{{- if include "openstack-cluster.proxy.enabled" .root }}
{{- $restart = true }}
- sh /opt/openstack-cluster/proxy.sh
{{- end }}
{{- if include "openstack-cluster.containerd.enabled" .root }}
{{- $restart = true }}
- {{ printf "sh /opt/openstack-cluster/containerd.sh %s" (include "openstack-cluster.kubeadm.word" ($values.global | default dict).imageRegistryPrefix) | trim | quote }}
{{- end }}
{{- if $restart }}
- systemctl daemon-reload
# Whatever requires containerd goes on meanwhile; on Flatcar that may be the service of these commands.
- systemctl restart --job-mode=ignore-dependencies containerd
{{- end }}
{{- with $values.additionalPackages }}
# The image's own updates may hold the lock when a machine is new.
- apt-get -o DPkg::Lock::Timeout=300 update
- {{ printf "DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install --yes --%s" (include "openstack-cluster.kubeadm.words" .) | quote }}
{{- end }}
{{- if eq .role "controlPlane" }}
{{- include "openstack-cluster.controlPlane.preCommands" .root }}
{{- end }}
{{- with .passthrough.preKubeadmCommands }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "openstack-cluster.kubeadm.postCommands" -}}
{{- if eq .role "controlPlane" }}
{{- include "openstack-cluster.controlPlane.postCommands" .root }}
{{- end }}
{{- with .passthrough.postKubeadmCommands }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A text as one word of a shell command, whatever is in it; nothing for nothing. Argument: text or null. */}}
{{- define "openstack-cluster.kubeadm.word" -}}
{{- with . -}}
'{{ replace "'" `'\''` . }}'
{{- end -}}
{{- end -}}

{{/* Several texts as words, each after a space. Argument: list of text. */}}
{{- define "openstack-cluster.kubeadm.words" -}}
{{- range . }} {{ include "openstack-cluster.kubeadm.word" . }}{{ end -}}
{{- end -}}
