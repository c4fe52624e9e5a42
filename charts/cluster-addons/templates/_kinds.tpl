{{/*
The two kinds of addons. Both take: root, addon (a file of files/addons).
API: https://github.com/azimuth-cloud/cluster-api-addon-provider
*/}}

{{/* A chart with values from a Secret: this chart's defaults, then registries of images, then the operator's values. */}}
{{- define "cluster-addons.HelmRelease" -}}
{{- $root := .root -}}
{{- $addon := .addon -}}
{{- $prefix := include "cluster-addons.imageRegistryPrefix" $root -}}
{{- $images := ternary $addon.images dict (ne $prefix "") -}}
{{- $labels := include "cluster-addons.labels" (dict "root" $root "component" $addon.component) -}}
{{- $config := include "cluster-addons.name" (list $root.Release.Name $addon.component "config") -}}
{{- $found := include "cluster-addons.values" (dict "root" $root "paths" (pick $addon "chart" "values" "namespace")) | fromJson -}}
apiVersion: v1
kind: Secret
metadata:
  name: {{ $config }}
  labels:
    {{- $labels | nindent 4 }}
    addons.stackhpc.com/watch: ""
stringData:
  {{- with $addon.defaults }}
  defaults: |
    {{- include "cluster-addons.template" (dict "root" $root "file" . "settings" $addon.settings) | nindent 4 }}
  {{- end }}
  {{- with $images }}
  images: |
    {{- toYaml . | replace "PREFIX" $prefix | nindent 4 }}
  {{- end }}
  overrides: |
    {{ printf "{{ %s }}" (include "cluster-addons.jinja" ($found.values | default dict)) }}
---
apiVersion: addons.stackhpc.com/v1alpha1
kind: HelmRelease
metadata:
  name: {{ include "cluster-addons.name" (list $root.Release.Name $addon.component) }}
  labels: {{- $labels | nindent 4 }}
spec:
  {{- include "cluster-addons.target" (dict "root" $root "addon" $addon "namespace" $found.namespace) | nindent 2 }}
  chart:
    repo: {{ $found.chart.repo | quote }}
    name: {{ $found.chart.name | quote }}
    version: {{ $found.chart.version | quote }}
  valuesSources:
    {{- if $addon.defaults }}
    - secret:
        name: {{ $config }}
        key: defaults
    {{- end }}
    {{- if $images }}
    - secret:
        name: {{ $config }}
        key: images
    {{- end }}
    - secret:
        name: {{ $config }}
        key: overrides
  {{- include "cluster-addons.lifecycleHooks" . | nindent 2 }}
{{- end -}}

{{/*
Objects from a Jinja file, which writes values with the macro yaml: tojson would write a character beyond 16 bits in two
halves, which YAML does not join.
*/}}
{{- define "cluster-addons.Manifests" -}}
{{- $root := .root -}}
{{- $addon := .addon -}}
{{- $found := include "cluster-addons.values" (dict "root" $root "paths" (pick $addon "namespace")) | fromJson -}}
apiVersion: addons.stackhpc.com/v1alpha1
kind: Manifests
metadata:
  name: {{ include "cluster-addons.name" (list $root.Release.Name $addon.component) }}
  labels: {{- include "cluster-addons.labels" (dict "root" $root "component" $addon.component) | nindent 4 }}
spec:
  {{- include "cluster-addons.target" (dict "root" $root "addon" $addon "namespace" $found.namespace) | nindent 2 }}
  manifestSources:
    - template: |
        {{- $root.Files.Get "files/jinja/yaml.j2" | trim | nindent 8 }}
        {{- include "cluster-addons.template" (dict "root" $root "file" $addon.template "settings" $addon.settings "files" $addon.files) | nindent 8 }}
  {{- include "cluster-addons.lifecycleHooks" . | nindent 2 }}
{{- end -}}

{{/* The target of an addon: cluster, namespace and release, and when it is installed. Arguments: root, addon, namespace. */}}
{{- define "cluster-addons.target" -}}
clusterName: {{ include "cluster-addons.clusterName" .root | quote }}
bootstrap: {{ .addon.bootstrap }}
targetNamespace: {{ .namespace | quote }}
releaseName: {{ .addon.release | default .addon.component }}
{{- end -}}
