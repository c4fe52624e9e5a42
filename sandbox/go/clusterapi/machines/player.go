// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/certs"
	"sigs.k8s.io/cluster-api/util/secret"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// retry is how long a join that cannot go on waits before it tries again.
const retry = time.Second

var (
	serverKind      = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1alpha1", Kind: "OpenStackServer"}
	helmReleaseKind = schema.GroupVersionKind{Group: "addons.stackhpc.com", Version: "v1alpha1", Kind: "HelmRelease"}
	faultsKey       = client.ObjectKey{Namespace: "default", Name: "machines-faults"}
)

// player brings every server of the management cluster forward, one step per look.
type player struct {
	client.Client
	core      core
	secrets   client.Reader // reads Secrets from the API server: they are not kept in memory
	workloads *workloads
	wait      delays

	mutex  sync.Mutex
	guests map[client.ObjectKey]*guest // by namespace and name of the OpenStackServer
}

// guest is what runs in one server.
type guest struct {
	uid          types.UID
	cluster      client.ObjectKey
	active       time.Time // server first seen ACTIVE
	booted       bool      // something of it runs
	joined       bool      // kubeadm has ended
	registered   bool      // kubelet made its Node; it does not do so twice
	initialized  time.Time // cloud controller manager first seen running with the node there
	networked    time.Time // network addon first seen running with the node initialized
	controlPlane bool
}

func newPlayer(manager ctrl.Manager, workloads *workloads, wait delays, old bool) *player {
	return &player{
		Client: manager.GetClient(), core: core{manager.GetClient(), old}, secrets: manager.GetAPIReader(),
		workloads: workloads, wait: wait, guests: map[client.ObjectKey]*guest{},
	}
}

func objectOf(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

func listOf(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// setUp watches the servers, and looks at all servers of a namespace again when one of its
// Clusters, Machines or HelmReleases changes; at all servers when the faults change.
func (p *player) setUp(manager ctrl.Manager) error {
	neighbours := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		return p.servers(ctx, client.InNamespace(object.GetNamespace()))
	})
	everybody := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return p.servers(ctx)
	})
	cluster, machine := p.core.kinds()
	return errors.Join(
		ctrl.NewControllerManagedBy(manager).Named("servers").For(objectOf(serverKind)).
			Watches(machine, neighbours).
			Watches(cluster, neighbours).
			Watches(objectOf(helmReleaseKind), neighbours).
			Watches(&corev1.ConfigMap{}, everybody).
			WithOptions(controller.Options{MaxConcurrentReconciles: p.workloads.parallel()}).
			Complete(reconcile.Func(p.look)),
		ctrl.NewControllerManagedBy(manager).Named("clusters").For(cluster).
			Complete(reconcile.Func(p.sweep)),
	)
}

func (p *player) servers(ctx context.Context, where ...client.ListOption) []reconcile.Request {
	list := listOf(serverKind)
	if err := p.List(ctx, list, where...); err != nil {
		log.FromContext(ctx).Error(err, "OpenStackServers cannot be listed")
		return nil
	}
	var requests []reconcile.Request
	for _, server := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&server)})
	}
	return requests
}

// sweep ends the workload cluster of a Cluster that is gone.
func (p *player) sweep(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	_, err := p.core.cluster(ctx, request.NamespacedName)
	if apierrors.IsNotFound(err) {
		p.workloads.drop(request.NamespacedName)
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// look takes one server one step forward.
func (p *player) look(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	server := objectOf(serverKind)
	err := p.Get(ctx, request.NamespacedName, server)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	state, _, _ := unstructured.NestedString(server.Object, "status", "instanceState")
	if err != nil || state == "DELETED" {
		return ctrl.Result{}, p.powerOff(ctx, request.NamespacedName)
	}
	if state != "ACTIVE" {
		return ctrl.Result{}, nil
	}
	machine, cluster, err := p.owners(ctx, server)
	if machine == nil || cluster == nil || err != nil {
		return ctrl.Result{}, err
	}
	guest := p.guestOf(server, machine, cluster)
	after, err := p.step(ctx, server, machine, cluster, guest)
	return ctrl.Result{RequeueAfter: after}, err
}

// owners finds the Machine that the server is for, and its Cluster once it has an address.
func (p *player) owners(ctx context.Context, server *unstructured.Unstructured) (*clusterv1.Machine, *clusterv1.Cluster, error) {
	machines, err := p.core.machines(ctx, server.GetNamespace())
	if err != nil {
		return nil, nil, err
	}
	for i, machine := range machines {
		if machine.Spec.InfrastructureRef.Name != server.GetName() {
			continue
		}
		key := client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}
		cluster, err := p.core.cluster(ctx, key)
		if err != nil || cluster.Spec.ControlPlaneEndpoint.Port == 0 {
			return nil, nil, client.IgnoreNotFound(err)
		}
		return &machines[i], cluster, nil
	}
	return nil, nil, nil
}

// longAgo is when things happened that this program was not there to see.
var longAgo = time.Unix(0, 0)

// guestOf remembers the machine; one that had joined before this program started is taken up
// where it was.
func (p *player) guestOf(server *unstructured.Unstructured, machine *clusterv1.Machine, cluster *clusterv1.Cluster) *guest {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	key := client.ObjectKeyFromObject(server)
	known := p.guests[key]
	if known != nil && known.uid == server.GetUID() {
		return known
	}
	made := &guest{
		uid: server.GetUID(), cluster: client.ObjectKeyFromObject(cluster),
		active: time.Now(), controlPlane: isControlPlane(machine),
	}
	if machine.Status.NodeRef.IsDefined() {
		made.active, made.initialized, made.networked = longAgo, longAgo, longAgo
		// The Machine controller removes the Node near the end of a delete: do not bring it back.
		made.registered = !machine.DeletionTimestamp.IsZero()
	}
	p.guests[key] = made
	return made
}

// powerOff takes away what dies with a server. The Node stays: the Machine controller removes it.
func (p *player) powerOff(ctx context.Context, server client.ObjectKey) error {
	p.mutex.Lock()
	known := p.guests[server]
	delete(p.guests, server)
	p.mutex.Unlock()
	if known == nil || !known.booted {
		return nil
	}
	if _, err := p.core.cluster(ctx, known.cluster); err != nil {
		return client.IgnoreNotFound(err)
	}
	return p.workloads.at(known.cluster).powerOff(ctx, server.Name, known.controlPlane)
}

// authorityIn reads a CA of a cluster from its Secret.
func authorityIn(found *corev1.Secret) (authority, error) {
	certificate, err := certs.DecodeCertPEM(found.Data[secret.TLSCrtDataName])
	if err != nil || certificate == nil {
		return authority{}, fmt.Errorf("Secret %s/%s: tls.crt is no certificate: %w", found.Namespace, found.Name, err)
	}
	key, err := certs.DecodePrivateKeyPEM(found.Data[secret.TLSKeyDataName])
	if err != nil || key == nil {
		return authority{}, fmt.Errorf("Secret %s/%s: tls.key is no private key: %w", found.Namespace, found.Name, err)
	}
	return authority{certificate: certificate, key: key}, nil
}
