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
	api := p.workloads.at(guest.cluster)
	if !guest.joined {
		if faults.hit(noNode, name) {
			return 0, nil
		}
		if left := time.Until(guest.active.Add(p.wait.join)); left > 0 {
			return left, nil
		}
		joined, err := p.join(ctx, api, server, machine, cluster, guest)
		if err != nil {
			return 0, err
		}
		if !joined {
			return retry, nil
		}
		guest.joined = true
	}
	node, err := api.node(ctx, name)
	if apierrors.IsNotFound(err) {
		if guest.registered {
			return 0, nil
		}
		node, err = p.register(ctx, api, machine, name, faults)
		guest.registered = err == nil
	}
	if err != nil {
		return 0, err
	}
	silent := faults.hit(notReady, name)
	isNoticed := api.beat(name, ipsOf(machine.Status.Addresses), silent)
	if silent && isNoticed {
		return 0, nil
	}
	if guest.controlPlane {
		if err := api.settle(ctx, node); err != nil {
			return 0, err
		}
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
	if silent {
		setReady(node, corev1.ConditionUnknown)
	}
	if isNoticed && after == 0 {
		after = statusEvery // somebody in the cluster may have written another status
	}
	if equality.Semantic.DeepEqual(was, node) {
		return after, nil
	}
	return after, api.patchNode(ctx, node, was)
}

// statusEvery is how often kubelet posts its status.
const statusEvery = 10 * time.Second

// join is kubeadm on a machine; it tells whether kubeadm has ended.
func (p *player) join(
	ctx context.Context, api tenantAPI, server *unstructured.Unstructured,
	machine *clusterv1.Machine, cluster *clusterv1.Cluster, guest *guest,
) (bool, error) {
	if !guest.controlPlane {
		guest.booted = api.serves() // without an API server kubeadm join tries again
		return guest.booted, nil
	}
	data, err := p.bootstrapOf(ctx, machine)
	if err != nil {
		return false, err
	}
	guest.booted = true
	key := client.ObjectKeyFromObject(cluster)
	joined, err := api.boot(ctx, booting{
		name: server.GetName(), uid: server.GetUID(), version: machine.Spec.Version, data: data,
		endpoint: cluster.Spec.ControlPlaneEndpoint, addresses: machine.Status.Addresses,
		services: cluster.Spec.ClusterNetwork.Services.CIDRBlocks,
		secretOf: func(purpose secret.Purpose) (*corev1.Secret, error) {
			return secret.GetFromNamespacedName(ctx, p.secrets, key, purpose)
		},
	})
	if err != nil {
		return false, fmt.Errorf("Machine %s/%s: %w", machine.Namespace, machine.Name, err)
	}
	return joined, nil
}

// register is kubelet's first act, with labels and taints out of the machine's bootstrap data.
func (p *player) register(
	ctx context.Context, api tenantAPI, machine *clusterv1.Machine, name string, faults faults,
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
	return node, api.createNode(ctx, node)
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
	setNoPressure(node)
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
