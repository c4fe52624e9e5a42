{{/*
Files and commands of the control plane's machines alone, as list items of their kubeadm config. Argument: root.
*/}}

{{/* Files. Bodies that depend on no value are in files/. */}}
{{- define "openstack-cluster.controlPlane.files" -}}
{{- if eq .Values.authWebhook "k8s-keystone-auth" }}
{{- include "openstack-cluster.webhooks.keystone.files" . }}
{{- else if eq .Values.authWebhook "azimuth-authorization-webhook" }}
{{- include "openstack-cluster.webhooks.azimuth.files" . }}
{{- end }}
{{- if .Values.apiServer.admissionConfiguration }}
{{- include "openstack-cluster.kubeadm.secretFile" (dict
      "path" (include "openstack-cluster.controlPlane.admission.path" .)
      "secret" (include "openstack-cluster.controlPlane.admission.secretName" .)
      "key" "admission-configuration.yaml"
      "text" (include "openstack-cluster.controlPlane.admission.configuration" .)) }}
{{- end }}
{{- if (.Values.apiServer.audit).policy }}
{{- include "openstack-cluster.kubeadm.secretFile" (dict
      "path" (include "openstack-cluster.controlPlane.audit.policyPath" .)
      "secret" (include "openstack-cluster.controlPlane.audit.secretName" .)
      "key" "policy.yaml"
      "text" (include "openstack-cluster.controlPlane.audit.policy" .)) }}
{{- end }}
{{- if (.Values.etcd.encryption).enabled }}
{{- include "openstack-cluster.encryption.files" . }}
{{- end }}
{{- $kubeProxy := include "openstack-cluster.controlPlane.kubeProxy.configuration" . }}
{{- if $kubeProxy }}
- path: {{ include "openstack-cluster.controlPlane.kubeProxy.path" . }}
  owner: root:root
  permissions: "0644"
  {{- include "openstack-cluster.kubeadm.content" $kubeProxy | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Commands before kubeadm. */}}
{{- define "openstack-cluster.controlPlane.preCommands" -}}
{{- if and (.Values.etcd.encryption).enabled (ne (include "openstack-cluster.encryption.keys" .) "[]") }}
- sh {{ include "openstack-cluster.encryption.directory" . }}/fill-in-keys.sh
{{- end }}
{{- if include "openstack-cluster.controlPlane.kubeProxy.configuration" . }}
{{- $kubeadm := eq .Values.osDistro "flatcar" | ternary "/etc/kubeadm.yml" "/run/kubeadm/kubeadm.yaml" }}
# Only the first machine has the file; kubeadm reads kube-proxy's part there.
- test ! -f {{ $kubeadm }} || cat {{ include "openstack-cluster.controlPlane.kubeProxy.path" . }} >> {{ $kubeadm }}
{{- end }}
{{- end -}}

{{/* Commands after kubeadm. */}}
{{- define "openstack-cluster.controlPlane.postCommands" -}}
{{- if and (kindIs "slice" .Values.controlPlane.nodeTaints) (not .Values.controlPlane.nodeTaints) }}
# kubeadm keeps load balancers away from these nodes; without taints the pods behind a load balancer may run there.
- kubectl --kubeconfig /etc/kubernetes/admin.conf label nodes --selector node-role.kubernetes.io/control-plane node.kubernetes.io/exclude-from-external-load-balancers-
{{- end }}
{{- end -}}
