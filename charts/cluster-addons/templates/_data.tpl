{{/*
Values of an addon. An addon's texts are Jinja templates of the addon operator, so text of an operator or a tenant is
never part of them: it is passed as Base64 of JSON, which Jinja decodes to data.
*/}}

{{/*
The values at dotted paths, as JSON: name to value.
Arguments: root, paths (name to path).
*/}}
{{- define "cluster-addons.values" -}}
{{- $root := .root -}}
{{- $found := dict -}}
{{- range $name, $path := .paths -}}
{{- $value := $root.Values -}}
{{- range $key := splitList "." $path -}}
{{- with $value -}}
{{- $value = get . $key -}}
{{- end -}}
{{- end -}}
{{- $_ := set $found $name $value -}}
{{- end -}}
{{ toJson $found }}
{{- end -}}

{{/* A map as JSON, without what is null: of a chart's defaults Helm 3 keeps that, and Helm 4 does not. */}}
{{- define "cluster-addons.withoutNulls" -}}
{{- $kept := dict -}}
{{- range $key, $value := . -}}
{{- if kindIs "map" $value -}}
{{- $_ := set $kept $key (include "cluster-addons.withoutNulls" $value | fromJson) -}}
{{- else if not (kindIs "invalid" $value) -}}
{{- $_ := set $kept $key $value -}}
{{- end -}}
{{- end -}}
{{ toJson $kept }}
{{- end -}}

{{/*
A Jinja expression for a value as JSON text, which is read as YAML: there control characters that JSON need not escape
would end a line (U+0085) or the reading. Argument: the value.
*/}}
{{- define "cluster-addons.jinja" -}}
{{- $json := toJson . -}}
{{- if regexMatch "[\\x{7f}-\\x{9f}]" $json -}}
{{- range untilStep 127 160 1 -}}
{{- $json = replace (printf "%c" .) (printf "\\u%04x" .) $json -}}
{{- end -}}
{{- end -}}
{{ printf "%q | b64decode" (b64enc $json) }}
{{- end -}}

{{/*
A Jinja file of this chart; it finds data as the variable "settings".
Arguments: root, file, settings (name to path of the values), files (name to data file of this chart).
*/}}
{{- define "cluster-addons.template" -}}
{{- $root := .root -}}
{{- $json := include "cluster-addons.values" (dict "root" $root "paths" .settings) -}}
{{- $settings := fromJson $json -}}
{{- if contains "null" $json -}}
{{- $settings = include "cluster-addons.withoutNulls" $settings | fromJson -}}
{{- end -}}
{{- range $name, $path := .files -}}
{{- $_ := set $settings $name ($root.Files.Get (printf "files/%s" $path) | fromYaml) -}}
{{- end -}}
{{- if $settings -}}
{{ printf "{%% set settings = %s | fromyaml %%}" (include "cluster-addons.jinja" $settings) }}
{{ end -}}
{{ .root.Files.Get (printf "files/jinja/%s" .file) | trim }}
{{- end -}}

{{/*
Text "true" if the addon is enabled: in one of the alternatives every value is the expected one.
Arguments: root, when (list of maps of path to value).
*/}}
{{- define "cluster-addons.enabled" -}}
{{- $root := .root -}}
{{- range .when -}}
{{- $holds := true -}}
{{- range $path, $expected := . -}}
{{- $value := $root.Values -}}
{{- range $key := splitList "." $path -}}
{{- with $value -}}
{{- $value = get . $key -}}
{{- end -}}
{{- end -}}
{{- if ne (toString $value) (toString $expected) -}}
{{- $holds = false -}}
{{- break -}}
{{- end -}}
{{- end -}}
{{- if $holds -}}
true
{{- break -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Registry and path in front of the images of all addons, without a slash at its end; empty for none. */}}
{{- define "cluster-addons.imageRegistryPrefix" -}}
{{ (.Values.global | default dict).imageRegistryPrefix }}
{{- end -}}
