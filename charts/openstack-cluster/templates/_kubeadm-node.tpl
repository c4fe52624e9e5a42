{{/*
kubeadm's InitConfiguration and JoinConfiguration.
*/}}

{{/*
The Node is called like its server, as the OpenStack cloud controller expects it.
Arguments: core, labels (text to text), ignore (list of preflight errors).
*/}}
{{- define "openstack-cluster.kubeadm.nodeRegistration" -}}
{{- $args := dict "cloud-provider" "external" -}}
{{- $labels := list -}}
{{- range $key, $value := .labels -}}
{{- $labels = append $labels (printf "%s=%s" $key $value) -}}
{{- end -}}
{{- if $labels -}}
{{- $args = dict "cloud-provider" "external" "node-labels" (join "," $labels) -}}
{{- end -}}
name: {{ `'{{ local_hostname }}'` }}
kubeletExtraArgs: {{- include "openstack-cluster.args" (dict "core" .core "args" $args) | trim | nindent 2 }}
{{- with .ignore }}
ignorePreflightErrors: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/*
The control plane's nodeRegistration: an etcd disk of its own is not empty (lost+found). Arguments: root, core.
*/}}
{{- define "openstack-cluster.kubeadm.nodeRegistration.controlPlane" -}}
{{- $ignore := list -}}
{{- if .root.Values.etcd.blockDevice -}}
{{- $ignore = list (printf "DirAvailable-%s" (.root.Values.etcd.dataDir | replace "/" "-")) -}}
{{- end -}}
{{- include "openstack-cluster.kubeadm.nodeRegistration" (dict "core" .core "ignore" $ignore) -}}
{{- end -}}

{{/* Cilium does the work of kube-proxy. Argument: root. */}}
{{- define "openstack-cluster.kubeadm.skipPhases" -}}
{{- $addons := .Values.addons -}}
{{- if and $addons.enabled $addons.cni.enabled (eq $addons.cni.type "cilium") -}}
{{- $cilium := $addons.cni.cilium.release.values -}}
{{- if not (and (hasKey $cilium "kubeProxyReplacement") (eq (toString $cilium.kubeProxyReplacement) "false")) -}}
- addon/kube-proxy
{{- end -}}
{{- end -}}
{{- end -}}
