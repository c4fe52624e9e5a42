{{/*
Flatcar is set up by Ignition instead of cloud-init. The bootstrap provider of Cluster API creates it if its feature
gate KubeadmBootstrapFormatIgnition is on.
Source: https://cluster-api.sigs.k8s.io/tasks/experimental-features/ignition
*/}}

{{/* Arguments: root, passthrough (kubeadmConfigSpec). */}}
{{- define "openstack-cluster.flatcar.format" }}
format: ignition
ignition:
  {{- with .passthrough.ignition }}
  {{- toYaml . | nindent 2 }}
  {{- else }}
  containerLinuxConfig:
    additionalConfig: {{ .root.Files.Get "files/flatcar/units.yaml" | toJson }}
  {{- end }}
{{- end -}}

{{/*
Nothing fills in the name of the Node as cloud-init does, so that is done before kubeadm reads its file; only this
name, since other text may hold a dollar sign too. The name ends at the first dot, as elsewhere.
*/}}
{{- define "openstack-cluster.flatcar.commands" }}
- systemctl start coreos-metadata.service
- . /run/metadata/flatcar
- export COREOS_OPENSTACK_HOSTNAME="${COREOS_OPENSTACK_HOSTNAME%%.*}"
- (umask 077 && envsubst '${COREOS_OPENSTACK_HOSTNAME}' < /etc/kubeadm.yml > /etc/kubeadm.yml.named)
- mv /etc/kubeadm.yml.named /etc/kubeadm.yml
{{- end -}}
