{{/* Files on the machines. */}}

{{/*
All files of a machine. Cluster API takes no path twice: an operator's file replaces the chart's of that path,
and one of kubeadmConfigSpec replaces one of additionalFiles.
Arguments: root, role (controlPlane or worker), values (control plane or node group), passthrough (kubeadmConfigSpec).
*/}}
{{- define "openstack-cluster.kubeadm.files" -}}
{{- $chart := include "openstack-cluster.kubeadm.files.chart" . -}}
{{- $additional := .root.Values.additionalFiles | default list -}}
{{- $passthrough := .passthrough.files | default list -}}
{{- $taken := dict -}}
{{- range $passthrough -}}
{{- $_ := set $taken .path true -}}
{{- end -}}
{{- $given := list -}}
{{- range $additional -}}
{{- if not (hasKey $taken .path) -}}
{{- $given = append $given . -}}
{{- $_ := set $taken .path true -}}
{{- end -}}
{{- end -}}
{{- if $taken }}
{{- range fromYamlArray $chart }}
{{- if not (hasKey $taken .path) }}
- {{ toJson . }}
{{- end }}
{{- end }}
{{- else }}
{{- $chart }}
{{- end }}
{{- range $given }}
{{ include "openstack-cluster.kubeadm.file" (dict "file" . "root" $.root) }}
{{- end }}
{{- if and $passthrough (eq .root.Values.osDistro "flatcar") }}
{{- range $passthrough }}
- {{ toJson (kindIs "string" .permissions | ternary (merge (dict "permissions" (include "openstack-cluster.kubeadm.permissions" (dict "root" $.root "permissions" .permissions))) .) .) }}
{{- end }}
{{- else if $passthrough }}
{{ toYaml $passthrough }}
{{- end }}
{{- end -}}

{{/* On Flatcar YAML reads them as a number, octal only with a leading 0. Arguments: root, permissions. */}}
{{- define "openstack-cluster.kubeadm.permissions" -}}
{{- if and (eq .root.Values.osDistro "flatcar") (regexMatch "^[1-7][0-7]*$" (toString .permissions)) -}}0{{- end -}}
{{ .permissions }}
{{- end -}}

{{/* The chart's own files; bodies that do not depend on values are in files/. */}}
{{- define "openstack-cluster.kubeadm.files.chart" -}}
{{- include "openstack-cluster.kubeadm.files.trustedCAs" .root }}
{{- include "openstack-cluster.proxy.files" .root }}
{{- include "openstack-cluster.containerd.files" .root }}
{{- if .values.containerdBlockDevice }}
- path: /opt/openstack-cluster/containerd-disk.sh
  owner: root:root
  permissions: "0755"
  content: {{ .root.Files.Get "files/machine/containerd-disk.sh" | toJson }}
{{- end }}
{{- if eq .role "controlPlane" }}
{{- include "openstack-cluster.controlPlane.files" .root }}
{{- end }}
{{- end -}}

{{/* One of additionalFiles. Arguments: root, file. */}}
{{- define "openstack-cluster.kubeadm.file" -}}
- path: {{ .file.path | quote }}
  owner: {{ .file.owner | default "root:root" | quote }}
  permissions: {{ include "openstack-cluster.kubeadm.permissions" (dict "root" .root "permissions" (.file.permissions | default "0644")) | quote }}
  {{- if .file.contentFrom }}
  contentFrom: {{ toJson .file.contentFrom }}
  {{- else }}
  {{- include "openstack-cluster.kubeadm.exactContent" .file.content | nindent 2 }}
  {{- end }}
{{- end -}}

{{/*
Text of a file as it is. The YAML of cloud-init changes space at either end and odd characters, and Jinja's marks
mean something to it: such text travels in Base64. Argument: the text.
*/}}
{{- define "openstack-cluster.kubeadm.exactContent" -}}
{{- if regexMatch "^[!-~]([ -~\n]*[!-~])?\n$" . -}}
{{- include "openstack-cluster.kubeadm.content" . -}}
{{- else -}}
encoding: base64
content: {{ b64enc . }}
{{- end -}}
{{- end -}}

{{/*
Certificates of authorities where the operating system looks for them. Argument: root.
Sources: update-ca-certificates(8) and https://www.flatcar.org/docs/latest/setup/security/adding-certificate-authorities/
*/}}
{{- define "openstack-cluster.kubeadm.files.trustedCAs" -}}
{{- $path := "/usr/local/share/ca-certificates/%s.crt" -}}
{{- if eq .Values.osDistro "flatcar" -}}
{{- $path = "/etc/ssl/certs/%s.pem" -}}
{{- end -}}
{{- range $name, $certificate := .Values.trustedCAs }}
- path: {{ printf $path $name | quote }}
  owner: root:root
  permissions: "0644"
  content: {{ printf "%s\n" (include "openstack-cluster.certificates" $certificate) | toJson }}
{{- end }}
{{- end -}}

{{/*
The body of a file. cloud-init takes what Cluster API sends it for a Jinja template: text with Jinja's marks goes as
Base64, so that it arrives as it is. Argument: text.
*/}}
{{- define "openstack-cluster.kubeadm.content" -}}
{{- if regexMatch "\\{[{%#]" . -}}
encoding: base64
content: {{ b64enc . }}
{{- else -}}
content: {{ toJson . }}
{{- end -}}
{{- end -}}

{{/* The same for a file whose body stands in a Secret of this chart. Argument: text. */}}
{{- define "openstack-cluster.kubeadm.secretContent" -}}
{{- regexMatch "\\{[{%#]" . | ternary (b64enc .) . | toJson -}}
{{- end -}}

{{/* Arguments: path, secret (name), key, text (of the Secret's key). */}}
{{- define "openstack-cluster.kubeadm.secretFile" }}
- path: {{ .path }}
  owner: root:root
  permissions: "0600"
  {{- if regexMatch "\\{[{%#]" .text }}
  encoding: base64
  {{- end }}
  contentFrom:
    secret:
      name: {{ .secret }}
      key: {{ .key }}
{{- end -}}
