{{/* What only the machines of the control plane need: list items for their kubeadm config. Argument: root. */}}

{{/* Files. Bodies that depend on no value are in files/. */}}
{{- define "openstack-cluster.kubeadm.files.controlPlane" -}}
{{- if eq .Values.authWebhook "k8s-keystone-auth" }}
{{- include "openstack-cluster.keystoneAuth.files" . }}
{{- else if eq .Values.authWebhook "azimuth-authorization-webhook" }}
{{- include "openstack-cluster.azimuthWebhook.files" . }}
{{- end }}
{{- if .Values.apiServer.admissionConfiguration }}
{{- include "openstack-cluster.kubeadm.secretFile" (dict
      "path" (include "openstack-cluster.admission.path" .)
      "secret" (include "openstack-cluster.name.admissionConfiguration" .)
      "key" "admission-configuration.yaml"
      "text" (include "openstack-cluster.admission.configuration" .)) }}
{{- end }}
{{- if (.Values.apiServer.audit).policy }}
{{- include "openstack-cluster.kubeadm.secretFile" (dict
      "path" (include "openstack-cluster.audit.policyPath" .)
      "secret" (include "openstack-cluster.name.auditPolicy" .)
      "key" "policy.yaml"
      "text" (include "openstack-cluster.audit.policy" .)) }}
{{- end }}
{{- if (.Values.etcd.encryption).enabled }}
{{- include "openstack-cluster.encryption.files" . }}
{{- end }}
{{- $kubeProxy := include "openstack-cluster.kubeProxy.configuration" . }}
{{- if $kubeProxy }}
- path: {{ include "openstack-cluster.kubeProxy.path" . }}
  owner: root:root
  permissions: "0644"
  {{- include "openstack-cluster.kubeadm.content" $kubeProxy | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Commands before kubeadm. */}}
{{- define "openstack-cluster.kubeadm.preCommands.controlPlane" -}}
{{- if (.Values.etcd.encryption).enabled }}
- sh {{ include "openstack-cluster.encryption.directory" . }}/fill-in-keys.sh
{{- end }}
{{- if include "openstack-cluster.kubeProxy.configuration" . }}
{{- $kubeadm := eq .Values.osDistro "flatcar" | ternary "/etc/kubeadm.yml" "/run/kubeadm/kubeadm.yaml" }}
# Only the first machine has the file; kubeadm reads kube-proxy's part there.
- test ! -f {{ $kubeadm }} || cat {{ include "openstack-cluster.kubeProxy.path" . }} >> {{ $kubeadm }}
{{- end }}
{{- end -}}

{{/* Commands after kubeadm. */}}
{{- define "openstack-cluster.kubeadm.postCommands.controlPlane" -}}
{{- if and (kindIs "slice" .Values.controlPlane.nodeTaints) (not .Values.controlPlane.nodeTaints) }}
# kubeadm keeps load balancers away from these nodes; without taints the pods behind a load balancer may run there.
- kubectl --kubeconfig /etc/kubernetes/admin.conf label nodes --selector node-role.kubernetes.io/control-plane node.kubernetes.io/exclude-from-external-load-balancers-
{{- end }}
{{- end -}}

{{/*
The body of a file. cloud-init takes what Cluster API sends it for a Jinja template: text with Jinja's marks goes as
Base64, so that it arrives as it is. Argument: text.
*/}}
{{- define "openstack-cluster.kubeadm.content" -}}
{{- if regexMatch "\\{[{%#]" . -}}
encoding: base64
content: {{ b64enc . }}
{{- else -}}
content: {{ toJson . }}
{{- end -}}
{{- end -}}

{{/* The same for a file whose body stands in a Secret of this chart. Argument: text. */}}
{{- define "openstack-cluster.kubeadm.secretContent" -}}
{{- regexMatch "\\{[{%#]" . | ternary (b64enc .) . | toJson -}}
{{- end -}}

{{/* Arguments: path, secret (name), key, text (of the Secret's key). */}}
{{- define "openstack-cluster.kubeadm.secretFile" }}
- path: {{ .path }}
  owner: root:root
  permissions: "0600"
  {{- if regexMatch "\\{[{%#]" .text }}
  encoding: base64
  {{- end }}
  contentFrom:
    secret:
      name: {{ .secret }}
      key: {{ .key }}
{{- end -}}
