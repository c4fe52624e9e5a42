{{/* kubeadm's ClusterConfiguration: the parts of the control plane. Arguments: root, core. */}}
{{- define "openstack-cluster.kubeadm.clusterConfiguration" -}}
{{- $values := .root.Values -}}
{{- $everywhere := dict "bind-address" "0.0.0.0" -}}
{{- $external := dict "cloud-provider" "external" "bind-address" "0.0.0.0" -}}
{{- with include "openstack-cluster.kubeadm.apiServer" . }}
apiServer: {{- . | nindent 2 }}
{{- end }}
controllerManager:
  extraArgs: {{- include "openstack-cluster.args" (dict "core" .core "args" $external) | trim | nindent 4 }}
scheduler:
  extraArgs: {{- include "openstack-cluster.args" (dict "core" .core "args" $everywhere) | trim | nindent 4 }}
etcd:
  local:
    dataDir: {{ $values.etcd.dataDir | quote }}
    {{- with $values.etcd.extraArgs }}
    extraArgs: {{- include "openstack-cluster.args" (dict "core" $.core "args" .) | trim | nindent 6 }}
    {{- end }}
{{- end -}}

{{/*
With k8s-keystone-auth, tokens and rights that Kubernetes does not know are asked of a webhook on the same host.
An authorization file, unlike flags, lets an unreachable webhook abstain: so kubeadm can begin before it runs.
Source: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#using-configuration-file-for-authorization
*/}}
{{- define "openstack-cluster.kubeadm.apiServer" -}}
{{- if eq .root.Values.authWebhook "k8s-keystone-auth" -}}
{{- $directory := include "openstack-cluster.keystoneAuth.directory" .root -}}
{{- $args := dict
      "authentication-token-webhook-config-file" (printf "%s/webhook.kubeconfig" $directory)
      "authorization-config" (printf "%s/authorization.yaml" $directory) -}}
extraArgs: {{- include "openstack-cluster.args" (dict "core" .core "args" $args) | trim | nindent 2 }}
extraVolumes:
  - name: keystone-auth
    hostPath: {{ $directory }}
    mountPath: {{ $directory }}
    pathType: Directory
    readOnly: true
{{- end -}}
{{- end -}}

{{/* Where the files of k8s-keystone-auth stand on the control plane; the files name it too. */}}
{{- define "openstack-cluster.keystoneAuth.directory" -}}
/etc/kubernetes/keystone-auth
{{- end -}}
