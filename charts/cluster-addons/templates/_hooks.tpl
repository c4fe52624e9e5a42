{{/*
Lifecycle hooks of an addon, which the addon operator runs around an upgrade: the hooks that its file names, those that
recreate its storage classes, which are immutable, and those that resize its volumes, because a StatefulSet does not
change its claims. Arguments: root, addon.
*/}}
{{- define "cluster-addons.lifecycleHooks" -}}
{{- $addon := .addon -}}
{{- $hooks := $addon.hooks | default dict -}}
{{- $remade := list -}}
{{- range $path := $addon.storageClasses -}}
{{- $found := get (include "cluster-addons.values" (dict "root" $.root "paths" (dict "classes" $path)) | fromJson) "classes" -}}
{{- range kindIs "map" $found | ternary (list $found) $found -}}
{{- if and (dig "enabled" true .) (regexMatch "^[a-z][a-z0-9-]*$" .name) -}}
{{- $remade = append $remade .name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $sized := list -}}
{{- $unsized := list -}}
{{- range $volume := $addon.volumes -}}
{{- $size := (include "cluster-addons.values" (dict "root" $.root "paths" (pick . "size")) | fromJson).size -}}
{{- if and $size (or (not .when) (include "cluster-addons.enabled" (dict "root" $.root "when" .when))) -}}
{{- $sized = append $sized (merge (dict "size" $size) .) -}}
{{- else -}}
{{- $unsized = append $unsized . -}}
{{- end -}}
{{- end -}}
{{- if or $hooks $remade $addon.volumes -}}
lifecycleHooks:
  {{- if or $hooks.preUpgrade $remade $sized }}
  preUpgrade:
    {{- range $hooks.preUpgrade }}
    - {{ toJson . }}
    {{- end }}
    {{- range $remade }}
    - apiVersion: storage.k8s.io/v1
      kind: StorageClass
      name: {{ . | quote }}
      action: delete
    {{- end }}
    {{- range $sized }}
    - apiVersion: v1
      kind: PersistentVolumeClaim
      selector: {{ toJson .selector }}
      action: patch
      options:
        data:
          spec:
            resources:
              requests:
                storage: {{ .size | toJson }}
    {{- end }}
  {{- end }}
  {{- if or $hooks.postUpgrade $unsized }}
  postUpgrade:
    {{- range $hooks.postUpgrade }}
    - {{ toJson . }}
    {{- end }}
    {{- include "cluster-addons.deletedVolumes" $unsized | nindent 4 }}
  {{- end }}
  {{- with $addon.volumes }}
  postDelete:
    {{- include "cluster-addons.deletedVolumes" . | nindent 4 }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* Argument: list of volumes. */}}
{{- define "cluster-addons.deletedVolumes" -}}
{{- range . }}
- apiVersion: v1
  kind: PersistentVolumeClaim
  selector: {{ toJson .selector }}
  action: delete
{{- end }}
{{- end -}}
