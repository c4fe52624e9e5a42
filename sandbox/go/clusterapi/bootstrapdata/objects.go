// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1beta1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	bootstrapconversion "sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/conversion"
	controlplaneconversion "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/conversion"
	coreconversion "sigs.k8s.io/cluster-api/core/webhooks/conversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const namespace = "default"

// objects are those of one cluster from which bootstrap data is made, as the API server stores them.
type objects struct {
	cluster      *clusterv1.Cluster
	controlPlane *controlplanev1.KubeadmControlPlane
	templates    []*bootstrapv1.KubeadmConfigTemplate
	deployments  []*clusterv1.MachineDeployment
	secrets      []*corev1.Secret
}

// add takes a document in; one of another kind decides nothing here.
func (o *objects) add(ctx context.Context, document []byte) error {
	var kind metav1.PartialObjectMetadata
	if err := json.Unmarshal(document, &kind); err != nil {
		return err
	}
	if err := o.addKind(ctx, kind.TypeMeta, document); err != nil {
		return fmt.Errorf("%s %s: %w", kind.Kind, kind.Name, err)
	}
	return nil
}

func (o *objects) addKind(ctx context.Context, kind metav1.TypeMeta, document []byte) error {
	switch kind.Kind {
	case "Cluster":
		o.cluster = &clusterv1.Cluster{}
		return store(ctx, document, kind, coreconversion.ConvertClusterV1Beta1ToHub, o.cluster, &clusterv1beta1.Cluster{})
	case "KubeadmControlPlane":
		o.controlPlane = &controlplanev1.KubeadmControlPlane{}
		return store(ctx, document, kind, controlplaneconversion.ConvertKubeadmControlPlaneV1Beta1ToHub, o.controlPlane, &controlplanev1beta1.KubeadmControlPlane{})
	case "KubeadmConfigTemplate":
		found := &bootstrapv1.KubeadmConfigTemplate{}
		o.templates = append(o.templates, found)
		return store(ctx, document, kind, bootstrapconversion.ConvertKubeadmConfigTemplateV1Beta1ToHub, found, &bootstrapv1beta1.KubeadmConfigTemplate{})
	case "MachineDeployment":
		found := &clusterv1.MachineDeployment{}
		o.deployments = append(o.deployments, found)
		return store(ctx, document, kind, coreconversion.ConvertMachineDeploymentV1Beta1ToHub, found, &clusterv1beta1.MachineDeployment{})
	case "Secret":
		found := &corev1.Secret{}
		if err := decode(document, found); err != nil {
			return err
		}
		found.Namespace, found.Data = namespace, merged(found)
		o.secrets = append(o.secrets, found)
	}
	return nil
}

// store decodes a document of either API version into an object of the newer one.
func store[Old, New client.Object](ctx context.Context, document []byte, kind metav1.TypeMeta, convert func(context.Context, Old, New) error, found New, old Old) error {
	if kind.GroupVersionKind().Version == clusterv1.GroupVersion.Version {
		if err := decode(document, found); err != nil {
			return err
		}
	} else {
		if err := decode(document, old); err != nil {
			return err
		}
		if err := convert(ctx, old, found); err != nil {
			return err
		}
	}
	found.SetNamespace(namespace)
	return nil
}

func decode(document []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// merged is the content of a Secret as the API server keeps it.
func merged(found *corev1.Secret) map[string][]byte {
	data := map[string][]byte{}
	for key, value := range found.Data {
		data[key] = value
	}
	for key, value := range found.StringData {
		data[key] = []byte(value)
	}
	return data
}

// referenced are the Secrets whose content the machines' files are, by key.
func (o *objects) referenced() map[string][]string {
	specs := []bootstrapv1.KubeadmConfigSpec{o.controlPlane.Spec.KubeadmConfigSpec}
	for _, template := range o.templates {
		specs = append(specs, template.Spec.Template.Spec)
	}
	found := map[string][]string{}
	for _, spec := range specs {
		for _, file := range spec.Files {
			if file.ContentFrom.IsDefined() {
				source := file.ContentFrom.Secret
				found[source.Name] = append(found[source.Name], source.Key)
			}
		}
		for _, user := range spec.Users {
			if user.PasswdFrom.IsDefined() {
				source := user.PasswdFrom.Secret
				found[source.Name] = append(found[source.Name], source.Key)
			}
		}
	}
	return found
}

// allSecrets are those of the cluster, and with a stand-in those that a user has made beforehand.
func (o *objects) allSecrets() []*corev1.Secret {
	found := append([]*corev1.Secret{}, o.secrets...)
	known := map[string]bool{}
	for _, secret := range found {
		known[secret.Name] = true
	}
	for name, keys := range o.referenced() {
		if known[name] {
			continue
		}
		data := map[string][]byte{}
		for _, key := range keys {
			data[key] = []byte("content of the user's own Secret\n")
		}
		found = append(found, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data,
		})
	}
	return found
}
