{{/* Rules for host paths that the control plane's programs mount. */}}

{{/* Kubernetes takes no pod with two volumes of a name, or two at a place. */}}
{{- define "openstack-cluster.validate.hostPaths" -}}
{{- range $where, $chart := dict
      "apiServer" (include "openstack-cluster.kubeadm.apiServerVolumes" . | fromYamlArray)
      "controllerManager" list
      "scheduler" list -}}
{{- $seen := dict -}}
{{- range $chart -}}
{{- if hasKey $seen .mountPath -}}
{{- fail (printf "apiServer.audit.log.path is in %s, which the chart uses for another purpose: use another directory." .mountPath) -}}
{{- end -}}
{{- $_ := set $seen .mountPath true -}}
{{- end -}}
{{- $seen = dict -}}
{{- range concat $chart ((get $.Values $where | default dict).extraVolumes | default list) -}}
{{- range $what := list .name .mountPath -}}
{{- if hasKey $seen $what -}}
{{- fail (printf "%s.extraVolumes has %q twice, or the chart has it, too: use a different name and mountPath for each volume." $where $what) -}}
{{- end -}}
{{- $_ := set $seen $what true -}}
{{- end -}}
{{- end -}}
{{- $passthrough := (get ((($.Values.controlPlane.kubeadmConfigSpec).clusterConfiguration) | default dict) $where | default dict).extraVolumes -}}
{{- include "openstack-cluster.validate.mounts" (dict "root" $ "where" $where "volumes" (concat $chart ((get $.Values $where | default dict).extraVolumes | default list) ($passthrough | default list))) -}}
{{- end -}}
{{- end -}}

{{/*
Volumes beside kubeadm's own. kubeadm puts the later of two with a name in the place of the earlier, and does not look
at their paths. Arguments: root, where (apiServer, controllerManager or scheduler), volumes.
Source: https://github.com/kubernetes/kubernetes/blob/master/cmd/kubeadm/app/phases/controlplane/volumes.go
*/}}
{{- define "openstack-cluster.validate.mounts" -}}
{{- $where := .where -}}
{{- $passthrough := (.root.Values.controlPlane.kubeadmConfigSpec).clusterConfiguration | default dict -}}
{{- $needed := dict "k8s-certs" ($passthrough.certificatesDir | default "/etc/kubernetes/pki" | toString) -}}
{{- $kubeadm := dict "ca-certs" "/etc/ssl/certs" "usr-share-ca-certificates" "/usr/share/ca-certificates" -}}
{{- if eq .root.Values.osDistro "ubuntu" -}}
{{- $kubeadm = merge $kubeadm (dict "etc-ca-certificates" "/etc/ca-certificates" "usr-local-share-ca-certificates" "/usr/local/share/ca-certificates") -}}
{{- end -}}
{{- if eq $where "controllerManager" -}}
{{- $_ := set $needed "kubeconfig" "/etc/kubernetes/controller-manager.conf" -}}
{{- $flags := include "openstack-cluster.controlPlane.flags" (dict "root" .root "program" $where) | fromYaml -}}
{{- $_ := set $kubeadm "flexvolume-dir" (get $flags "flex-volume-plugin-dir" | default "/usr/libexec/kubernetes/kubelet-plugins/volume/exec") -}}
{{- else if eq $where "scheduler" -}}
{{- $needed = dict "kubeconfig" "/etc/kubernetes/scheduler.conf" -}}
{{- $kubeadm = dict -}}
{{- end -}}
{{- $mounts := merge (dict) $needed $kubeadm -}}
{{- range .volumes -}}
{{- if and (kindIs "string" .name) (kindIs "string" .mountPath) -}}
{{- if ne .mountPath (get $needed .name | default .mountPath) -}}
{{- fail (printf "%s.extraVolumes has a volume %s, which is the name of kubeadm's volume at %s: use another name." $where .name (get $needed .name)) -}}
{{- end -}}
{{- $_ := set $mounts .name .mountPath -}}
{{- end -}}
{{- end -}}
{{- $seen := dict -}}
{{- range $name, $path := $mounts -}}
{{- if hasKey $seen $path -}}
{{- fail (printf "%s.extraVolumes, kubeadm, the chart and kubeadmConfigSpec together mount %s twice, as %s and as %s: remove one of them, or use another path; flexvolume-dir is at flex-volume-plugin-dir." $where $path (get $seen $path) $name) -}}
{{- end -}}
{{- $_ := set $seen $path $name -}}
{{- end -}}
{{- end -}}
