// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

var podKey = client.ObjectKey{Namespace: "default", Name: "p"}

// after is a pod once kubelet has looked at it several times, nil when it is gone.
func after(t *testing.T, pod *corev1.Pod, running bool) *corev1.Pod {
	t.Helper()
	built := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pod).WithStatusSubresource(pod).Build()
	worker := &podWorker{
		Client: built, kubelet: &kubelet{nodes: map[string][]string{}},
		revive: func(context.Context, client.ObjectKey) error { return nil },
	}
	if running {
		worker.kubelet.run("n1", []string{"10.0.0.7"})
	}
	for range 3 {
		if _, err := worker.look(t.Context(), ctrl.Request{NamespacedName: podKey}); err != nil {
			t.Fatal(err)
		}
	}
	found := &corev1.Pod{}
	if err := built.Get(t.Context(), podKey, found); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	return found
}

func newPod(node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: podKey.Namespace, Name: podKey.Name},
		Spec: corev1.PodSpec{
			NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "example.org/c"}},
			InitContainers: []corev1.Container{{Name: "i", Image: "example.org/i"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

func TestPodThatIsBoundRuns(t *testing.T) {
	status := after(t, newPod("n1"), true).Status
	if status.Phase != corev1.PodRunning || status.HostIP != "10.0.0.7" || status.PodIP == "" {
		t.Errorf("got %v", status)
	}
	if !status.ContainerStatuses[0].Ready || status.InitContainerStatuses[0].State.Terminated == nil {
		t.Errorf("got %v", status)
	}
}

func TestPodWaitsForAKubelet(t *testing.T) {
	for _, node := range []string{"", "n1"} {
		if status := after(t, newPod(node), node == "").Status; status.Phase != corev1.PodPending {
			t.Errorf("on %q: %v", node, status)
		}
	}
}

func TestPodOfAJobSucceeds(t *testing.T) {
	pod := newPod("n1")
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "j", Controller: ptr.To(true)}}
	if status := after(t, pod, true).Status; status.Phase != corev1.PodSucceeded {
		t.Errorf("got %v", status)
	}
}

func TestDeletedPodEnds(t *testing.T) {
	pod := newPod("n1")
	long := metav1.NewTime(metav1.Now().Add(-endAfter))
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &long, ptr.To[int64](0)
	pod.Finalizers = []string{"example.org/kept"} // else the fake client has it no more
	if found := after(t, pod, true); found == nil || found.Status.Phase != corev1.PodPending {
		t.Errorf("got %v", found)
	}
}

func TestPodIsReadyAgainWithItsNode(t *testing.T) {
	for _, ready := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue} {
		pod := after(t, newPod("n1"), true)
		pod.ResourceVersion = ""
		setPodCondition(&pod.Status, corev1.PodReady, corev1.ConditionFalse, "", metav1.Now())
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		built := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pod, node).WithStatusSubresource(pod).Build()
		worker := &podWorker{Client: built, kubelet: &kubelet{nodes: map[string][]string{}}}
		worker.kubelet.run("n1", nil)
		result, err := worker.look(t.Context(), ctrl.Request{NamespacedName: podKey})
		if err != nil {
			t.Fatal(err)
		}
		found := &corev1.Pod{}
		if err := built.Get(t.Context(), podKey, found); err != nil {
			t.Fatal(err)
		}
		if isMarkedNotReady(found) == (ready == corev1.ConditionTrue) || (result.RequeueAfter > 0) == (ready == corev1.ConditionTrue) {
			t.Errorf("node %s: pod %v, looked at again after %v", ready, found.Status.Conditions, result.RequeueAfter)
		}
	}
}
