// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/certs"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const namespace = "magnum-p1"

// stage is a management cluster in memory with one Cluster and one control-plane machine in it.
type stage struct {
	*testing.T
	player *player
	ca     authority
	host   string
	port   int32
}

func newStage(t *testing.T, more ...client.Object) *stage {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []*unstructured.Unstructured{objectOf(serverKind), objectOf(helmReleaseKind)} {
		scheme.AddKnownTypeWithName(kind.GroupVersionKind(), kind)
		list := kind.GroupVersionKind()
		list.Kind += "List"
		scheme.AddKnownTypeWithName(list, &unstructured.UnstructuredList{})
	}
	s := &stage{T: t, ca: newAuthority(t), host: "127.0.0.1", port: freePort(t)}
	key, err := certs.EncodePrivateKeyPEMFromSigner(s.ca.key)
	if err != nil {
		t.Fatal(err)
	}
	pair := map[string][]byte{"tls.crt": certs.EncodeCertPEM(s.ca.certificate), "tls.key": key}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}}
	cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: s.host, Port: s.port}
	bootstrap := "m1-bootstrap"
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "m1", Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""},
	}}
	machine.Spec.ClusterName, machine.Spec.Version = "c", "v1.34.4"
	machine.Spec.InfrastructureRef.Name = "m1"
	machine.Spec.Bootstrap.DataSecretName = &bootstrap
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
	}
	objects := append([]client.Object{
		cluster, machine, activeServer("m1"), secret("c-ca", pair), secret("c-etcd", pair),
		secret(bootstrap, map[string][]byte{"value": cloudInit("    nodeRegistration: {}\n")}),
	}, more...)
	built := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	s.player = &player{Client: built, core: core{Reader: built}, secrets: built, workloads: allWorkloads(t), guests: map[client.ObjectKey]*guest{}}
	t.Cleanup(func() { s.player.workloads.drop(s.cluster()) })
	return s
}

func (s *stage) cluster() client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: "c"}
}

// look lets the player look at the server once.
func (s *stage) look() {
	s.Helper()
	request := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: "m1"}}
	if _, err := s.player.look(s.Context(), request); err != nil {
		s.Fatal(err)
	}
}

// node is the node of the machine, nil when there is none.
func (s *stage) node() *corev1.Node {
	s.Helper()
	node := &corev1.Node{}
	err := inMemory(s.player.workloads, s.cluster()).client.Get(s.Context(), client.ObjectKey{Name: "m1"}, node)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.Fatal(err)
	}
	return node
}

func deployed(name, chart string) client.Object {
	release := objectOf(helmReleaseKind)
	release.SetNamespace(namespace)
	release.SetName(name)
	release.Object["spec"] = map[string]any{"clusterName": "c", "chart": map[string]any{"name": chart}}
	release.Object["status"] = map[string]any{"phase": "Deployed"}
	return release
}

func faulty(fault, pattern string) client.Object {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: faultsKey.Namespace, Name: faultsKey.Name},
		Data:       map[string]string{fault: pattern},
	}
}

func TestNodeBecomesReadyOnlyWithItsAddons(t *testing.T) {
	s := newStage(t)
	s.look()
	if node := s.node(); node == nil || node.Spec.ProviderID != "" || isReady(node) {
		t.Fatalf("without addons: %v", node)
	}
	for _, release := range []client.Object{
		deployed("ccm", "openstack-cloud-controller-manager"), deployed("cni", "tigera-operator"),
	} {
		if err := s.player.Create(t.Context(), release); err != nil {
			t.Fatal(err)
		}
		s.look()
	}
	if node := s.node(); node.Spec.ProviderID != "openstack:///1234" || !isReady(node) {
		t.Errorf("with both addons: providerID %q, ready %v", node.Spec.ProviderID, isReady(node))
	}
}

func TestFaults(t *testing.T) {
	running := []client.Object{
		deployed("ccm", "openstack-cloud-controller-manager"), deployed("cni", "cilium"),
	}
	t.Run(noNode, func(t *testing.T) {
		s := newStage(t, append(running, faulty(noNode, "^m"))...)
		s.look()
		if node := s.node(); node != nil {
			t.Errorf("a node joined: %v", node.Name)
		}
	})
	t.Run(noNode+" of another machine", func(t *testing.T) {
		s := newStage(t, append(running, faulty(noNode, "other"))...)
		s.look()
		if node := s.node(); node == nil || !isReady(node) {
			t.Errorf("got %v", node)
		}
	})
	t.Run(notReady, func(t *testing.T) {
		s := newStage(t, append(running, faulty(notReady, "."))...)
		s.look()
		if node := s.node(); node == nil || isReady(node) {
			t.Errorf("got %v", node)
		}
	})
	t.Run(wrongKubelet, func(t *testing.T) {
		s := newStage(t, append(running, faulty(wrongKubelet, "."))...)
		s.look()
		if node := s.node(); node == nil || node.Status.NodeInfo.KubeletVersion != oldKubelet {
			t.Errorf("got %v", node)
		}
	})
	t.Run("a broken pattern is no fault", func(t *testing.T) {
		s := newStage(t, append(running, faulty(noNode, "["))...)
		s.look()
		if s.node() == nil {
			t.Error("no node joined")
		}
	})
}

func TestServerGoneTakesItsControlPlaneButNotItsNode(t *testing.T) {
	s := newStage(t)
	s.look()
	if err := s.player.Delete(t.Context(), activeServer("m1")); err != nil {
		t.Fatal(err)
	}
	s.look()
	workload := s.player.workloads.at(s.cluster())
	if workload.serves() || s.node() == nil {
		t.Errorf("serves %v, node %v", workload.serves(), s.node())
	}
}

func TestRestartBringsJoinedMachinesBackAtOnce(t *testing.T) {
	s := newStage(t, deployed("ccm", "openstack-cloud-controller-manager"), deployed("cni", "cilium"))
	machine := &clusterv1.Machine{}
	if err := s.player.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "m1"}, machine); err != nil {
		t.Fatal(err)
	}
	machine.Status.NodeRef.Name = "m1"
	if err := s.player.Update(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	s.player.wait = delays{join: 1 << 40, init: 1 << 40, ready: 1 << 40}
	s.look()
	if node := s.node(); node == nil || !isReady(node) {
		t.Errorf("got %v", node)
	}
}

func TestClusterGoneEndsItsWorkloadCluster(t *testing.T) {
	s := newStage(t)
	s.look()
	before := s.player.workloads.at(s.cluster())
	if err := s.player.Delete(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.player.sweep(t.Context(), ctrl.Request{NamespacedName: s.cluster()}); err != nil {
		t.Fatal(err)
	}
	if before.serves() || s.node() != nil {
		t.Errorf("serves %v, node %v", before.serves(), s.node())
	}
}
