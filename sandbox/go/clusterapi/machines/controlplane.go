// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cloudv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var staticPods = []string{"kube-apiserver", "kube-scheduler", "kube-controller-manager"}

// joinControlPlane leaves behind what `kubeadm init`, or `kubeadm join --control-plane`, does:
// static pods, an etcd member, and the objects that Cluster API's control plane provider reads.
// Doing it twice changes nothing.
func (w *workload) joinControlPlane(ctx context.Context, node string, images images, server types.UID) error {
	etcd, err := w.etcdPod(ctx, node, server)
	if err != nil {
		return err
	}
	objects := append([]client.Object{etcd}, kubeadmObjects(images)...)
	for _, component := range staticPods {
		objects = append(objects, staticPod(component, node))
	}
	for _, object := range objects {
		if err := w.client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("%T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// leaveControlPlane removes the pods that died with their machine, and hands etcd's leadership on.
func (w *workload) leaveControlPlane(ctx context.Context, node string) error {
	for _, component := range append([]string{"etcd"}, staticPods...) {
		if err := w.client.Delete(ctx, staticPod(component, node)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	members, err := w.etcdMembers(ctx)
	if err != nil || len(members) == 0 {
		return err
	}
	for _, member := range members {
		if member.Annotations[cloudv1.EtcdLeaderFromAnnotationName] != "" {
			return nil
		}
	}
	elected := members[0].DeepCopy()
	elected.Annotations[cloudv1.EtcdLeaderFromAnnotationName] = time.Now().Format(time.RFC3339)
	return w.client.Patch(ctx, elected, client.MergeFrom(&members[0]))
}

// etcdPod is a new member with the ids that the in-memory etcd reads from annotations. The member
// id comes from the server's UID, so that it is the same after a restart of this program.
func (w *workload) etcdPod(ctx context.Context, node string, server types.UID) (*corev1.Pod, error) {
	members, err := w.etcdMembers(ctx)
	if err != nil {
		return nil, err
	}
	pod := staticPod("etcd", node)
	id := shortID(string(server))
	pod.Annotations = map[string]string{cloudv1.EtcdMemberIDAnnotationName: id}
	if len(members) == 0 {
		pod.Annotations[cloudv1.EtcdClusterIDAnnotationName] = id
		pod.Annotations[cloudv1.EtcdLeaderFromAnnotationName] = time.Now().Format(time.RFC3339)
	} else {
		cluster := members[0].Annotations[cloudv1.EtcdClusterIDAnnotationName]
		pod.Annotations[cloudv1.EtcdClusterIDAnnotationName] = cluster
	}
	return pod, nil
}

// etcdMembers are the pods of all members that have not been removed from the etcd cluster.
func (w *workload) etcdMembers(ctx context.Context) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := w.client.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem),
		client.MatchingLabels{"component": "etcd", "tier": "control-plane"}); err != nil {
		return nil, err
	}
	var members []corev1.Pod
	for _, pod := range pods.Items {
		if _, removed := pod.Annotations[cloudv1.EtcdMemberRemoved]; !removed {
			members = append(members, pod)
		}
	}
	return members, nil
}

// shortID makes a positive number of 31 bits, as text, out of any text.
func shortID(text string) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(text)) // a hash never fails
	return fmt.Sprint(sum.Sum32()>>1 + 1)
}

func staticPod(component, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: component + "-" + node,
			Labels: map[string]string{"component": component, "tier": "control-plane"},
		},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		}},
	}
}

// kubeadmObjects are the objects of a new cluster that Cluster API's kubeadm control plane
// provider looks for, in their smallest form.
func kubeadmObjects(images images) []client.Object {
	system := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}
	}
	running := func(name, image string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: image}}}}
	}
	nodeReader := metav1.ObjectMeta{Name: "kubeadm:get-nodes"}
	var objects []client.Object
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespacePublic, metav1.NamespaceSystem} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return append(objects,
		&corev1.ConfigMap{ObjectMeta: system("kubeadm-config"), Data: map[string]string{"ClusterConfiguration": ""}},
		&corev1.ConfigMap{ObjectMeta: system("coredns"), Data: map[string]string{"Corefile": ".:53 {\n    errors\n}\n"}},
		&appsv1.Deployment{
			ObjectMeta: system("coredns"),
			Spec:       appsv1.DeploymentSpec{Template: running("coredns", images.dns)},
		},
		&appsv1.DaemonSet{
			ObjectMeta: system("kube-proxy"),
			Spec:       appsv1.DaemonSetSpec{Template: running("kube-proxy", images.proxy)},
		},
		&rbacv1.ClusterRole{ObjectMeta: nodeReader, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: nodeReader,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: nodeReader.Name},
			Subjects: []rbacv1.Subject{{
				APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:bootstrappers:kubeadm:default-node-token",
			}},
		},
	)
}
