{{/* Rules for values that apply to every machine. */}}

{{/* Argument: root. */}}
{{- define "openstack-cluster.validate.machines" -}}
{{- $values := .Values -}}
{{- include "openstack-cluster.validate.trustedCAs" $values.trustedCAs -}}
{{- include "openstack-cluster.validate.proxy" ($values.proxy | default dict) -}}
{{- include "openstack-cluster.validate.additionalFiles" $values.additionalFiles -}}
{{- if eq $values.osDistro "flatcar" -}}
{{- if $values.additionalPackages -}}
{{- fail "additionalPackages are installed by apt, which Flatcar does not have: remove them, or build them into the image." -}}
{{- end -}}
{{- if $values.etcd.blockDevice -}}
{{- fail "etcd.blockDevice needs a link to the disk that Flatcar does not create: remove it, or set osDistro to ubuntu." -}}
{{- end -}}
{{- end -}}
{{- $controlPlane := dict "root" . "where" "controlPlane" "values" $values.controlPlane -}}
{{- include "openstack-cluster.validate.kubeadmConfigSpec" $controlPlane -}}
{{- include "openstack-cluster.validate.kubelet" (set $controlPlane "role" "controlPlane") -}}
{{- include "openstack-cluster.validate.nodeLabels" $controlPlane -}}
{{- include "openstack-cluster.validate.nodeTaints" $controlPlane -}}
{{- end -}}

