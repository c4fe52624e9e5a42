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

// readRegistration finds the nodeRegistration of kubeadm's configuration in the cloud-init data
// that Cluster API's bootstrap provider made.
func readRegistration(cloudInit []byte) (registration, error) {
	var data struct {
		WriteFiles []struct{ Path, Content string } `json:"write_files"`
	}
	if err := yaml.Unmarshal(cloudInit, &data); err != nil {
		return registration{}, fmt.Errorf("the bootstrap data is not cloud-init: %w", err)
	}
	for _, file := range data.WriteFiles {
		if !strings.HasPrefix(file.Path, "/run/kubeadm/") {
			continue
		}
		for _, document := range strings.Split(file.Content, "\n---\n") {
			var config struct {
				Node *struct {
					Taints           *[]corev1.Taint `json:"taints"`
					KubeletExtraArgs any             `json:"kubeletExtraArgs"`
				} `json:"nodeRegistration"`
			}
			if err := yaml.Unmarshal([]byte(document), &config); err != nil {
				return registration{}, fmt.Errorf("%s is not kubeadm configuration: %w", file.Path, err)
			}
			if config.Node == nil {
				continue
			}
			found := registration{labels: parseLabels(extraArg(config.Node.KubeletExtraArgs, "node-labels"))}
			if config.Node.Taints != nil {
				found.taints = append([]corev1.Taint{}, *config.Node.Taints...)
			}
			return found, nil
		}
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
