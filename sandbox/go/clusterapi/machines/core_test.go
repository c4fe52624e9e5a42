// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// Cluster API 1.10 serves v1beta1 only; what the machines need of it is the same.
func TestOldObjectsAreRead(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	version, data := "v1.33.8", "m1-data"
	cluster := &clusterv1beta1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}}
	cluster.Spec.ControlPlaneEndpoint = clusterv1beta1.APIEndpoint{Host: "127.0.0.1", Port: 6443}
	cluster.Status.FailureDomains = clusterv1beta1.FailureDomains{"zone-1": {ControlPlane: true}}
	machine := &clusterv1beta1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "m1", Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""},
	}}
	machine.Spec.ClusterName, machine.Spec.Version, machine.Spec.Bootstrap.DataSecretName = "c", &version, &data
	machine.Spec.InfrastructureRef = corev1.ObjectReference{
		APIVersion: "infrastructure.cluster.x-k8s.io/v1beta1", Kind: "OpenStackMachine", Name: "m1",
	}
	machine.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: "m1"}
	machine.Status.Addresses = clusterv1beta1.MachineAddresses{{Type: clusterv1beta1.MachineInternalIP, Address: "10.0.0.5"}}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, machine).Build()
	c := core{reader, true}
	got, err := c.cluster(t.Context(), client.ObjectKeyFromObject(cluster))
	if err != nil || got.Spec.ControlPlaneEndpoint.Port != 6443 {
		t.Fatalf("Cluster %+v, %v", got, err)
	}
	found, err := c.machines(t.Context(), namespace)
	if err != nil || len(found) != 1 {
		t.Fatalf("Machines %+v, %v", found, err)
	}
	m := found[0]
	if m.Spec.Version != version || *m.Spec.Bootstrap.DataSecretName != data || m.Spec.InfrastructureRef.Name != "m1" {
		t.Errorf("spec %+v", m.Spec)
	}
	if !m.Status.NodeRef.IsDefined() || len(m.Status.Addresses) != 1 || !isControlPlane(&m) {
		t.Errorf("status %+v, labels %v", m.Status, m.Labels)
	}
}

func TestVersionOfTheManagementCluster(t *testing.T) {
	for version, want := range map[string]bool{"v1beta1": true, "v1beta2": false} {
		served := schema.GroupVersion{Group: clusterv1.GroupVersion.Group, Version: version}
		mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{served})
		mapper.Add(served.WithKind("Cluster"), meta.RESTScopeNamespace)
		if old, err := isOld(mapper); err != nil || old != want {
			t.Errorf("%s: old %v, %v", version, old, err)
		}
	}
}