{{/*
cloud-init takes what Cluster API sends it for a template. The chart's own text is safe from that, and kubeadmConfigSpec
is meant to be one; what else goes there as it is must not look like one. Argument: root.
*/}}
{{- define "openstack-cluster.validate.noTemplate" -}}
{{- $values := .Values -}}
{{- $plain := dict "oidc" $values.oidc "etcd.dataDir" $values.etcd.dataDir "etcd.extraArgs" $values.etcd.extraArgs
      "controllerManager.extraArgs" ($values.controllerManager).extraArgs "scheduler.extraArgs" ($values.scheduler).extraArgs
      "controllerManager.extraVolumes" ($values.controllerManager).extraVolumes
      "scheduler.extraVolumes" ($values.scheduler).extraVolumes "kubelet.extraArgs" ($values.kubelet).extraArgs
      "apiServer.extraArgs" $values.apiServer.extraArgs "apiServer.extraVolumes" $values.apiServer.extraVolumes
      "apiServer.audit.log.path" (($values.apiServer.audit).log).path
      "controlPlane.kubeletExtraArgs" $values.controlPlane.kubeletExtraArgs
      "nodeGroupDefaults.kubeletExtraArgs" $values.nodeGroupDefaults.kubeletExtraArgs -}}
{{- range $values.nodeGroups -}}
{{- $_ := set $plain (printf "Node group %q: kubeletExtraArgs" .name) .kubeletExtraArgs -}}
{{- end -}}
{{- range $where, $text := regexMatch "\\{[{%#]" (toJson $plain) | ternary $plain dict -}}
{{- if regexMatch "\\{[{%#]" (toJson $text) -}}
{{- fail (printf "%s contains {{ or other template syntax, which cloud-init would render: set it in kubeadmConfigSpec if it is a template, or remove the syntax." $where) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Argument: trustedCAs. */}}
{{- define "openstack-cluster.validate.trustedCAs" -}}
{{- range $name, $certificate := . -}}
{{- if contains "PRIVATE KEY" $certificate -}}
{{- fail (printf "trustedCAs.%s has a private key, which every machine would get: set the certificate only." $name) -}}
{{- end -}}
{{- $blocks := include "openstack-cluster.certificates" $certificate -}}
{{- $around := regexReplaceAll (include "openstack-cluster.certificates.block" .) $certificate "" -}}
{{- if or (not $blocks) (regexMatch "-----(BEGIN|END) " $around) -}}
{{- fail (printf "trustedCAs.%s is not a certificate in PEM: -----BEGIN CERTIFICATE-----, lines of Base64 and -----END CERTIFICATE----- begin a line each; in YAML, write | before them and not >." $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Argument: proxy. */}}
{{- define "openstack-cluster.validate.proxy" -}}
{{- $proxy := . -}}
{{- range $key := list "http" "https" -}}
{{- if contains "@" (get $proxy $key | default "") -}}
{{- fail (printf "proxy.%s has a user, and every user with read access to machine configurations would see the password: authenticate the machines by their addresses at the proxy." $key) -}}
{{- end -}}
{{- end -}}
{{- if and .noProxy (not (or .http .https)) -}}
{{- fail "proxy.noProxy has no effect without a proxy: set proxy.http or proxy.https." -}}
{{- end -}}
{{- end -}}

{{/* Argument: additionalFiles. */}}
{{- define "openstack-cluster.validate.additionalFiles" -}}
{{- $paths := dict -}}
{{- range . -}}
{{- if hasKey $paths .path -}}
{{- fail (printf "additionalFiles has two files %s: keep one of them." .path) -}}
{{- end -}}
{{- $_ := set $paths .path true -}}
{{- end -}}
{{- end -}}

{{/* Arguments: root, where (text), values (control plane or node group). */}}
{{- define "openstack-cluster.validate.kubeadmConfigSpec" -}}
{{- $where := .where -}}
{{- $passthrough := .values.kubeadmConfigSpec | default dict -}}
{{- $flatcar := eq .root.Values.osDistro "flatcar" -}}
{{- $paths := dict -}}
{{- range $passthrough.files -}}
{{- if hasKey $paths .path -}}
{{- fail (printf "%s: kubeadmConfigSpec.files has two files %s: keep one of them." $where .path) -}}
{{- end -}}
{{- $_ := set $paths .path true -}}
{{- end -}}
{{- if and $passthrough.ignition (not $flatcar) -}}
{{- fail (printf "%s: kubeadmConfigSpec.ignition is for Flatcar, and osDistro is %s: set osDistro to flatcar, or remove it." $where .root.Values.osDistro) -}}
{{- end -}}
{{- include "openstack-cluster.validate.kubeadmSources" (dict "where" $where "passthrough" $passthrough) -}}
{{- if $flatcar -}}
{{- include "openstack-cluster.validate.flatcar" (dict "root" .root "where" $where "passthrough" $passthrough) -}}
{{- end -}}
{{- range $section, $configuration := pick $passthrough "clusterConfiguration" "initConfiguration" "joinConfiguration" -}}
{{- range $key := list "apiVersion" "kind" "clusterName" "kubernetesVersion" "networking" "bootstrapTokens" -}}
{{- if hasKey $configuration $key -}}
{{- fail (printf "%s: kubeadmConfigSpec.%s.%s is set by Cluster API: remove it." $where $section $key) -}}
{{- end -}}
{{- end -}}
{{- with ($configuration.nodeRegistration | default dict).kubeletExtraArgs -}}
{{- if and (kindIs "slice" .) (ne (len .) (include "openstack-cluster.validate.flagNames" . | fromYamlArray | uniq | len)) -}}
{{- fail (printf "%s: kubeadmConfigSpec.%s.nodeRegistration.kubeletExtraArgs has a flag twice, and a kubelet uses the last one: keep one of them." $where $section) -}}
{{- end -}}
{{- end -}}
{{- if and (($configuration.discovery | default dict).timeout) (eq (include "openstack-cluster.api.core" $.root) "v1beta2") -}}
{{- fail (printf "%s: kubeadmConfigSpec.%s.discovery.timeout does not exist in core v1beta2: use timeouts.discoverySeconds." $where $section) -}}
{{- end -}}
{{- if and $configuration.timeouts (eq (include "openstack-cluster.api.core" $.root) "v1beta1") -}}
{{- fail (printf "%s: kubeadmConfigSpec.%s.timeouts does not exist in v1beta1: set apiVersions.core to v1beta2, or remove it." $where $section) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Argument: list of name and value. */}}
{{- define "openstack-cluster.validate.flagNames" -}}
{{- range . }}
- {{ .name | quote }}
{{- end }}
{{- end -}}
