{{/* What only the machines of the control plane need: list items for their kubeadm config. Argument: root. */}}

{{/* Files. */}}
{{- define "openstack-cluster.kubeadm.files.controlPlane" -}}
{{- if eq .Values.authWebhook "k8s-keystone-auth" }}
{{- include "openstack-cluster.keystoneAuth.files" . }}
{{- end }}
{{- end -}}

{{/* Commands before kubeadm. */}}
{{- define "openstack-cluster.kubeadm.preCommands.controlPlane" -}}
{{- end -}}

{{/* Commands after kubeadm. */}}
{{- define "openstack-cluster.kubeadm.postCommands.controlPlane" -}}
{{- end -}}

{{/* Who says which tokens and rights are Keystone's, and how the API server reaches it. */}}
{{- define "openstack-cluster.keystoneAuth.files" -}}
{{- $directory := include "openstack-cluster.keystoneAuth.directory" . -}}
{{- range $path, $_ := .Files.Glob "files/keystone-auth/*" }}
- path: {{ $directory }}/{{ base $path }}
  owner: root:root
  permissions: "0600"
  content: {{ $.Files.Get $path | toJson }}
{{- end }}
{{- end -}}
