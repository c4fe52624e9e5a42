{{/*
containerd's registries: mirrors, passwords, and where the pause image comes from. Argument of all: root.
Source: https://github.com/containerd/containerd/blob/main/docs/hosts.md
*/}}

{{/* Text "true" if containerd has settings, of the chart's or in files of the operator. */}}
{{- define "openstack-cluster.containerd.enabled" -}}
{{- $enabled := or .Values.registryAuth (.Values.global | default dict).imageRegistryPrefix -}}
{{- range $registry, $mirrored := .Values.registryMirrors -}}
{{- $enabled = or $enabled $mirrored -}}
{{- end -}}
{{- range .Values.additionalFiles -}}
{{- $enabled = or $enabled (hasPrefix "/etc/containerd/" .path) -}}
{{- end -}}
{{- if $enabled -}}true{{- end -}}
{{- end -}}

{{- define "openstack-cluster.containerd.files" -}}
{{- if include "openstack-cluster.containerd.enabled" . }}
- path: /opt/openstack-cluster/containerd.sh
  owner: root:root
  permissions: "0755"
  content: {{ .Files.Get "files/machine/containerd.sh" | toJson }}
{{- range $registry, $mirrored := .Values.registryMirrors }}
{{- if $mirrored }}
- path: {{ printf "/etc/containerd/certs.d/%s/hosts.toml" $registry | quote }}
  owner: root:root
  permissions: "0644"
  content: {{ include "openstack-cluster.containerd.hosts" (dict "registry" $registry "mirrored" $mirrored) | toJson }}
{{- end }}
{{- end }}
{{- with .Values.registryAuth }}
- path: /etc/containerd/conf.d/auth.toml
  owner: root:root
  permissions: "0600"
  contentFrom:
    secret:
      name: {{ include "openstack-cluster.containerd.secretName" $ }}
      key: auth.toml
# Only a file can tell Cluster API that machines with a former password must go.
- path: /etc/containerd/auth.checksum
  owner: root:root
  permissions: "0644"
  content: {{ printf "%s\n" (printf "%s %s" $.Release.Name (toJson .) | sha256sum | trunc 8) | toJson }}
{{- end }}
{{- end }}
{{- end -}}

{{/*
hosts.toml of a registry, as TOML; the schema lets no text in that a TOML string would have to escape.
Arguments: registry (host, perhaps with a port), mirrored (list of mirrors, or upstream and mirrors).
*/}}
{{- define "openstack-cluster.containerd.hosts" -}}
{{- $upstream := printf "https://%s" .registry -}}
{{- if eq .registry "docker.io" -}}
{{- $upstream = "https://registry-1.docker.io" -}}
{{- end -}}
{{- $mirrors := .mirrored -}}
{{- if kindIs "map" .mirrored -}}
{{- $mirrors = .mirrored.mirrors -}}
{{- $upstream = .mirrored.upstream | default $upstream -}}
{{- end -}}
{{- /* The entry for all others names no server: then containerd asks the registry of the image last. */ -}}
{{- if ne $upstream "https://_default" -}}
server = {{ $upstream | quote }}
{{ end -}}
{{ range $mirrors }}
{{- $mirror := . }}
{{- if kindIs "string" . }}
{{- $mirror = dict "url" . }}
{{- end }}
[host.{{ $mirror.url | quote }}]
capabilities = {{ $mirror.capabilities | default (list "pull" "resolve") | toJson }}
skip_verify = {{ $mirror.skipVerify | default false }}
override_path = {{ not (and (hasKey $mirror "overridePath") (not $mirror.overridePath)) }}
{{ end }}
{{- end -}}

{{- define "openstack-cluster.containerd.secretName" -}}
{{- include "openstack-cluster.name" (dict "parts" (list .Release.Name "containerd-auth")) -}}
{{- end -}}

{{/*
Passwords of registries. A TOML string is escaped like one of JSON; a brace as well, or cloud-init would take two of
them for a template. The Docker Hub is asked under another name than its images have.
*/}}
{{- define "openstack-cluster.containerd.auth" -}}
version = 2
{{ range $registry, $auth := .Values.registryAuth }}
{{- $hosts := list $registry }}
{{- if eq $registry "docker.io" }}
{{- $hosts = list $registry "registry-1.docker.io" }}
{{- end }}
{{- range $hosts }}
[plugins."io.containerd.grpc.v1.cri".registry.configs.{{ . | quote }}.auth]
username = {{ $auth.username | toJson | replace "{" "\\u007b" }}
password = {{ $auth.password | toJson | replace "{" "\\u007b" }}
{{ end }}
{{- end }}
{{- end -}}
