// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// step does the next thing that the machine does by itself, and returns when to look again
// (0: when something changes).
func (p *player) step(
	ctx context.Context, server *unstructured.Unstructured, machine *clusterv1.Machine,
	cluster *clusterv1.Cluster, guest *guest,
) (time.Duration, error) {
	faults, err := p.faults(ctx)
	if err != nil {
		return 0, err
	}
	name := server.GetName()
	workload := p.workloads.at(guest.cluster)
	if !guest.joined {
		if faults.hit(noNode, name) {
			return 0, nil
		}
		if left := time.Until(guest.active.Add(p.wait.join)); left > 0 {
			return left, nil
		}
		if !guest.controlPlane && !workload.serves() {
			return retry, nil // kubeadm join tries again
		}
		if guest.controlPlane {
			if err := p.startControlPlane(ctx, workload, server, machine, cluster); err != nil {
				return 0, err
			}
		}
		guest.joined = true
	}
	node := &corev1.Node{}
	err = workload.client.Get(ctx, client.ObjectKey{Name: name}, node)
	if apierrors.IsNotFound(err) {
		if guest.registered {
			return 0, nil
		}
		node, err = p.register(ctx, workload, machine, name, faults)
		guest.registered = err == nil
	}
	if err != nil {
		return 0, err
	}
	addons, err := p.addons(ctx, guest.cluster)
	if err != nil {
		return 0, err
	}
	was := node.DeepCopy()
	after := guest.advance(node, server, addons, p.wait, time.Now())
	if node.Spec.ProviderID != "" {
		addAddresses(node, machine.Status.Addresses)
	}
	if faults.hit(notReady, name) {
		setReady(node, corev1.ConditionUnknown)
	}
	if equality.Semantic.DeepEqual(was, node) {
		return after, nil
	}
	return after, workload.client.Patch(ctx, node, client.MergeFrom(was))
}

// startControlPlane is kubeadm on a control-plane machine.
func (p *player) startControlPlane(
	ctx context.Context, workload *workload, server *unstructured.Unstructured,
	machine *clusterv1.Machine, cluster *clusterv1.Cluster,
) error {
	key := client.ObjectKeyFromObject(cluster)
	etcdCA, err := p.authorityOf(ctx, key, secret.EtcdCA)
	if err != nil {
		return err
	}
	clusterCA, err := p.authorityOf(ctx, key, secret.ClusterCA)
	if err != nil {
		return err
	}
	data, err := p.bootstrapOf(ctx, machine)
	if err != nil {
		return err
	}
	images, err := readImages(data, machine.Spec.Version)
	if err != nil {
		return fmt.Errorf("Machine %s/%s: %w", machine.Namespace, machine.Name, err)
	}
	name, endpoint := server.GetName(), cluster.Spec.ControlPlaneEndpoint
	if err := workload.joinControlPlane(ctx, name, images, server.GetUID()); err != nil {
		return err
	}
	if err := workload.addEtcdMember("etcd-"+name, endpoint.Host, etcdCA); err != nil {
		return err
	}
	return workload.addAPIServer(name, endpoint.Host, endpoint.Port, machine.Spec.Version, clusterCA)
}

// register is kubelet's first act, with labels and taints out of the machine's bootstrap data.
func (p *player) register(
	ctx context.Context, workload *workload, machine *clusterv1.Machine, name string, faults faults,
) (*corev1.Node, error) {
	data, err := p.bootstrapOf(ctx, machine)
	if err != nil {
		return nil, err
	}
	told, err := readRegistration(data)
	if err != nil {
		return nil, fmt.Errorf("Machine %s/%s: %w", machine.Namespace, machine.Name, err)
	}
	version := machine.Spec.Version
	if faults.hit(wrongKubelet, name) {
		version = oldKubelet
	}
	node := newNode(name, version, isControlPlane(machine), told)
	return node, workload.client.Create(ctx, node)
}

// bootstrapOf is the cloud-init data that the machine's server was given.
func (p *player) bootstrapOf(ctx context.Context, machine *clusterv1.Machine) ([]byte, error) {
	if machine.Spec.Bootstrap.DataSecretName == nil {
		return nil, fmt.Errorf("Machine %s/%s has no bootstrap data", machine.Namespace, machine.Name)
	}
	data := &corev1.Secret{}
	key := client.ObjectKey{Namespace: machine.Namespace, Name: *machine.Spec.Bootstrap.DataSecretName}
	if err := p.secrets.Get(ctx, key, data); err != nil {
		return nil, err
	}
	return data.Data["value"], nil
}

// advance changes the node as far as the addons of its cluster and the delays allow, and returns
// when to look again (0: when something changes).
func (g *guest) advance(
	node *corev1.Node, server *unstructured.Unstructured, running addons, wait delays, now time.Time,
) time.Duration {
	if node.Spec.ProviderID == "" {
		left := since(&g.initialized, running.cloudController, wait.init, now)
		if left != 0 {
			return max(left, 0)
		}
		initialize(node, server)
	}
	if !isReady(node) {
		left := since(&g.networked, running.network, wait.ready, now)
		if left != 0 {
			return max(left, 0)
		}
		setReady(node, corev1.ConditionTrue)
	}
	return 0
}

// since notes in begin when a condition was first met, and tells how much of wait is left: 0 when
// it has passed, negative while the condition is not met.
func since(begin *time.Time, met bool, wait time.Duration, now time.Time) time.Duration {
	if !met {
		*begin = time.Time{}
		return -1
	}
	if begin.IsZero() {
		*begin = now
	}
	return max(begin.Add(wait).Sub(now), 0)
}
