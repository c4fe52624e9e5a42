// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// core reads Clusters and Machines in the version that the management cluster serves: Cluster API
// 1.10 and older know v1beta1 only.
type core struct {
	client.Reader
	old bool
}

// isOld tells whether Clusters are served as v1beta1 only.
func isOld(mapper meta.RESTMapper) (bool, error) {
	kind := schema.GroupKind{Group: clusterv1.GroupVersion.Group, Kind: "Cluster"}
	_, err := mapper.RESTMapping(kind, clusterv1.GroupVersion.Version)
	if meta.IsNoMatchError(err) {
		return true, nil
	}
	return false, err
}

// kinds are an empty Cluster and an empty Machine of that version, to be watched.
func (c core) kinds() (cluster, machine client.Object) {
	if c.old {
		return &clusterv1beta1.Cluster{}, &clusterv1beta1.Machine{}
	}
	return &clusterv1.Cluster{}, &clusterv1.Machine{}
}

func (c core) cluster(ctx context.Context, key client.ObjectKey) (*clusterv1.Cluster, error) {
	found := &clusterv1.Cluster{}
	if !c.old {
		return found, c.Get(ctx, key, found)
	}
	read := &clusterv1beta1.Cluster{}
	if err := c.Get(ctx, key, read); err != nil {
		return nil, err
	}
	return found, clusterv1beta1.Convert_v1beta1_Cluster_To_v1beta2_Cluster(read, found, nil)
}

func (c core) machines(ctx context.Context, namespace string) ([]clusterv1.Machine, error) {
	found := &clusterv1.MachineList{}
	if !c.old {
		err := c.List(ctx, found, client.InNamespace(namespace))
		return found.Items, err
	}
	read := &clusterv1beta1.MachineList{}
	if err := c.List(ctx, read, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	if err := clusterv1beta1.Convert_v1beta1_MachineList_To_v1beta2_MachineList(read, found, nil); err != nil {
		return nil, err
	}
	for i := range read.Items {
		// Cluster API converts references where it can ask for the version of a kind.
		found.Items[i].Spec.InfrastructureRef.Name = read.Items[i].Spec.InfrastructureRef.Name
	}
	return found.Items, nil
}
