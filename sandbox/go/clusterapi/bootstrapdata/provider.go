// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/locking"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/reconcilers/kubeadmconfig"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg/desiredstate"
	"sigs.k8s.io/cluster-api/util/certs"
	"sigs.k8s.io/cluster-api/util/secret"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// The address of the API server where the Cluster has none yet; its load balancer would give one.
const endpointHost, endpointPort = "192.0.2.10", 6443

// Kinds of machines: the first one of the control plane, the others, those of a node group.
const kindInit, kindJoin, kindWorker = "init", "join", "worker"

// bootstrapData is what one machine sets itself up with.
type bootstrapData struct {
	Kind    string `json:"kind"`
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Format  string `json:"format"`
	Data    string `json:"data"`
}

// provider makes bootstrap data for the machines of one cluster.
type provider struct {
	client     client.Client
	reconciler *kubeadmconfig.Reconciler
	read       *objects
}

func newProvider(ctx context.Context, read *objects) (*provider, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(
		corev1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme),
		bootstrapv1.AddToScheme(scheme), controlplanev1.AddToScheme(scheme),
	); err != nil {
		return nil, err
	}
	ready := true
	cluster := read.cluster
	if !cluster.Spec.ControlPlaneEndpoint.IsValid() {
		cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: endpointHost, Port: endpointPort}
	}
	cluster.Status.Initialization.InfrastructureProvisioned = &ready
	read.controlPlane.UID = "00000000-0000-4000-8000-000000000001"
	stored := []client.Object{cluster, read.controlPlane, definition()}
	for _, found := range read.allSecrets() {
		stored = append(stored, found)
	}
	statuses := []client.Object{cluster, &bootstrapv1.KubeadmConfig{}}
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored...).WithStatusSubresource(statuses...).Build()
	tenant := fake.NewClientBuilder().WithScheme(scheme).Build()
	key := client.ObjectKeyFromObject(cluster)
	made := &provider{client: server, read: read, reconciler: &kubeadmconfig.Reconciler{
		Client:              server,
		SecretCachingClient: server,
		APIReader:           server,
		ClusterCache:        clustercache.NewFakeClusterCache(tenant, key),
		KubeadmInitLock:     locking.NewControlPlaneInitMutex(server),
		TokenTTL:            time.Hour,
	}}
	owner := *metav1.NewControllerRef(read.controlPlane, controlplanev1.GroupVersion.WithKind("KubeadmControlPlane"))
	configuration := read.controlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration
	certificates := secret.NewCertificatesForInitialControlPlane(&configuration)
	return made, errors.Join(share(certificates), certificates.SaveGenerated(ctx, server, key, owner))
}

// authorities are the keys of every cluster of a run: to make them takes longer than all the rest.
var authorities = map[secret.Purpose]*certs.KeyPair{}

func share(certificates secret.Certificates) error {
	for _, certificate := range certificates {
		certificate.KeyPair, certificate.Generated = authorities[certificate.Purpose], true
	}
	err := certificates.Generate()
	for _, certificate := range certificates {
		authorities[certificate.Purpose] = certificate.KeyPair
	}
	return err
}

// definition is what the reconciler reads the API version of control planes from.
func definition() client.Object {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name:   "kubeadmcontrolplanes." + controlplanev1.GroupVersion.Group,
		Labels: map[string]string{clusterv1.GroupVersion.String(): controlplanev1.GroupVersion.Version},
	}}
}

// everyMachine makes the first machine's data, tells the Cluster that it is there, and makes the rest.
func (p *provider) everyMachine(ctx context.Context) ([]bootstrapData, error) {
	first, err := p.controlPlaneMachine(ctx, kindInit)
	if err != nil {
		return nil, err
	}
	initialized := p.read.cluster.DeepCopy()
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(initialized), initialized); err != nil {
		return nil, err
	}
	initialized.Status.Conditions = append(initialized.Status.Conditions, metav1.Condition{
		Type:               clusterv1.ClusterControlPlaneInitializedCondition,
		Status:             metav1.ConditionTrue,
		Reason:             clusterv1.ClusterControlPlaneInitializedReason,
		LastTransitionTime: metav1.Now(),
	})
	if err := p.client.Status().Update(ctx, initialized); err != nil {
		return nil, err
	}
	second, err := p.controlPlaneMachine(ctx, kindJoin)
	if err != nil {
		return nil, err
	}
	made := []bootstrapData{first, second}
	for _, deployment := range p.read.deployments {
		worker, err := p.worker(ctx, deployment)
		if err != nil {
			return nil, fmt.Errorf("MachineDeployment %s: %w", deployment.Name, err)
		}
		made = append(made, worker)
	}
	return made, nil
}

func (p *provider) controlPlaneMachine(ctx context.Context, kind string) (bootstrapData, error) {
	plane := p.read.controlPlane
	machine, err := desiredstate.ComputeDesiredMachine(plane, p.read.cluster, "", nil)
	if err != nil {
		return bootstrapData{}, err
	}
	config, err := desiredstate.ComputeDesiredKubeadmConfig(plane, p.read.cluster, kind == kindJoin, machine.Name, nil)
	if err != nil {
		return bootstrapData{}, err
	}
	return p.bootstrap(ctx, machine, config, bootstrapData{Kind: kind})
}

// worker copies the template of a node group as its MachineSet does.
func (p *provider) worker(ctx context.Context, deployment *clusterv1.MachineDeployment) (bootstrapData, error) {
	wanted := deployment.Spec.Template.Spec
	for _, template := range p.read.templates {
		if template.Name != wanted.Bootstrap.ConfigRef.Name {
			continue
		}
		labels := map[string]string{clusterv1.ClusterNameLabel: p.read.cluster.Name}
		metadata := metav1.ObjectMeta{Namespace: namespace, Name: deployment.Name + "-x", Labels: labels}
		machine := &clusterv1.Machine{ObjectMeta: metadata, Spec: *wanted.DeepCopy()}
		config := &bootstrapv1.KubeadmConfig{ObjectMeta: metadata, Spec: template.Spec.Template.Spec}
		return p.bootstrap(ctx, machine, config, bootstrapData{Kind: kindWorker, Group: deployment.Name})
	}
	return bootstrapData{}, fmt.Errorf("there is no KubeadmConfigTemplate %s", wanted.Bootstrap.ConfigRef.Name)
}

// bootstrap lets the reconciler make the data of a machine, and reads the Secret.
func (p *provider) bootstrap(ctx context.Context, machine *clusterv1.Machine, config *bootstrapv1.KubeadmConfig, made bootstrapData) (bootstrapData, error) {
	machine.UID = types.UID("uid-of-" + machine.Name)
	owner := *metav1.NewControllerRef(machine, clusterv1.GroupVersion.WithKind("Machine"))
	config.OwnerReferences = []metav1.OwnerReference{owner}
	if err := errors.Join(p.client.Create(ctx, machine), p.client.Create(ctx, config)); err != nil {
		return made, err
	}
	key := client.ObjectKeyFromObject(config)
	var data corev1.Secret
	// The first time it only says that the object is not paused.
	for range 3 {
		if _, err := p.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: key}); err != nil {
			return made, err
		}
		if err := p.client.Get(ctx, key, &data); err == nil {
			made.Version = machine.Spec.Version
			made.Format, made.Data = string(data.Data["format"]), string(data.Data["value"])
			return made, checkIgnition(made)
		}
	}
	return made, fmt.Errorf("no bootstrap data for %s", machine.Name)
}
