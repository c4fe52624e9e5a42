// SPDX-License-Identifier: Apache-2.0

package main

import "sigs.k8s.io/cluster-api/util/container"

const (
	defaultRegistry = "registry.k8s.io"
	defaultDNSTag   = "v1.12.1"
)

// imageSource is what kubeadm's ClusterConfiguration says of images.
type imageSource struct {
	Repository string `json:"imageRepository"`
	DNS        struct {
		Repository string `json:"imageRepository"`
		Tag        string `json:"imageTag"`
	} `json:"dns"`
}

// images are those of the addons that kubeadm installs.
type images struct{ proxy, dns string }

// images follows GetKubernetesImage and GetDNSImage of kubeadm
// (https://github.com/kubernetes/kubernetes/blob/v1.34.4/cmd/kubeadm/app/images/images.go): Cluster
// API's control plane provider compares, and would change, which here it cannot.
func (s imageSource) images(version string) images {
	repository, dns, tag := s.Repository, s.DNS.Repository, s.DNS.Tag
	if repository == "" {
		repository = defaultRegistry
	}
	if dns == "" {
		dns = repository
	}
	if dns == defaultRegistry {
		dns += "/coredns"
	}
	if tag == "" {
		tag = defaultDNSTag
	}
	return images{
		proxy: repository + "/kube-proxy:" + container.SemverToOCIImageTag(version),
		dns:   dns + "/coredns:" + tag,
	}
}

// readImages are those that the bootstrap data of a machine asks for; only the first machine's does.
func readImages(cloudInit []byte, version string) (images, error) {
	documents, err := readKubeadm(cloudInit)
	if err != nil {
		return images{}, err
	}
	for _, document := range documents {
		if document.Kind == "ClusterConfiguration" {
			return document.images(version), nil
		}
	}
	return imageSource{}.images(version), nil
}
