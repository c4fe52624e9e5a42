// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// booting is a control-plane machine whose server is ACTIVE.
type booting struct {
	name      string
	uid       types.UID
	version   string
	endpoint  clusterv1.APIEndpoint
	services  []string // CIDR blocks
	addresses clusterv1.MachineAddresses
	data      []byte // cloud-init
	secretOf  func(secret.Purpose) (*corev1.Secret, error)
}

func (b booting) authorityOf(purpose secret.Purpose) (authority, error) {
	found, err := b.secretOf(purpose)
	if err != nil {
		return authority{}, err
	}
	return authorityIn(found)
}

// tenantAPI is the API of a Cluster, with what stands behind it: in memory, or the real programs.
type tenantAPI interface {
	// boot takes a control-plane machine one step forward, and tells whether its API server runs.
	boot(ctx context.Context, machine booting) (bool, error)
	// settle does what is left on a control-plane machine that has its Node.
	settle(ctx context.Context, node *corev1.Node) error
	// powerOff takes away what dies with a machine.
	powerOff(ctx context.Context, name string, controlPlane bool) error
	// serves tells whether any API server runs: only then can another machine join.
	serves() bool
	node(ctx context.Context, name string) (*corev1.Node, error)
	createNode(ctx context.Context, node *corev1.Node) error
	patchNode(ctx context.Context, node, was *corev1.Node) error
	// beat lets a kubelet work or fall silent; false: nobody in the cluster notices the silence.
	beat(node string, addresses []string, silent bool) bool
	// close ends it, with all its content.
	close()
}

// boot is kubeadm on a control-plane machine.
func (w *workload) boot(ctx context.Context, machine booting) (bool, error) {
	etcdCA, err := machine.authorityOf(secret.EtcdCA)
	if err != nil {
		return false, err
	}
	clusterCA, err := machine.authorityOf(secret.ClusterCA)
	if err != nil {
		return false, err
	}
	images, err := readImages(machine.data, machine.version)
	if err != nil {
		return false, err
	}
	name, endpoint := machine.name, machine.endpoint
	if err := w.joinControlPlane(ctx, name, images, machine.uid); err != nil {
		return false, err
	}
	if err := w.addEtcdMember("etcd-"+name, endpoint.Host, etcdCA); err != nil {
		return false, err
	}
	return true, w.addAPIServer(name, endpoint.Host, endpoint.Port, machine.version, clusterCA)
}

// settle has nothing to do: boot has made all objects.
func (w *workload) settle(context.Context, *corev1.Node) error { return nil }

func (w *workload) powerOff(ctx context.Context, name string, controlPlane bool) error {
	if !controlPlane {
		return nil
	}
	w.removeControlPlane(name)
	return w.leaveControlPlane(ctx, name)
}

func (w *workload) node(ctx context.Context, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	return node, w.client.Get(ctx, client.ObjectKey{Name: name}, node)
}

func (w *workload) createNode(ctx context.Context, node *corev1.Node) error {
	return w.client.Create(ctx, node)
}

func (w *workload) patchNode(ctx context.Context, node, was *corev1.Node) error {
	return w.client.Patch(ctx, node, client.MergeFrom(was))
}

// beat: there is no node lifecycle controller.
func (w *workload) beat(string, []string, bool) bool { return false }
