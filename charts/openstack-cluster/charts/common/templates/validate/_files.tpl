{{/* Rules for files of the machines. */}}

{{/*
Cluster API's definitions take 10240 characters of a file. The files of a machine of the control plane are all that the
chart writes; they are only put together here if the values may be long enough for one. A name of noProxy stands in four
lines, and a mirror has four. A certificate is short by the schema. Argument: root.
*/}}
{{- define "openstack-cluster.validate.files" -}}
{{- $values := .Values -}}
{{- $length := len (toJson (pick $values "additionalFiles" "azimuthAuthorizationWebhook")) -}}
{{- $length = add $length (len (toJson $values.etcd.encryption)) -}}
{{- $length = add $length (len (toJson ($values.controlPlane.kubeadmConfigSpec | default dict).kubeProxyConfiguration)) -}}
{{- $length = add $length (mul 20 (len (toJson (pick $values "registryMirrors" "proxy")))) -}}
{{- if gt $length 7000 -}}
{{- $files := include "openstack-cluster.kubeadm.files" (dict "root" . "role" "controlPlane" "values" $values.controlPlane "passthrough" dict) | fromYamlArray -}}
{{- range $files -}}
{{- if gt (len (.content | default "")) 10240 -}}
{{- include "openstack-cluster.validate.tooLong" (dict "root" $ "file" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Arguments: root, file (as Cluster API would get it). */}}
{{- define "openstack-cluster.validate.tooLong" -}}
{{- $path := .file.path -}}
{{- $key := "controlPlane" -}}
{{- range .root.Values.additionalFiles -}}
{{- if eq .path $path -}}
{{- $key = "additionalFiles" -}}
{{- end -}}
{{- end -}}
{{- if eq $key "additionalFiles" -}}
{{- else if hasPrefix "/etc/containerd/certs.d/" $path -}}
{{- $key = "registryMirrors" -}}
{{- else if has $path (list "/etc/kubernetes/proxy.env" "/etc/apt/apt.conf.d/90proxy") -}}
{{- $key = "proxy.noProxy" -}}
{{- else if eq (dir $path) (include "openstack-cluster.webhooks.azimuth.directory" .root) -}}
{{- $key = "azimuthAuthorizationWebhook" -}}
{{- else if contains "KubeProxyConfiguration" .file.content -}}
{{- $key = "controlPlane.kubeadmConfigSpec.kubeProxyConfiguration" -}}
{{- end -}}
{{- $limit := eq (.file.encoding | default "") "base64" | ternary "10240 (7680 bytes of text that travels in Base64, like this one)" "10240" -}}
{{- fail (printf "%s makes the file %s too long: it has %d characters as Cluster API receives it, which accepts %s: shorten it, or put it into a Secret (contentFrom in additionalFiles)." $key $path (len .file.content) $limit) -}}
{{- end -}}
