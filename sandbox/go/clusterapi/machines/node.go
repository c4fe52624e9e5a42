// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// uninitializedTaint stays until a cloud controller manager has looked at the node.
	// https://kubernetes.io/docs/tasks/administer-cluster/running-cloud-controller/
	uninitializedTaint = "node.cloudprovider.kubernetes.io/uninitialized"
	controlPlaneRole   = rolePrefix + "control-plane"
	// oldKubelet is what a machine with the fault wrong-kubelet runs.
	oldKubelet = "v1.30.0"
)

// newNode is the Node as kubelet registers it: not ready, and not yet known to the cloud.
func newNode(name, version string, controlPlane bool, told registration) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}}}
	node.Spec.Taints = []corev1.Taint{{Key: uninitializedTaint, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
	if controlPlane {
		node.Labels[controlPlaneRole] = ""
		if told.taints == nil {
			told.taints = []corev1.Taint{{Key: controlPlaneRole, Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	for key, value := range told.labels {
		node.Labels[key] = value
	}
	node.Spec.Taints = append(node.Spec.Taints, told.taints...)
	node.Status.NodeInfo = corev1.NodeSystemInfo{
		KubeletVersion: version, OSImage: "played machine", OperatingSystem: "linux", Architecture: "amd64",
		ContainerRuntimeVersion: "containerd://played", MachineID: name, SystemUUID: name, BootID: name,
	}
	node.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("40Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	node.Status.Allocatable = node.Status.Capacity
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = 10250
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}}
	setNoPressure(node)
	setReady(node, corev1.ConditionFalse)
	return node
}

// initialize does what the cloud controller manager does to a new node of a server.
func initialize(node *corev1.Node, server *unstructured.Unstructured) {
	id, _, _ := unstructured.NestedString(server.Object, "status", "instanceID")
	node.Spec.ProviderID = "openstack:///" + id
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == uninitializedTaint
	})
}

// addAddresses gives the node the addresses of its machine that it does not have yet.
func addAddresses(node *corev1.Node, known clusterv1.MachineAddresses) {
	for _, address := range known {
		kind := corev1.NodeAddressType(address.Type)
		wanted := corev1.NodeAddress{Type: kind, Address: address.Address}
		isIP := kind == corev1.NodeInternalIP || kind == corev1.NodeExternalIP
		if isIP && !slices.Contains(node.Status.Addresses, wanted) {
			node.Status.Addresses = append(node.Status.Addresses, wanted)
		}
	}
}

// setNoPressure says that nothing is short on the node, also after the node controller has said of a
// kubelet that could not reach the API server that nothing is known.
func setNoPressure(node *corev1.Node) {
	for _, pressure := range []corev1.NodeConditionType{
		corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure,
	} {
		setCondition(node, pressure, corev1.ConditionFalse, "KubeletHasNoPressure", "")
	}
}

// setReady says what kubelet says of itself; Unknown is what the node controller says when kubelet
// has fallen silent.
func setReady(node *corev1.Node, status corev1.ConditionStatus) {
	switch status {
	case corev1.ConditionTrue:
		setCondition(node, corev1.NodeReady, status, "KubeletReady", "kubelet is posting ready status")
	case corev1.ConditionFalse:
		setCondition(node, corev1.NodeReady, status, "KubeletNotReady", "container runtime network not ready")
	default:
		setCondition(node, corev1.NodeReady, status, "NodeStatusUnknown", "Kubelet stopped posting node status.")
	}
}

func setCondition(node *corev1.Node, kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) {
	wanted := corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}
	for i, known := range node.Status.Conditions {
		if known.Type != kind {
			continue
		}
		if known.Status != status {
			node.Status.Conditions[i] = wanted
		}
		return
	}
	node.Status.Conditions = append(node.Status.Conditions, wanted)
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}

func isControlPlane(machine *clusterv1.Machine) bool {
	_, labelled := machine.Labels[clusterv1.MachineControlPlaneLabel]
	return labelled
}
