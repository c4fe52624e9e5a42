{{/* Rules of machines, for the control plane, each node group and in part the bastion. */}}

{{/*
Arguments: root, where (text), values (control plane, or node group with the defaults), explicit (the scope's keys
without the defaults).
*/}}
{{- define "openstack-cluster.validate.openstackMachine" -}}
{{- $where := .where -}}
{{- $values := .values -}}
{{- $api := include "openstack-cluster.api.infrastructure" .root -}}
{{- include "openstack-cluster.validate.image" . -}}
{{- if and .explicit.machineImage (not .explicit.machineImageId) $values.machineImageId -}}
{{- fail (printf "%s: machineImage %q would not be used, because machineImageId of nodeGroupDefaults takes precedence: set machineImageId of the group, to an id or to \"\"." $where .explicit.machineImage) -}}
{{- end -}}
{{- if and $values.serverGroupId $values.serverGroupName -}}
{{- $id := include "openstack-cluster.validate.setAt" (dict "scope" . "path" (list "serverGroupId")) -}}
{{- $name := include "openstack-cluster.validate.setAt" (dict "scope" . "path" (list "serverGroupName")) -}}
{{- fail (printf "%s is %q and %s is %q: keep one, and set the other to \"\"." $id $values.serverGroupId $name $values.serverGroupName) -}}
{{- end -}}
{{- $group := get ($values.schedulerHints | default dict) "group" | toString -}}
{{- if and .root.Release.IsInstall (hasKey ($values.schedulerHints | default dict) "group") (or $values.serverGroupId $values.serverGroupName) (ne $group (toString $values.serverGroupId)) -}}
{{- $place := include "openstack-cluster.validate.setAt" (dict "scope" . "path" (list "schedulerHints" "group")) -}}
{{- fail (printf "%s is %s, and serverGroupId or serverGroupName selects a server group, too: remove one of them." $place $group) -}}
{{- end -}}
{{- range $name, $device := $values.additionalBlockDevices -}}
{{- $place := include "openstack-cluster.validate.setAt" (dict "scope" $ "path" (list "additionalBlockDevices" $name)) -}}
{{- $devices := trimSuffix (printf ".%s" $name) $place -}}
{{- if not (regexMatch "^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$" $name) -}}
{{- fail (printf "%s has %q, which becomes a tag of the disk: use letters, digits, \"-\", \"_\" and \".\"." $devices $name) -}}
{{- end -}}
{{- if gt (len $name) 60 -}}
{{- fail (printf "%s has %q with %d characters, which becomes a tag of the disk: Nova accepts 60 at most." $devices $name (len $name)) -}}
{{- end -}}
{{- if eq $name "root" -}}
{{- fail (printf "%s has the name of the boot volume, which is machineRootVolume: use another name." $place) -}}
{{- end -}}
{{- include "openstack-cluster.validate.blockDevice" (dict "where" $place "device" $device) -}}
{{- end -}}
{{- with $values.containerdBlockDevice -}}
{{- $place := include "openstack-cluster.validate.setAt" (dict "scope" $ "path" (list "containerdBlockDevice")) -}}
{{- include "openstack-cluster.validate.blockDevice" (dict "where" $place "device" .) -}}
{{- if hasKey ($values.additionalBlockDevices | default dict) "containerd" -}}
{{- $other := include "openstack-cluster.validate.setAt" (dict "scope" $ "path" (list "additionalBlockDevices" "containerd")) -}}
{{- fail (printf "%s has the name of containerdBlockDevice: remove one of them." $other) -}}
{{- end -}}
{{- if eq $.root.Values.osDistro "flatcar" -}}
{{- fail (printf "%s needs a link to the disk that Flatcar does not create: remove it, or set osDistro to ubuntu." $place) -}}
{{- end -}}
{{- end -}}
{{- include "openstack-cluster.validate.ports" . -}}
{{- if eq $api "v1beta2" -}}
{{- $metadata := include "openstack-cluster.machine.values.merged" (dict "defaults" .root.Values.machineMetadata "values" $values.machineMetadata) | fromJson -}}
{{- range $key, $value := $metadata -}}
{{- if eq (toString $value) "" -}}
{{- $place := include "openstack-cluster.validate.setAt" (dict "scope" $ "path" (list "machineMetadata" $key)) -}}
{{- fail (printf "%s is empty, which apiVersions.infrastructure v1beta2 does not accept: set a text." $place) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Where a value of a machine was set, as the beginning of a sentence: in the scope itself, in nodeGroupDefaults, or else
for the whole cluster. Arguments: scope (as of openstackMachine; explicit are the values without one), path (list).
*/}}
{{- define "openstack-cluster.validate.setAt" -}}
{{- $path := .path -}}
{{- $set := list -}}
{{- range $values := list (.scope.explicit | default .scope.values) .scope.values -}}
{{- range $key := initial $path -}}
{{- $values = get $values $key | default dict -}}
{{- end -}}
{{- $set = append $set (and (hasKey $values (last $path)) (not (kindIs "invalid" (get $values (last $path))))) -}}
{{- end -}}
{{- first $set | ternary (printf "%s: " .scope.where) (last $set | ternary "nodeGroupDefaults." "") }}{{ join "." $path -}}
{{- end -}}

