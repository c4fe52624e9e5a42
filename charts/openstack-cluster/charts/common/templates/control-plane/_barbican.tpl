{{/*
Encryption at rest with a key in Barbican: barbican-kms-plugin beside each API server. It is a static pod, because the
API server reads no Secret without it. Its credential is the operator's, not the cluster's: a machine keeps its files, and
the cluster's credential can be replaced.
Source: https://github.com/kubernetes/cloud-provider-openstack/blob/master/docs/barbican-kms-plugin/using-barbican-kms-plugin.md
*/}}

{{/* Text "true" if the machines have the plugin. Argument: root. */}}
{{- define "openstack-cluster.barbican.enabled" -}}
{{- if and (.Values.etcd.encryption).enabled ((.Values.etcd.encryption).barbican).keyId -}}true{{- end -}}
{{- end -}}

{{- define "openstack-cluster.barbican.directory" -}}
/etc/kubernetes/barbican
{{- end -}}

{{/* Of the socket, on the machine and in both pods. */}}
{{- define "openstack-cluster.barbican.socketDirectory" -}}
/run/barbican-kms-plugin
{{- end -}}

{{/* The first request of a process also gets a token from Keystone: the API server's own 3s are short for that. */}}
{{- define "openstack-cluster.barbican.provider" -}}
kms:
  apiVersion: v2
  name: barbican
  endpoint: unix://{{ include "openstack-cluster.barbican.socketDirectory" . }}/kms.sock
  timeout: 10s
{{- end -}}

{{/* Argument: root. */}}
{{- define "openstack-cluster.barbican.files" -}}
{{- if include "openstack-cluster.barbican.enabled" . }}
{{- $directory := include "openstack-cluster.barbican.directory" . }}
- path: {{ $directory }}/cloud.conf
  owner: root:root
  permissions: "0600"
  content: {{ include "openstack-cluster.barbican.cloudConf" . | printf "%s\n" | toJson }}
- path: {{ $directory }}/clouds.yaml
  owner: root:root
  permissions: "0600"
  contentFrom:
    secret:
      name: {{ include "openstack-cluster.encryption.secret" . }}
      key: clouds.yaml
- path: /etc/kubernetes/manifests/barbican-kms-plugin.yaml
  owner: root:root
  permissions: "0600"
  {{- include "openstack-cluster.kubeadm.content" (include "openstack-cluster.barbican.pod" . | printf "%s\n") | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "openstack-cluster.barbican.cloudConf" -}}
[Global]
use-clouds = true
clouds-file = {{ include "openstack-cluster.barbican.directory" . }}/clouds.yaml
cloud = openstack
[KeyManager]
key-id = {{ .Values.etcd.encryption.barbican.keyId }}
{{- end -}}

{{/* Before there is a network of pods, only the machine's own reaches the cloud. Argument: root. */}}
{{- define "openstack-cluster.barbican.pod" -}}
{{- $directory := include "openstack-cluster.barbican.directory" . -}}
{{- $socket := include "openstack-cluster.barbican.socketDirectory" . -}}
apiVersion: v1
kind: Pod
metadata:
  name: barbican-kms-plugin
  namespace: kube-system
  labels:
    component: barbican-kms-plugin
    tier: control-plane
spec:
  hostNetwork: true
  priorityClassName: system-node-critical
  securityContext:
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: barbican-kms-plugin
      image: {{ printf "%s:%s" .Values.etcd.encryption.barbican.image.repository .Values.etcd.encryption.barbican.image.tag | quote }}
      command:
        - /bin/barbican-kms-plugin
        - --cloud-config={{ $directory }}/cloud.conf
        - --socketpath={{ $socket }}/kms.sock
      {{- if include "openstack-cluster.proxy.enabled" . }}
      env:
        {{- range include "openstack-cluster.proxy.environment" . | trim | splitList "\n" }}
        - name: {{ splitList "=" . | first }}
          value: {{ splitList "=" . | rest | join "=" | quote }}
        {{- end }}
      {{- end }}
      resources:
        requests:
          cpu: 10m
          memory: 32Mi
      volumeMounts:
        - name: configuration
          mountPath: {{ $directory }}
          readOnly: true
        - name: ca-certs
          mountPath: /etc/ssl/certs
          readOnly: true
        - name: socket
          mountPath: {{ $socket }}
  volumes:
    - name: configuration
      hostPath:
        path: {{ $directory }}
        type: Directory
    - name: ca-certs
      hostPath:
        path: /etc/ssl/certs
        type: DirectoryOrCreate
    - name: socket
      hostPath:
        path: {{ $socket }}
        type: DirectoryOrCreate
{{- end -}}
