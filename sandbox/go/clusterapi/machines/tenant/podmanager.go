// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// workPods watches the pods of the cluster, until it ends.
func (c *Cluster) workPods() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.pki.path("admin.conf"))
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 50, 100
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme.Scheme, Logger: c.log, Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	worker := &podWorker{Client: manager.GetClient(), kubelet: c.kubelet, revive: c.revive}
	if err := ctrl.NewControllerManagedBy(manager).Named("pods").For(&corev1.Pod{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4, SkipNameValidation: ptr.To(true)}).
		Complete(reconcile.Func(worker.look)); err != nil {
		return err
	}
	go func() {
		if err := manager.Start(c.ctx); err != nil && c.ctx.Err() == nil {
			c.log.Error(err, "pods are not watched any more")
		}
	}()
	return nil
}

// revive makes a mirror pod again that somebody has deleted, as kubelet does while its static pod runs.
func (c *Cluster) revive(ctx context.Context, key client.ObjectKey) error {
	if key.Namespace != metav1.NamespaceSystem {
		return nil
	}
	c.mutex.Lock()
	var owner *controlPlane
	for name, m := range c.machines {
		if strings.HasSuffix(key.Name, "-"+name) {
			owner = m
		}
	}
	c.mutex.Unlock()
	if owner == nil || !c.kubelet.runs(owner.name) {
		return nil
	}
	node := &corev1.Node{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: owner.name}, node); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !node.DeletionTimestamp.IsZero() {
		return nil
	}
	return c.mirrorPods(ctx, owner, node)
}