{{/* Keys that have no effect without another one; defaults may have them. Arguments: as of openstackMachine. */}}
{{- define "openstack-cluster.validate.rootVolume" -}}
{{- $where := .where -}}
{{- $size := (.values.machineRootVolume | default dict).diskSize | int -}}
{{- range $key, $value := pick (.explicit.machineRootVolume | default dict) "volumeType" "availabilityZone" -}}
{{- if and $value (not $size) -}}
{{- fail (printf "%s: machineRootVolume.%s is %q, but machines use the flavor's disk: set machineRootVolume.diskSize for a boot volume, or remove it." $where $key $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Arguments: root, where, values, explicit (as of openstackMachine). */}}
{{- define "openstack-cluster.validate.image" -}}
{{- $cluster := .root.Values -}}
{{- if not (or .values.machineImageId .values.machineImage $cluster.machineImageId $cluster.machineImage) -}}
{{- fail (printf "%s has no image: set machineImageId or machineImage there or for the whole cluster, to the id or the name of an image in Glance." .where) -}}
{{- end -}}
{{- $template := include "openstack-cluster.machine.imageName.template" . -}}
{{- $own := .values.machineImage | empty | ternary "" (include "openstack-cluster.validate.setAt" (dict "scope" . "path" (list "machineImage"))) -}}
{{- range $place, $name := dict "machineImage" $cluster.machineImage $own .values.machineImage -}}
{{- if contains "{{" (regexReplaceAllLiteral $template ($name | default "") "") -}}
{{- fail (printf "%s %q is plain text, in which only {{ .Values.kubernetesVersion }} is replaced: use the image's full name." $place $name) -}}
{{- end -}}
{{- end -}}
{{- $nearest := or .values.machineImageId .values.machineImage | empty | ternary $cluster .values -}}
{{- $version := include "openstack-cluster.machine.values.version" . -}}
{{- if and (not $nearest.machineImageId) (regexMatch $template ($nearest.machineImage | default "")) (ne $version (include "openstack-cluster.machine.values.version" (dict "root" .root "values" $cluster))) -}}
{{- fail (printf "%s %q is filled with the whole cluster's kubernetesVersion, which is %s, but the machines' is %s (%s): use the image's full name." ($own | default "machineImage") $nearest.machineImage ($cluster.kubernetesVersion | default "not set") $version .where) -}}
{{- end -}}
{{- end -}}

{{/* A disk of the hypervisor has no Cinder type or zone. Arguments: where, device. */}}
{{- define "openstack-cluster.validate.blockDevice" -}}
{{- if and (eq (.device.type | default "Volume") "Local") (or .device.volumeType .device.availabilityZone) -}}
{{- fail (printf "%s has type Local, and volumeType and availabilityZone apply to a Volume: remove them, or set type to Volume." .where) -}}
{{- end -}}
{{- end -}}

{{/* Disks and zones that only the control plane has. Argument: root. */}}
{{- define "openstack-cluster.validate.controlPlaneDisks" -}}
{{- $controlPlane := .Values.controlPlane -}}
{{- with .Values.etcd.blockDevice -}}
{{- if ((($controlPlane.kubeadmConfigSpec).clusterConfiguration).etcd).external -}}
{{- fail "etcd.blockDevice is a disk for etcd, and controlPlane.kubeadmConfigSpec.clusterConfiguration.etcd.external configures an external etcd: remove one of them." -}}
{{- end -}}
{{- include "openstack-cluster.validate.blockDevice" (dict "where" "etcd.blockDevice" "device" .) -}}
{{- if hasKey ($controlPlane.additionalBlockDevices | default dict) "etcd" -}}
{{- fail "controlPlane.additionalBlockDevices.etcd has the name of etcd.blockDevice: remove one of them." -}}
{{- end -}}
{{- end -}}
{{- if and $controlPlane.failureDomains $controlPlane.omitFailureDomain -}}
{{- fail (printf "controlPlane.failureDomains is %s, but controlPlane.omitFailureDomain leaves the zone to Nova: set it to false, or remove the zones." (join ", " $controlPlane.failureDomains)) -}}
{{- end -}}
{{- end -}}
