// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func activeServer(name string) *unstructured.Unstructured {
	server := objectOf(serverKind)
	server.SetName(name)
	server.SetNamespace("magnum-p1")
	server.SetUID("server-uid")
	server.Object["status"] = map[string]any{"instanceState": "ACTIVE", "instanceID": "1234"}
	return server
}

func hasTaint(node *corev1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == key })
}

func TestNewNode(t *testing.T) {
	told := registration{labels: map[string]string{"a": "b"}}
	controlPlane, worker := newNode("cp", "v1.34.4", true, told), newNode("w", "v1.34.4", false, told)
	if !hasTaint(controlPlane, controlPlaneRole) || hasTaint(worker, controlPlaneRole) {
		t.Error("only a control-plane node has kubeadm's taint by default")
	}
	if !hasTaint(worker, uninitializedTaint) || worker.Labels["a"] != "b" || isReady(worker) {
		t.Errorf("a new worker: taints %v, labels %v", worker.Spec.Taints, worker.Labels)
	}
	told.taints = []corev1.Taint{}
	if hasTaint(newNode("cp", "v1.34.4", true, told), controlPlaneRole) {
		t.Error("an empty list of taints means none")
	}
}

// A node is told its providerID by the cloud controller manager and gets ready with its network,
// one after the other, and each only some time after the addon runs.
func TestAdvance(t *testing.T) {
	wait := delays{init: 2 * time.Second, ready: 3 * time.Second}
	begin := time.Unix(1000, 0)
	both := addons{cloudController: true, network: true}
	steps := []struct {
		at       time.Duration
		running  addons
		provider bool
		ready    bool
		after    time.Duration
	}{
		{0, addons{}, false, false, 0},
		{1 * time.Second, addons{network: true}, false, false, 0},
		{5 * time.Second, both, false, false, 2 * time.Second},
		{7 * time.Second, both, true, false, 3 * time.Second},
		{8 * time.Second, addons{cloudController: true}, true, false, 0},
		{9 * time.Second, both, true, false, 3 * time.Second},
		{12 * time.Second, both, true, true, 0},
		{13 * time.Second, addons{}, true, true, 0},
	}
	node, g := newNode("w", "v1.34.4", false, registration{}), &guest{}
	for _, step := range steps {
		after := g.advance(node, activeServer("w"), step.running, wait, begin.Add(step.at))
		if (node.Spec.ProviderID != "") != step.provider || isReady(node) != step.ready || after != step.after {
			t.Errorf("after %v: providerID %q, ready %v, again in %v; want %+v",
				step.at, node.Spec.ProviderID, isReady(node), after, step)
		}
	}
	if node.Spec.ProviderID != "openstack:///1234" || hasTaint(node, uninitializedTaint) {
		t.Errorf("providerID %q, taints %v", node.Spec.ProviderID, node.Spec.Taints)
	}
}

func TestAddAddresses(t *testing.T) {
	node := newNode("w", "v1.34.4", false, registration{})
	known := clusterv1.MachineAddresses{
		{Type: clusterv1.MachineInternalIP, Address: "10.0.0.7"},
		{Type: clusterv1.MachineInternalDNS, Address: "w"},
	}
	addAddresses(node, known)
	addAddresses(node, known)
	want := []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "w"}, {Type: corev1.NodeInternalIP, Address: "10.0.0.7"}}
	if !slices.Equal(node.Status.Addresses, want) {
		t.Errorf("got %v, want %v", node.Status.Addresses, want)
	}
}

func TestRunningAddons(t *testing.T) {
	release := func(cluster, chart, phase string) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{
			"spec":   map[string]any{"clusterName": cluster, "chart": map[string]any{"name": chart}},
			"status": map[string]any{"phase": phase},
		}}
	}
	const ccm, calico = "openstack-cloud-controller-manager", "tigera-operator"
	cases := map[string]struct {
		releases []unstructured.Unstructured
		want     addons
	}{
		"nothing":               {nil, addons{}},
		"installing is not yet": {[]unstructured.Unstructured{release("c", ccm, "Installing")}, addons{}},
		"of another cluster":    {[]unstructured.Unstructured{release("d", ccm, "Deployed")}, addons{}},
		"cloud controller":      {[]unstructured.Unstructured{release("c", ccm, "Deployed")}, addons{cloudController: true}},
		"calico, upgrading":     {[]unstructured.Unstructured{release("c", calico, "Upgrading")}, addons{network: true}},
		"cilium":                {[]unstructured.Unstructured{release("c", "cilium", "Deployed")}, addons{network: true}},
		"failed":                {[]unstructured.Unstructured{release("c", calico, "Failed")}, addons{}},
	}
	for name, test := range cases {
		if got := runningAddons(test.releases, "c"); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

// Of a kubelet that could not reach the API server for a while the node controller says that nothing is known.
func TestNodeIsWellAgain(t *testing.T) {
	node := newNode("w", "v1.34.4", false, registration{})
	node.Spec.ProviderID = "openstack:///1234"
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].Status = corev1.ConditionUnknown
	}
	g, both := &guest{}, addons{cloudController: true, network: true}
	if after := g.advance(node, activeServer("w"), both, delays{}, time.Unix(1000, 0)); after != 0 || !isReady(node) {
		t.Errorf("looked at again after %v: %v", after, node.Status.Conditions)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Status == corev1.ConditionUnknown {
			t.Errorf("%s is still unknown", condition.Type)
		}
	}
}
