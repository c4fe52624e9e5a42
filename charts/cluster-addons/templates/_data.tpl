{{/*
How values reach an addon. An addon's texts are Jinja templates of the addon operator, so what an operator or a
tenant wrote must not stand in them as text: it goes in as Base64 of JSON, which Jinja decodes to data.
*/}}

{{/* What stands at a dotted path of the values, as {"value": ...} in JSON. Arguments: root, path. */}}
{{- define "cluster-addons.value" -}}
{{- $value := .root.Values -}}
{{- range splitList "." .path -}}
{{- $value = index $value . -}}
{{- end -}}
{{ dict "value" $value | toJson }}
{{- end -}}

{{/* A Jinja expression for a value as JSON text. Argument: the value. */}}
{{- define "cluster-addons.jinja" -}}
{{ printf "%q | b64decode" (toJson . | b64enc) }}
{{- end -}}

{{/*
A Jinja file of this chart; it finds values as the variable "settings".
Arguments: root, file, settings (name to path).
*/}}
{{- define "cluster-addons.template" -}}
{{- $root := .root -}}
{{- $settings := dict -}}
{{- range $name, $path := .settings -}}
{{- $_ := set $settings $name (get (include "cluster-addons.value" (dict "root" $root "path" $path) | fromJson) "value") -}}
{{- end -}}
{{- if $settings -}}
{{ printf "{%% set settings = %s | fromyaml %%}" (include "cluster-addons.jinja" $settings) }}
{{ end -}}
{{ .root.Files.Get (printf "files/jinja/%s" .file) | trim }}
{{- end -}}

{{/* Text "true" if every value named in "when" is as it says. Arguments: root, when (path to value). */}}
{{- define "cluster-addons.wanted" -}}
{{- $root := .root -}}
{{- $wanted := true -}}
{{- range $path, $expected := .when -}}
{{- $value := get (include "cluster-addons.value" (dict "root" $root "path" $path) | fromJson) "value" -}}
{{- if ne (toString $value) (toString $expected) -}}
{{- $wanted = false -}}
{{- end -}}
{{- end -}}
{{- if $wanted -}}true{{- end -}}
{{- end -}}
