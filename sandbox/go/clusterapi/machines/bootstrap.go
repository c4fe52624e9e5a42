// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// registration is what the bootstrap data tells a kubelet about its own Node.
type registration struct {
	labels map[string]string
	taints []corev1.Taint // nil: the bootstrap data says nothing, kubeadm's default holds
}

// kubeadmDocument is what is read of a document of kubeadm's configuration.
type kubeadmDocument struct {
	text string
	Kind string `json:"kind"`
	Node *struct {
		Taints           *[]corev1.Taint `json:"taints"`
		KubeletExtraArgs any             `json:"kubeletExtraArgs"`
	} `json:"nodeRegistration"`
	imageSource
}

// readKubeadm finds kubeadm's configuration in the cloud-init data that Cluster API's bootstrap
// provider made.
func readKubeadm(cloudInit []byte) ([]kubeadmDocument, error) {
	var data struct {
		WriteFiles []struct{ Path, Content string } `json:"write_files"`
	}
	if err := yaml.Unmarshal(cloudInit, &data); err != nil {
		return nil, fmt.Errorf("the bootstrap data is not cloud-init: %w", err)
	}
	var found []kubeadmDocument
	for _, file := range data.WriteFiles {
		if !strings.HasPrefix(file.Path, "/run/kubeadm/") {
			continue
		}
		for _, text := range strings.Split(file.Content, "\n---\n") {
			document := kubeadmDocument{text: strings.TrimSuffix(strings.TrimPrefix(text, "---\n"), "\n")}
			if err := yaml.Unmarshal([]byte(text), &document); err != nil {
				return nil, fmt.Errorf("%s is not kubeadm configuration: %w", file.Path, err)
			}
			found = append(found, document)
		}
	}
	return found, nil
}

// readRegistration is the nodeRegistration in the bootstrap data of a machine.
func readRegistration(cloudInit []byte) (registration, error) {
	documents, err := readKubeadm(cloudInit)
	if err != nil {
		return registration{}, err
	}
	for _, document := range documents {
		if document.Node == nil {
			continue
		}
		found := registration{labels: parseLabels(extraArg(document.Node.KubeletExtraArgs, "node-labels"))}
		if document.Node.Taints != nil {
			found.taints = append([]corev1.Taint{}, *document.Node.Taints...)
		}
		return found, nil
	}
	return registration{}, nil
}

// extraArg reads one argument out of a map (kubeadm v1beta3) or a list of name and value (v1beta4).
func extraArg(args any, name string) string {
	switch known := args.(type) {
	case map[string]any:
		value, _ := known[name].(string)
		return value
	case []any:
		for _, item := range known {
			if pair, ok := item.(map[string]any); ok && pair["name"] == name {
				value, _ := pair["value"].(string)
				return value
			}
		}
	}
	return ""
}

func parseLabels(text string) map[string]string {
	labels := map[string]string{}
	for _, pair := range strings.Split(text, ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			labels[key] = value
		}
	}
	return labels
}
