{{/* Files on the machines of the control plane. Their bodies are in files/. Argument: root. */}}
{{- define "openstack-cluster.kubeadm.files" -}}
{{- if eq .Values.authWebhook "k8s-keystone-auth" -}}
{{- $directory := include "openstack-cluster.keystoneAuth.directory" . -}}
{{- range $path, $_ := .Files.Glob "files/keystone-auth/*" }}
- path: {{ $directory }}/{{ base $path }}
  owner: root:root
  permissions: "0600"
  content: {{ $.Files.Get $path | toJson }}
{{- end }}
{{- end -}}
{{- end -}}
