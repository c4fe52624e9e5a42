{{/* Parts of the OpenStackCluster. */}}

{{/* A network or subnet: by id, or else by everything that was given. Argument: the filter. */}}
{{- define "openstack-cluster.filter" -}}
{{- if .id -}}
id: {{ .id | quote }}
{{- else -}}
filter:
  {{- range $key, $value := . }}
  {{- if and (hasPrefix "tags" (lower $key | trimPrefix "not")) (kindIs "string" $value) }}
  {{ $key }}: {{ splitList "," $value | toJson }}
  {{- else }}
  {{ $key }}: {{ toJson $value }}
  {{- end }}
  {{- end }}
{{- end -}}
{{- end -}}

{{/* Security groups that the provider makes. Argument: root. */}}
{{- define "openstack-cluster.managedSecurityGroups" -}}
{{- $workers := .Values.clusterNetworking.workerNodesSecurityGroupRules -}}
{{- if eq (.Values.apiServer.loadBalancerProvider | default "") "ovn" -}}
{{- $workers = concat $workers (.Files.Get "files/ovn-worker-rules.yaml" | fromYamlArray) | uniq -}}
{{- end -}}
allowAllInClusterTraffic: {{ .Values.clusterNetworking.allowAllInClusterTraffic }}
{{- with $workers }}
workerNodesSecurityGroupRules: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.clusterNetworking.controlPlaneNodesSecurityGroupRules }}
controlPlaneNodesSecurityGroupRules: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
