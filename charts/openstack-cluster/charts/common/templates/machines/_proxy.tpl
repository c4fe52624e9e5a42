{{/*
The HTTP proxy of the machines, for containerd, the kubelet and apt. Argument of all: root.
*/}}

{{/* Text "true" if there is one. */}}
{{- define "openstack-cluster.proxy.enabled" -}}
{{- with .Values.proxy -}}
{{- if or .http .https -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{- define "openstack-cluster.proxy.files" -}}
{{- if include "openstack-cluster.proxy.enabled" . }}
- path: /etc/kubernetes/proxy.env
  owner: root:root
  permissions: "0644"
  content: {{ include "openstack-cluster.proxy.environment" . | toJson }}
{{- range list "containerd" "kubelet" }}
- path: /etc/systemd/system/{{ . }}.service.d/proxy.conf
  owner: root:root
  permissions: "0644"
  content: {{ $.Files.Get "files/machine/proxy.service.conf" | toJson }}
{{- end }}
- path: /opt/openstack-cluster/proxy.sh
  owner: root:root
  permissions: "0755"
  content: {{ .Files.Get "files/machine/proxy.sh" | toJson }}
{{- if ne .Values.osDistro "flatcar" }}
- path: /etc/apt/apt.conf.d/90proxy
  owner: root:root
  permissions: "0644"
  content: {{ include "openstack-cluster.proxy.apt" . | toJson }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Programs differ in whether they look for the capital or the small names. */}}
{{- define "openstack-cluster.proxy.environment" -}}
{{- with .Values.proxy.http -}}
HTTP_PROXY={{ . }}
http_proxy={{ . }}
{{ end -}}
{{- with .Values.proxy.https -}}
HTTPS_PROXY={{ . }}
https_proxy={{ . }}
{{ end -}}
{{- $exceptions := include "openstack-cluster.proxy.exceptions" . -}}
NO_PROXY={{ $exceptions }}
no_proxy={{ $exceptions }}
{{ end -}}

{{/*
Exceptions from the proxy: the machine, Nova's metadata, the cluster's own networks and services, and noProxy of the
values. The API server's address is added on the machine.
*/}}
{{- define "openstack-cluster.proxy.exceptions" -}}
{{- $network := .Values.clusterNetworking.internalNetwork -}}
{{- $domain := .Values.kubeNetwork.serviceDomain | default "cluster.local" -}}
{{- $exceptions := list "localhost" "127.0.0.1" "::1" "169.254.169.254" ".svc" $domain (printf ".%s" $domain) -}}
{{- $exceptions = concat $exceptions .Values.kubeNetwork.pods.cidrBlocks .Values.kubeNetwork.services.cidrBlocks -}}
{{- $subnets := $network.subnetFilters | default list -}}
{{- with $network.subnetFilter -}}
{{- $subnets = append $subnets . -}}
{{- end -}}
{{- range $subnets -}}
{{- $exceptions = append $exceptions .cidr -}}
{{- end -}}
{{- if not (or $network.networkFilter $subnets) -}}
{{- $exceptions = append $exceptions $network.nodeCidr -}}
{{- end -}}
{{- concat $exceptions (.Values.proxy.noProxy | default list) | compact | uniq | join "," -}}
{{- end -}}

{{/* apt knows exceptions by the host's name only. */}}
{{- define "openstack-cluster.proxy.apt" -}}
{{- with .Values.proxy.http -}}
Acquire::http::Proxy "{{ . }}";
{{ end -}}
{{- with .Values.proxy.https -}}
Acquire::https::Proxy "{{ . }}";
{{ end -}}
{{- range .Values.proxy.noProxy }}
{{- if not (regexMatch "^[.*]|[/:]" .) -}}
Acquire::http::Proxy::{{ . }} "DIRECT";
Acquire::https::Proxy::{{ . }} "DIRECT";
{{ end -}}
{{- end -}}
{{- end -}}
