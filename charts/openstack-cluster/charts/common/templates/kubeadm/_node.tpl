{{/*
kubeadm's InitConfiguration and JoinConfiguration.
Arguments of all: root, core, role (controlPlane or worker), values (control plane or node group), passthrough (the
operator's kubeadmConfigSpec).
*/}}

{{- define "openstack-cluster.kubeadm.initConfiguration" -}}
{{- $passthrough := .passthrough.initConfiguration | default dict -}}
nodeRegistration: {{- include "openstack-cluster.kubeadm.nodeRegistration" (dict "machine" . "passthrough" ($passthrough.nodeRegistration | default dict)) | nindent 2 }}
{{- with concat (list (include "openstack-cluster.kubeadm.skippedPhase" .root)) ($passthrough.skipPhases | default list) | compact | uniq }}
skipPhases: {{ toJson . }}
{{- end }}
{{- with include "openstack-cluster.kubeadm.localAPIEndpoint" (dict "root" .root "passthrough" $passthrough.localAPIEndpoint) | trim }}
localAPIEndpoint: {{- . | nindent 2 }}
{{- end }}
{{- include "openstack-cluster.kubeadm.remaining" (dict "passthrough" $passthrough "without" (list "nodeRegistration" "skipPhases" "localAPIEndpoint")) }}
{{- end -}}

{{- define "openstack-cluster.kubeadm.joinConfiguration" -}}
{{- $passthrough := .passthrough.joinConfiguration | default dict -}}
nodeRegistration: {{- include "openstack-cluster.kubeadm.nodeRegistration" (dict "machine" . "passthrough" ($passthrough.nodeRegistration | default dict)) | nindent 2 }}
{{- if eq .role "controlPlane" }}
{{- $controlPlane := $passthrough.controlPlane | default dict }}
{{- with include "openstack-cluster.kubeadm.localAPIEndpoint" (dict "root" .root "passthrough" $controlPlane.localAPIEndpoint) | trim }}
controlPlane:
  localAPIEndpoint: {{- . | nindent 4 }}
{{- end }}
{{- end }}
{{- include "openstack-cluster.kubeadm.remaining" (dict "passthrough" $passthrough "without" (eq .role "controlPlane" | ternary (list "nodeRegistration" "controlPlane") (list "nodeRegistration"))) }}
{{- end -}}

{{/*
Where the API server of a machine listens: at the port of the API, to which the OpenStack provider's load balancer
sends too. Arguments: root, passthrough (the operator's localAPIEndpoint).
*/}}
{{- define "openstack-cluster.kubeadm.localAPIEndpoint" -}}
{{- $passthrough := .passthrough | default dict -}}
{{- $port := $passthrough.bindPort | default .root.Values.apiServer.port | int -}}
{{- if ne $port 6443 }}
bindPort: {{ $port }}
{{- end }}
{{- include "openstack-cluster.kubeadm.remaining" (dict "passthrough" $passthrough "without" (list "bindPort")) }}
{{- end -}}

{{/*
The Node is called like its server, as the OpenStack cloud controller expects it; cloud-init fills that in, on
Flatcar a command does. Arguments: machine (the arguments above), passthrough (the operator's nodeRegistration).
*/}}
{{- define "openstack-cluster.kubeadm.nodeRegistration" -}}
{{- $name := "{{ local_hostname }}" -}}
{{- if eq .machine.root.Values.osDistro "flatcar" -}}
{{- $name = "${COREOS_OPENSTACK_HOSTNAME}" -}}
{{- end -}}
name: {{ .passthrough.name | default $name | toJson }}
kubeletExtraArgs: {{- include "openstack-cluster.kubeadm.kubeletArgs" . | trim | nindent 2 }}
{{- with include "openstack-cluster.kubeadm.taints" . }}
taints: {{- . | nindent 2 }}
{{- end }}
{{- with concat (include "openstack-cluster.kubeadm.ignoredPreflightErrors" .machine | fromJsonArray) (.passthrough.ignorePreflightErrors | default list) | compact | uniq }}
ignorePreflightErrors: {{ toJson . }}
{{- end }}
{{- include "openstack-cluster.kubeadm.remaining" (dict "passthrough" .passthrough
      "without" (list "name" "kubeletExtraArgs" "taints" "ignorePreflightErrors")) }}
{{- end -}}

