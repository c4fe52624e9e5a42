// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// endAfter is how long the containers of a deleted pod take to end.
	endAfter = time.Second
	mirror   = corev1.MirrorPodAnnotationKey
)

// podWorker does to pods what the kubelets of a cluster do.
type podWorker struct {
	client.Client
	kubelet *kubelet
	revive  func(context.Context, client.ObjectKey) error
	ips     atomic.Uint32
}

// look takes a pod one step forward.
func (w *podWorker) look(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	err := w.Get(ctx, request.NamespacedName, pod)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, w.revive(ctx, request.NamespacedName)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	node := pod.Spec.NodeName
	if node == "" || !w.kubelet.runs(node) {
		return ctrl.Result{}, nil
	}
	if !pod.DeletionTimestamp.IsZero() {
		return w.end(ctx, pod)
	}
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return ctrl.Result{}, nil
	case pod.Status.Phase == corev1.PodPending || pod.Status.Phase == "":
		w.start(pod)
	case isOfJob(pod):
		succeed(pod)
	case isMarkedNotReady(pod):
		return w.restore(ctx, pod)
	default:
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(w.Status().Update(ctx, pod))
}

// isMarkedNotReady: the node lifecycle controller says so of the pods of a node that is not ready.
func isMarkedNotReady(pod *corev1.Pod) bool {
	found := map[corev1.PodConditionType]corev1.ConditionStatus{}
	for _, condition := range pod.Status.Conditions {
		found[condition.Type] = condition.Status
	}
	return found[corev1.ContainersReady] == corev1.ConditionTrue && found[corev1.PodReady] == corev1.ConditionFalse
}

// restore says again that a pod is ready, as kubelet does, once its node is.
func (w *podWorker) restore(ctx context.Context, pod *corev1.Pod) (ctrl.Result, error) {
	node := &corev1.Node{}
	if err := w.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, node); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			setPodCondition(&pod.Status, corev1.PodReady, corev1.ConditionTrue, "", metav1.Now())
			return ctrl.Result{}, client.IgnoreNotFound(w.Status().Update(ctx, pod))
		}
	}
	return ctrl.Result{RequeueAfter: endAfter}, nil
}

// end lets a deleted pod go, at the latest when its grace period is over.
func (w *podWorker) end(ctx context.Context, pod *corev1.Pod) (ctrl.Result, error) {
	grace := time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second
	// The timestamp is when the grace period ends.
	began := pod.DeletionTimestamp.Add(-grace)
	if left := time.Until(began.Add(min(grace, endAfter))); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	err := w.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

func isOfJob(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "Job" && owner.APIVersion == batchv1.SchemeGroupVersion.String()
}

// start says that every container of a pod runs.
func (w *podWorker) start(pod *corev1.Pod) {
	now := metav1.Now()
	status := &pod.Status
	status.Phase, status.StartTime = corev1.PodRunning, &now
	status.HostIP = w.kubelet.ip(pod.Spec.NodeName)
	if status.HostIP != "" {
		status.HostIPs = []corev1.HostIP{{IP: status.HostIP}}
	}
	if status.PodIP = status.HostIP; !pod.Spec.HostNetwork {
		next := w.ips.Add(1)
		status.PodIP = fmt.Sprintf("172.16.%d.%d", next/250%250, next%250+1)
	}
	if status.PodIP != "" {
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	}
	for _, kind := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
	} {
		setPodCondition(status, kind, corev1.ConditionTrue, "", now)
	}
	status.InitContainerStatuses = nil
	for _, container := range pod.Spec.InitContainers {
		one := runningStatus(pod, container, now)
		if ptr.Deref(container.RestartPolicy, "") != corev1.ContainerRestartPolicyAlways {
			terminate(&one, now)
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, one)
	}
	status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, runningStatus(pod, container, now))
	}
}

func runningStatus(pod *corev1.Pod, container corev1.Container, now metav1.Time) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: container.Name, Image: container.Image, ImageID: container.Image, Ready: true, Started: ptr.To(true),
		ContainerID: fmt.Sprintf("containerd://%s-%s", pod.UID, container.Name),
		State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
	}
}

func terminate(status *corev1.ContainerStatus, now metav1.Time) {
	status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: "Completed", StartedAt: now, FinishedAt: now, ContainerID: status.ContainerID,
	}}
	status.Started = ptr.To(false)
}

// succeed ends the containers of a Job's pod well.
func succeed(pod *corev1.Pod) {
	now := metav1.Now()
	pod.Status.Phase = corev1.PodSucceeded
	for i := range pod.Status.ContainerStatuses {
		terminate(&pod.Status.ContainerStatuses[i], now)
		pod.Status.ContainerStatuses[i].Ready = false
	}
	for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		setPodCondition(&pod.Status, kind, corev1.ConditionFalse, "PodCompleted", now)
	}
}

func setPodCondition(
	status *corev1.PodStatus, kind corev1.PodConditionType, value corev1.ConditionStatus, reason string, now metav1.Time,
) {
	wanted := corev1.PodCondition{Type: kind, Status: value, Reason: reason, LastTransitionTime: now}
	for i := range status.Conditions {
		if status.Conditions[i].Type == kind {
			status.Conditions[i] = wanted
			return
		}
	}
	status.Conditions = append(status.Conditions, wanted)
}
