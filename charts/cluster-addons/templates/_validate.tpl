{{/* Rules of validate.yaml, by what they are about. Argument of each: root. */}}

{{- define "cluster-addons.validate.ingress" -}}
{{- with .Values.ingress -}}
{{- if and .enabled .traefik.enabled .nginx.enabled -}}
{{- fail "ingress.traefik.enabled and ingress.nginx.enabled are both true: set one of them to false." -}}
{{- end -}}
{{- if and .enabled (not .traefik.enabled) (not .nginx.enabled) -}}
{{- fail "ingress.enabled is true, but ingress.traefik.enabled and ingress.nginx.enabled are false: set one of them to true, or ingress.enabled to false." -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "cluster-addons.validate.etcdSnapshot" -}}
{{- if dig "enabled" false (.Values.etcdSnapshot | default dict) -}}
{{- with .Values.etcdSnapshot.release.values -}}
{{- if not .destination.bucket -}}
{{- fail "etcdSnapshot.enabled is true, but snapshots have no destination: set etcdSnapshot.release.values.destination.bucket to a bucket of S3 or a container of Swift." -}}
{{- end -}}
{{- if not .secretName -}}
{{- fail "etcdSnapshot.enabled is true, but the job has no credential: set etcdSnapshot.release.values.secretName to a Secret in the cluster with variables of rclone." -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "cluster-addons.validate.storageClasses" -}}
{{- $root := . -}}
{{- $names := list -}}
{{- range $driver := list "csiCinder" "csiManila" -}}
{{- $values := get $root.Values.openstack $driver -}}
{{- $classes := $values.additionalStorageClasses | default list -}}
{{- if $values.defaultStorageClass.enabled -}}
{{- $classes = prepend $classes $values.defaultStorageClass -}}
{{- end -}}
{{- range $class := $values.enabled | ternary $classes list -}}
{{- if has $class.name $names -}}
{{- fail (printf "openstack.%s has a storage class %q, but another one has that name: use a different name for each class of csiCinder and csiManila." $driver $class.name) -}}
{{- end -}}
{{- $names = append $names $class.name -}}
{{- if eq $driver "csiManila" -}}
{{- include "cluster-addons.validate.shareClass" (dict "root" $root "class" $class) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Arguments: root, class (a storage class of csiManila). */}}
{{- define "cluster-addons.validate.shareClass" -}}
{{- $csi := .root.Values.csi -}}
{{- $class := .class -}}
{{- if not (or $class.provisioner $csi.cephfs.enabled $csi.nfs.enabled) -}}
{{- fail (printf "openstack.csiManila: no driver mounts shares of the storage class %q: set csi.cephfs.enabled or csi.nfs.enabled to true, or set its provisioner." $class.name) -}}
{{- end -}}
{{- $provisioner := $class.provisioner | default "cephfs.manila.csi.openstack.org" -}}
{{- $usual := and $csi.cephfs.enabled (eq $provisioner "cephfs.manila.csi.openstack.org") -}}
{{- if not (or (dig "type" "" ($class.parameters | default dict)) $usual) -}}
{{- fail (printf "openstack.csiManila: the storage class %q has no share type: set its parameters.type to a Manila share type." $class.name) -}}
{{- end -}}
{{- end -}}

{{- define "cluster-addons.validate.custom" -}}
{{- range $name, $addon := .Values.custom -}}
{{- if not (and (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" $name) (le (len $name) 53)) -}}
{{- fail (printf "custom has an addon %q, which is not a valid release name: use lower case letters, digits and \"-\", 53 at most." $name) -}}
{{- end -}}
{{- if $.Files.Get (printf "files/addons/%s.yaml" $name) -}}
{{- fail (printf "custom has an addon %q, but that is the name of an addon of this chart: use another name." $name) -}}
{{- end -}}
{{- range $path, $_ := $.Files.Glob "files/addons/*.yaml" -}}
{{- $text := $.Files.Get $path -}}
{{- if contains (printf "\nrelease: %s\n" $name) $text -}}
{{- include "cluster-addons.validate.release" (dict "root" $ "name" $name "namespace" $addon.spec.namespace "addon" (fromYaml $text)) -}}
{{- end -}}
{{- end -}}
{{- $wanted := eq $addon.kind "HelmRelease" | ternary "chart" "manifests" -}}
{{- if not (hasKey $addon.spec $wanted) -}}
{{- fail (printf "custom.%s is of kind %s and has no spec.%s: set it." $name $addon.kind $wanted) -}}
{{- end -}}
{{- range $key := eq $addon.kind "HelmRelease" | ternary (list "manifests") (list "chart" "values") -}}
{{- if hasKey $addon.spec $key -}}
{{- fail (printf "custom.%s is of kind %s, which has no spec.%s: remove it, or change the kind." $name $addon.kind $key) -}}
{{- end -}}
{{- end -}}
{{- range $file, $text := $addon.spec.manifests -}}
{{- range $document := regexSplit "(?m)^---(\\s|$)" $text -1 | rest -}}
{{- if not (regexReplaceAll "(?m)^\\s*(#.*|\\.\\.\\.)?$" $document "" | trim) -}}
{{- fail (printf "custom.%s.spec.manifests has an empty document in %q, with which the addon provider never finishes: remove the \"---\" that begins it." $name $file) -}}
{{- end -}}
{{- end -}}
{{- if not (regexMatch "^[-._a-zA-Z0-9]{1,253}$" $file) -}}
{{- fail (printf "custom.%s.spec.manifests has a file %q: use letters, digits, \"-\", \"_\" and \".\" in its name." $name $file) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
One release in the cluster cannot have two addons; one that is not there, or is in another namespace, is in nobody's way.
Arguments: root, name and namespace (of the operator's addon), addon (a file of files/addons with a release of that name).
*/}}
{{- define "cluster-addons.validate.release" -}}
{{- if include "cluster-addons.enabled" (dict "root" .root "when" .addon.when) -}}
{{- $taken := (include "cluster-addons.values" (dict "root" .root "paths" (pick .addon "namespace")) | fromJson).namespace -}}
{{- if eq $taken .namespace -}}
{{- fail (printf "custom has an addon %q in the namespace %q, where an addon of this chart has that release name: use another name or namespace." .name .namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
The addon operator hands values to Helm as JSON that says a character beyond 16 bits in two halves, and Helm reads that
as YAML, which does not join them. Looks closer only if there is one anywhere.
*/}}
{{- define "cluster-addons.validate.characters" -}}
{{- if contains "\\U000" (printf "%+q" (toJson .Values)) -}}
{{- $handed := dict -}}
{{- range $path, $_ := .Files.Glob "files/addons/*.yaml" -}}
{{- $addon := $.Files.Get $path | fromYaml -}}
{{- if and $addon.values (include "cluster-addons.enabled" (dict "root" $ "when" $addon.when)) -}}
{{- $_ := set $handed $addon.values (include "cluster-addons.values" (dict "root" $ "paths" (pick $addon "values"))) -}}
{{- end -}}
{{- end -}}
{{- range $name, $addon := .Values.custom -}}
{{- $_ := set $handed (printf "custom.%s.spec.values" $name) (toJson $addon.spec.values) -}}
{{- end -}}
{{- range $path, $json := $handed -}}
{{- with regexFind "[\\x{10000}-\\x{10ffff}]" $json -}}
{{- fail (printf "%s has the character %q, which the addon provider cannot pass to Helm: remove it." $path .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
