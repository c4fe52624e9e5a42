{{/* What the API server reads from its host, and the webhooks that it asks. */}}

{{/* Where the files of k8s-keystone-auth stand on the control plane; the files name it too. */}}
{{- define "openstack-cluster.keystoneAuth.directory" -}}
/etc/kubernetes/keystone-auth
{{- end -}}

{{/*
With k8s-keystone-auth, tokens and rights that Kubernetes does not know are asked of a webhook on the same host.
An authorization file, unlike flags, lets an unreachable webhook abstain: so kubeadm can begin before it runs.
Source: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#using-configuration-file-for-authorization
*/}}
{{- define "openstack-cluster.keystoneAuth.files" -}}
{{- $directory := include "openstack-cluster.keystoneAuth.directory" . -}}
{{- range $path, $_ := .Files.Glob "files/keystone-auth/*" }}
- path: {{ $directory }}/{{ base $path }}
  owner: root:root
  permissions: "0600"
  content: {{ $.Files.Get $path | toJson }}
{{- end }}
{{- end -}}

{{- define "openstack-cluster.azimuthWebhook.directory" -}}
/etc/kubernetes/webhooks
{{- end -}}

{{- define "openstack-cluster.azimuthWebhook.files" -}}
{{- $directory := include "openstack-cluster.azimuthWebhook.directory" . }}
{{- with (.Values.azimuthAuthorizationWebhook).tls }}
{{- if ne (toString .enabled) "false" }}
- path: {{ $directory }}/ca.pem
  owner: root:root
  permissions: "0600"
  {{- include "openstack-cluster.kubeadm.content" (toString .cert) | nindent 2 }}
{{- end }}
{{- end }}
- path: {{ $directory }}/webhook.kubeconfig
  owner: root:root
  permissions: "0600"
  {{- include "openstack-cluster.kubeadm.content" (include "openstack-cluster.azimuthWebhook.kubeconfig" . | printf "%s\n") | nindent 2 }}
- path: {{ $directory }}/authorization.yaml
  owner: root:root
  permissions: "0600"
  {{- include "openstack-cluster.kubeadm.content" (include "openstack-cluster.azimuthWebhook.authorization" . | printf "%s\n") | nindent 2 }}
{{- end -}}

{{/* How kube-apiserver reaches the webhook. Argument: root. */}}
{{- define "openstack-cluster.azimuthWebhook.kubeconfig" -}}
apiVersion: v1
kind: Config
clusters:
  - name: webhook
    cluster:
      server: {{ (.Values.azimuthAuthorizationWebhook).server | quote }}
      {{- if ne (toString ((.Values.azimuthAuthorizationWebhook).tls).enabled) "false" }}
      certificate-authority: {{ include "openstack-cluster.azimuthWebhook.directory" . }}/ca.pem
      {{- else }}
      insecure-skip-tls-verify: true
      {{- end }}
users:
  - name: kube-apiserver
contexts:
  - name: webhook
    context:
      cluster: webhook
      user: kube-apiserver
current-context: webhook
{{- end -}}

{{/*
The webhook is asked first, about what has no namespace and about the namespaces that it guards; then the others.
Argument: root.
*/}}
{{- define "openstack-cluster.azimuthWebhook.authorization" -}}
{{- $webhook := .Values.azimuthAuthorizationWebhook | default dict -}}
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
  - type: Webhook
    name: webhook
    webhook:
      timeout: {{ $webhook.timeout | quote }}
      authorizedTTL: 5m0s
      unauthorizedTTL: 30s
      subjectAccessReviewVersion: {{ $webhook.webhookVersion }}
      # The only version that there is.
      matchConditionSubjectAccessReviewVersion: v1
      failurePolicy: {{ $webhook.failurePolicy }}
      connectionInfo:
        type: KubeConfigFile
        kubeConfigFile: {{ include "openstack-cluster.azimuthWebhook.directory" . }}/webhook.kubeconfig
      matchConditions:
        - expression: {{ include "openstack-cluster.azimuthWebhook.guarded" $webhook.filteredNamespaces | quote }}
        {{- range $webhook.extraPreFilters }}
        - expression: {{ . | quote }}
        {{- end }}
  {{- range $webhook.additionalAuthorizers }}
  - type: {{ .type }}
    name: {{ .name | quote }}
  {{- end }}
{{- end -}}

{{/* A CEL expression: whether the webhook has a say. Argument: list of namespaces. */}}
{{- define "openstack-cluster.azimuthWebhook.guarded" -}}
has(request.resourceAttributes) && (!has(request.resourceAttributes.namespace) || request.resourceAttributes.namespace in {{ prepend (. | default list) "" | toJson }})
{{- end -}}
