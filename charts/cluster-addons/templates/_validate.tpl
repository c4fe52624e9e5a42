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
{{- fail (printf "openstack.%s has a storage class %q, but there is one of that name: give each class of csiCinder and csiManila a name of its own." $driver $class.name) -}}
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
{{- fail (printf "openstack.csiManila: nothing mounts shares of the storage class %q: set csi.cephfs.enabled or csi.nfs.enabled to true, or name its provisioner." $class.name) -}}
{{- end -}}
{{- $provisioner := $class.provisioner | default "cephfs.manila.csi.openstack.org" -}}
{{- $usual := and $csi.cephfs.enabled (eq $provisioner "cephfs.manila.csi.openstack.org") -}}
{{- if not (or (dig "type" "" ($class.parameters | default dict)) $usual) -}}
{{- fail (printf "openstack.csiManila: the storage class %q has no share type: set its parameters.type to one of Manila's." $class.name) -}}
{{- end -}}
{{- end -}}

{{- define "cluster-addons.validate.custom" -}}
{{- range $name, $addon := .Values.custom -}}
{{- if not (and (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" $name) (le (len $name) 53)) -}}
{{- fail (printf "custom has an addon %q, which is no name for a release: use lower case letters, digits and \"-\", 53 at most." $name) -}}
{{- end -}}
{{- if $.Files.Get (printf "files/addons/%s.yaml" $name) -}}
{{- fail (printf "custom has an addon %q, but that is the name of one of this chart's: take another name." $name) -}}
{{- end -}}
{{- $wanted := eq $addon.kind "HelmRelease" | ternary "chart" "manifests" -}}
{{- if not (hasKey $addon.spec $wanted) -}}
{{- fail (printf "custom.%s is of kind %s and has no spec.%s: say what is to be installed." $name $addon.kind $wanted) -}}
{{- end -}}
{{- range $key := eq $addon.kind "HelmRelease" | ternary (list "manifests") (list "chart" "values") -}}
{{- if hasKey $addon.spec $key -}}
{{- fail (printf "custom.%s is of kind %s, which has no spec.%s: remove it, or change the kind." $name $addon.kind $key) -}}
{{- end -}}
{{- end -}}
{{- range $file, $_ := $addon.spec.manifests -}}
{{- if not (regexMatch "^[-._a-zA-Z0-9]{1,253}$" $file) -}}
{{- fail (printf "custom.%s.spec.manifests has a file %q: use letters, digits, \"-\", \"_\" and \".\" in its name." $name $file) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
