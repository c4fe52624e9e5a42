// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// mirrorPods makes those of a control-plane machine: kubelet shows its static pods by them.
// https://kubernetes.io/docs/tasks/configure-pod-container/static-pod/
func (c *Cluster) mirrorPods(ctx context.Context, m *controlPlane, node *corev1.Node) error {
	for _, component := range components {
		pod := mirrorPod(component, m.version, node)
		if err := c.client.Create(ctx, pod); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("mirror pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

func mirrorPod(component, version string, node *corev1.Node) *corev1.Pod {
	image := fmt.Sprintf("registry.k8s.io/%s:%s", component, version)
	if component == "etcd" {
		image = "registry.k8s.io/etcd:3.6.6-0"
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: component + "-" + node.Name,
			Labels: map[string]string{"component": component, "tier": "control-plane"},
			Annotations: map[string]string{
				mirror: component + "-" + version, "kubernetes.io/config.source": "file",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: ptr.To(true),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: node.Name, HostNetwork: true, PriorityClassName: "system-node-critical",
			Priority:    ptr.To[int32](2000001000),
			Containers:  []corev1.Container{{Name: component, Image: image}},
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}},
		},
	}
}
