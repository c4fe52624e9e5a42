{{/*
The proxy between the machines and the world: for containerd, the kubelet and apt. Argument of all: root.
*/}}

{{/* Text "true" if there is one. */}}
{{- define "openstack-cluster.proxy.wanted" -}}
{{- with .Values.proxy -}}
{{- if or .http .https -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{- define "openstack-cluster.proxy.files" -}}
{{- if include "openstack-cluster.proxy.wanted" . }}
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
{{- $none := include "openstack-cluster.proxy.none" . -}}
NO_PROXY={{ $none }}
no_proxy={{ $none }}
{{ end -}}

{{/*
What is reached directly: the machine, Nova's metadata, the cluster's own networks and services, and what the values
say. The API server's address is added on the machine.
*/}}
{{- define "openstack-cluster.proxy.none" -}}
{{- $network := .Values.clusterNetworking.internalNetwork -}}
{{- $domain := .Values.kubeNetwork.serviceDomain | default "cluster.local" -}}
{{- $none := list "localhost" "127.0.0.1" "::1" "169.254.169.254" ".svc" $domain (printf ".%s" $domain) -}}
{{- $none = concat $none .Values.kubeNetwork.pods.cidrBlocks .Values.kubeNetwork.services.cidrBlocks -}}
{{- $subnets := $network.subnetFilters | default list -}}
{{- with $network.subnetFilter -}}
{{- $subnets = append $subnets . -}}
{{- end -}}
{{- range $subnets -}}
{{- $none = append $none .cidr -}}
{{- end -}}
{{- if not (or $network.networkFilter $subnets) -}}
{{- $none = append $none $network.nodeCidr -}}
{{- end -}}
{{- concat $none (.Values.proxy.noProxy | default list) | compact | uniq | join "," -}}
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
