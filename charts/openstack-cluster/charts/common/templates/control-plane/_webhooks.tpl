{{/* Authentication and authorization webhooks of the API server, and their files on its host. */}}

{{/* Where the files of k8s-keystone-auth stand on the control plane; the files name it too. */}}
{{- define "openstack-cluster.webhooks.keystone.directory" -}}
/etc/kubernetes/keystone-auth
{{- end -}}

{{/*
With k8s-keystone-auth, tokens and rights that Kubernetes does not know are asked of a webhook on the same host. An
authorization file, unlike flags, lets an unreachable webhook abstain: so kubeadm can begin before it runs.
Source: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#using-configuration-file-for-authorization
*/}}
{{- define "openstack-cluster.webhooks.keystone.files" -}}
{{- $directory := include "openstack-cluster.webhooks.keystone.directory" . -}}
{{- range $path, $_ := .Files.Glob "files/keystone-auth/*" }}
- path: {{ $directory }}/{{ base $path }}
  owner: root:root
  permissions: "0600"
  content: {{ $.Files.Get $path | toJson }}
{{- end }}
{{- end -}}

{{- define "openstack-cluster.webhooks.azimuth.directory" -}}
/etc/kubernetes/webhooks
{{- end -}}

{{- define "openstack-cluster.webhooks.azimuth.files" -}}
{{- $directory := include "openstack-cluster.webhooks.azimuth.directory" . }}
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
  {{- include "openstack-cluster.kubeadm.content" (include "openstack-cluster.webhooks.azimuth.kubeconfig" . | printf "%s\n") | nindent 2 }}
- path: {{ $directory }}/authorization.yaml
  owner: root:root
  permissions: "0600"
  {{- include "openstack-cluster.kubeadm.content" (include "openstack-cluster.webhooks.azimuth.authorization" . | printf "%s\n") | nindent 2 }}
{{- end -}}

{{/* How kube-apiserver reaches the webhook. Argument: root. */}}
{{- define "openstack-cluster.webhooks.azimuth.kubeconfig" -}}
apiVersion: v1
kind: Config
clusters:
  - name: webhook
    cluster:
      server: {{ (.Values.azimuthAuthorizationWebhook).server | quote }}
      {{- if ne (toString ((.Values.azimuthAuthorizationWebhook).tls).enabled) "false" }}
      certificate-authority: {{ include "openstack-cluster.webhooks.azimuth.directory" . }}/ca.pem
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
The webhook is the first authorizer, for requests without a namespace and in the filtered namespaces; others follow.
Argument: root.
*/}}
{{- define "openstack-cluster.webhooks.azimuth.authorization" -}}
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
        kubeConfigFile: {{ include "openstack-cluster.webhooks.azimuth.directory" . }}/webhook.kubeconfig
      matchConditions:
        - expression: {{ include "openstack-cluster.webhooks.azimuth.matchCondition" $webhook.filteredNamespaces | quote }}
        {{- range $webhook.extraPreFilters }}
        - expression: {{ . | quote }}
        {{- end }}
  {{- range $webhook.additionalAuthorizers }}
  - type: {{ .type }}
    name: {{ .name | quote }}
  {{- end }}
{{- end -}}

{{/* A CEL expression: the requests that the webhook authorizes. Argument: list of namespaces. */}}
{{- define "openstack-cluster.webhooks.azimuth.matchCondition" -}}
has(request.resourceAttributes) && (!has(request.resourceAttributes.namespace) || request.resourceAttributes.namespace in {{ prepend (. | default list) "" | toJson }})
{{- end -}}
