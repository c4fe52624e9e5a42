// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestReadImages(t *testing.T) {
	const version = "v1.34.4+a"
	cases := map[string]struct {
		kubeadm string
		want    images
	}{
		"a joining machine": {
			"    kind: JoinConfiguration\n    imageRepository: x\n",
			images{"registry.k8s.io/kube-proxy:v1.34.4_a", "registry.k8s.io/coredns/coredns:v1.12.1"},
		},
		"nothing is said": {
			"    kind: ClusterConfiguration\n    dns: {}\n",
			images{"registry.k8s.io/kube-proxy:v1.34.4_a", "registry.k8s.io/coredns/coredns:v1.12.1"},
		},
		"one repository for all": {
			"    ---\n    kind: ClusterConfiguration\n    imageRepository: r.example.org/m\n    ---\n    kind: InitConfiguration\n",
			images{"r.example.org/m/kube-proxy:v1.34.4_a", "r.example.org/m/coredns:v1.12.1"},
		},
		"DNS is elsewhere": {
			"    kind: ClusterConfiguration\n    imageRepository: r/m\n    dns: {imageRepository: r/m/coredns, imageTag: v1.13.0}\n",
			images{"r/m/kube-proxy:v1.34.4_a", "r/m/coredns/coredns:v1.13.0"},
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := readImages(cloudInit(test.kubeadm), version)
			if err != nil || got != test.want {
				t.Errorf("got %#v, %v; want %#v", got, err, test.want)
			}
		})
	}
	if _, err := readImages([]byte("a: ["), version); err == nil {
		t.Error("broken bootstrap data was accepted")
	}
}

func TestTheClusterHasTheImagesThatWereAskedFor(t *testing.T) {
	w := inMemory(allWorkloads(t), client.ObjectKey{Namespace: "p", Name: "one"})
	if err := w.joinControlPlane(t.Context(), "a", images{"r/p:1", "r/d:1"}, "uid"); err != nil {
		t.Fatal(err)
	}
	dns, proxy := &appsv1.Deployment{}, &appsv1.DaemonSet{}
	system := client.ObjectKey{Namespace: "kube-system", Name: "coredns"}
	if err := w.client.Get(t.Context(), system, dns); err != nil {
		t.Fatal(err)
	}
	system.Name = "kube-proxy"
	if err := w.client.Get(t.Context(), system, proxy); err != nil {
		t.Fatal(err)
	}
	got := images{proxy.Spec.Template.Spec.Containers[0].Image, dns.Spec.Template.Spec.Containers[0].Image}
	if want := (images{"r/p:1", "r/d:1"}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