{{/*
Flags of the kubelet, the nearer ones winning: the chart's, kubelet.extraArgs, kubeletExtraArgs of the role or group,
and the operator's kubeadmConfigSpec. The labels of all of them are one flag. Arguments: as of nodeRegistration.
*/}}
{{- define "openstack-cluster.kubeadm.kubeletArgs" -}}
{{- $labels := list -}}
{{- range $key, $value := include "openstack-cluster.kubeadm.nodeLabels" .machine | fromJson -}}
{{- $labels = append $labels (printf "%s=%s" $key $value) -}}
{{- end -}}
{{- $chart := dict "cloud-provider" "external" -}}
{{- $tls := include "openstack-cluster.flags.tls" .machine.root | fromJson -}}
{{- $all := (.machine.root.Values.kubelet | default dict).extraArgs -}}
{{- $flags := list $chart $tls $all .machine.values.kubeletExtraArgs .passthrough.kubeletExtraArgs -}}
{{- range $flags -}}
{{- with include "openstack-cluster.kubeadm.flag" (dict "flags" . "name" "node-labels") -}}
{{- $labels = append $labels . -}}
{{- end -}}
{{- end -}}
{{- with $labels -}}
{{- $flags = append $flags (dict "node-labels" (join "," .)) -}}
{{- end -}}
{{- include "openstack-cluster.flags.merged" (dict "core" .machine.core "flags" $flags) -}}
{{- end -}}

{{/* The value of a flag. Arguments: flags (a map, a list of name and value, or nothing), name. */}}
{{- define "openstack-cluster.kubeadm.flag" -}}
{{- $name := .name -}}
{{- if kindIs "slice" .flags -}}
{{- range .flags -}}
{{- if and (eq .name $name) (not (kindIs "invalid" .value)) -}}{{ .value }}{{- end -}}
{{- end -}}
{{- else if and .flags (not (kindIs "invalid" (get .flags $name))) -}}
{{ get .flags $name }}
{{- end -}}
{{- end -}}

{{/* Labels that the kubelet gives its Node, as JSON; what Cluster API keeps on the Node is not among them. */}}
{{- define "openstack-cluster.kubeadm.nodeLabels" -}}
{{- $labels := .values.nodeLabels | default dict -}}
{{- if eq .role "worker" -}}
{{- $labels = include "openstack-cluster.nodeGroup.nodeLabels" (dict "root" .root "group" .values) | fromJson -}}
{{- end -}}
{{- include "openstack-cluster.nodeMetadata.labels.kubelet" (dict "root" .root "labels" $labels) -}}
{{- end -}}

{{/* Taints that the kubelet registers its Node with; the operator's list stands in place of the chart's. */}}
{{- define "openstack-cluster.kubeadm.taints" -}}
{{- if not (kindIs "invalid" .passthrough.taints) -}}
{{- toYaml .passthrough.taints -}}
{{- else if eq .machine.role "worker" -}}
{{- include "openstack-cluster.nodeMetadata.taints.kubelet" (dict "root" .machine.root "values" .machine.values) -}}
{{- else if not (kindIs "invalid" .machine.values.nodeTaints) -}}
{{- include "openstack-cluster.nodeMetadata.taints" (dict "taints" .machine.values.nodeTaints) | trim | default "[]" -}}
{{- end -}}
{{- end -}}

{{/* As JSON: an etcd disk of its own is not empty (lost+found), nor are the static pods before kubeadm writes its own. */}}
{{- define "openstack-cluster.kubeadm.ignoredPreflightErrors" -}}
{{- $directories := list -}}
{{- if and (eq .role "controlPlane") .root.Values.etcd.blockDevice -}}
{{- $directories = append $directories .root.Values.etcd.dataDir -}}
{{- end -}}
{{- if and (eq .role "controlPlane") (include "openstack-cluster.barbican.enabled" .root) -}}
{{- $directories = append $directories "/etc/kubernetes/manifests" -}}
{{- end -}}
{{- $errors := list -}}
{{- range $directories -}}
{{- $errors = append $errors (printf "DirAvailable-%s" (replace "/" "-" .)) -}}
{{- end -}}
{{ toJson $errors }}
{{- end -}}

{{/* Cilium does the work of kube-proxy. Argument: root. */}}
{{- define "openstack-cluster.kubeadm.skippedPhase" -}}
{{- $addons := .Values.addons -}}
{{- if and $addons.enabled $addons.cni.enabled (eq $addons.cni.type "cilium") -}}
{{- $cilium := $addons.cni.cilium.release.values -}}
{{- if not (and (hasKey $cilium "kubeProxyReplacement") (eq (toString $cilium.kubeProxyReplacement) "false")) -}}
addon/kube-proxy
{{- end -}}
{{- end -}}
{{- end -}}
