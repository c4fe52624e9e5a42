{{/*
How values reach an addon. An addon's texts are Jinja templates of the addon operator, so what an operator or a
tenant wrote must not stand in them as text: it goes in as Base64 of JSON, which Jinja decodes to data.
*/}}

{{/*
What stands at a dotted path of the values, as {"value": ...} in JSON; nothing there is "". Arguments: root, path.
*/}}
{{- define "cluster-addons.value" -}}
{{- $value := .root.Values -}}
{{- range splitList "." .path -}}
{{- $value = get ($value | default dict) . -}}
{{- end -}}
{{ dict "value" $value | include "cluster-addons.withoutNulls" }}
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

{{/* A Jinja expression for a value as JSON text. Argument: the value. */}}
{{- define "cluster-addons.jinja" -}}
{{ printf "%q | b64decode" (toJson . | b64enc) }}
{{- end -}}

{{/*
A Jinja file of this chart; it finds data as the variable "settings".
Arguments: root, file, settings (name to path of the values), files (name to data file of this chart).
*/}}
{{- define "cluster-addons.template" -}}
{{- $root := .root -}}
{{- $settings := dict -}}
{{- range $name, $path := .settings -}}
{{- $_ := set $settings $name (get (include "cluster-addons.value" (dict "root" $root "path" $path) | fromJson) "value") -}}
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
Text "true" if one of the alternatives holds: every value that it names is as it says.
Arguments: root, when (list of maps of path to value).
*/}}
{{- define "cluster-addons.wanted" -}}
{{- $root := .root -}}
{{- $wanted := false -}}
{{- range $alternative := .when -}}
{{- $holds := true -}}
{{- range $path, $expected := $alternative -}}
{{- $value := $root.Values -}}
{{- range splitList "." $path -}}
{{- $value = get ($value | default dict) . -}}
{{- end -}}
{{- $holds = and $holds (eq (toString $value) (toString $expected)) -}}
{{- end -}}
{{- $wanted = or $wanted $holds -}}
{{- end -}}
{{- if $wanted -}}true{{- end -}}
{{- end -}}

{{/* Registry and path in front of the images of all addons, without a slash at its end; empty for none. */}}
{{- define "cluster-addons.imageRegistryPrefix" -}}
{{ get (include "cluster-addons.value" (dict "root" . "path" "global.imageRegistryPrefix") | fromJson) "value" }}
{{- end -}}
