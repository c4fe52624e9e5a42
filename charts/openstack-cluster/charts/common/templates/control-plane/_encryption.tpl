{{/*
Encryption at rest. The chart knows the names of keys; the keys stand in the Secret REL-etcd-key, and each machine
reads them from there and writes them to the API server's configuration before kubeadm runs.
Source: https://kubernetes.io/docs/tasks/administer-cluster/encrypt-data/
*/}}

{{- define "openstack-cluster.encryption.directory" -}}
/etc/kubernetes/encryption
{{- end -}}

{{/* The Secret is the operator's; its name is never shortened. */}}
{{- define "openstack-cluster.encryption.secret" -}}
{{ .Release.Name }}-etcd-key
{{- end -}}

{{/* The first provider writes, all of them read; identity stands for what is not encrypted. Argument: root. */}}
{{- define "openstack-cluster.encryption.configuration" -}}
{{- with .Values.etcd.encryption -}}
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
  - resources: {{ toJson .resources }}
    providers:
      {{- if .writePlain }}
      - identity: {}
      {{- end }}
      {{- if eq (toString .provider) "barbican" }}
      - {{ include "openstack-cluster.barbican.provider" . | nindent 8 | trim }}
      {{- else }}
      - {{ include "openstack-cluster.encryption.provider" (dict "provider" .provider "keys" .keys) | nindent 8 | trim }}
      {{- end }}
      {{- range $provider, $keys := .otherProviders }}
      - {{ include "openstack-cluster.encryption.provider" (dict "provider" $provider "keys" $keys) | nindent 8 | trim }}
      {{- end }}
      {{- if and (.barbican).keyId (ne (toString .provider) "barbican") }}
      - {{ include "openstack-cluster.barbican.provider" . | nindent 8 | trim }}
      {{- end }}
      {{- if not .writePlain }}
      - identity: {}
      {{- end }}
{{- end -}}
{{- end -}}

{{/* Arguments: provider, keys (names; the machine replaces @name@ by the key). */}}
{{- define "openstack-cluster.encryption.provider" -}}
{{ .provider }}:
  keys:
    {{- range .keys }}
    - name: {{ . | quote }}
      secret: "@{{ . }}@"
    {{- end }}
{{- end -}}

{{/* Names of all keys, those that only read too, as JSON. Argument: root. */}}
{{- define "openstack-cluster.encryption.keys" -}}
{{- $keys := eq (toString .Values.etcd.encryption.provider) "barbican" | ternary list (.Values.etcd.encryption.keys | default list) -}}
{{- range .Values.etcd.encryption.otherProviders -}}
{{- $keys = concat $keys . -}}
{{- end -}}
{{ $keys | uniq | toJson }}
{{- end -}}

{{- define "openstack-cluster.encryption.files" -}}
{{- $directory := include "openstack-cluster.encryption.directory" . }}
- path: {{ $directory }}/configuration.yaml
  owner: root:root
  permissions: "0600"
  content: {{ include "openstack-cluster.encryption.configuration" . | printf "%s\n" | toJson }}
{{- $keys := include "openstack-cluster.encryption.keys" . | fromJsonArray }}
{{- range $keys }}
- path: {{ $directory }}/keys/{{ . }}
  owner: root:root
  permissions: "0600"
  contentFrom:
    secret:
      name: {{ include "openstack-cluster.encryption.secret" $ }}
      key: {{ . | quote }}
{{- end }}
{{- if $keys }}
- path: {{ $directory }}/fill-in-keys.sh
  owner: root:root
  permissions: "0700"
  content: {{ .Files.Get "files/etcd-encryption/fill-in-keys.sh" | toJson }}
{{- end }}
{{- include "openstack-cluster.barbican.files" . }}
{{- end -}}
