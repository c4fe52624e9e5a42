// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	// leaseSeconds and renewEvery are kubelet's.
	// https://kubernetes.io/docs/concepts/architecture/leases/#node-heart-beats
	leaseSeconds = 40
	renewEvery   = 10 * time.Second
)

// beat renews the leases of all nodes whose kubelet runs, so that the node lifecycle controller finds
// them alive, until the context ends.
func beat(ctx context.Context, log logr.Logger, api client.Client, kubelet *kubelet) {
	for ctx.Err() == nil {
		for _, node := range kubelet.running() {
			if err := renew(ctx, api, node); err != nil && ctx.Err() == nil {
				log.Info("a node's lease is not renewed", "node", node, "reason", err.Error())
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(renewEvery):
		}
	}
}

func renew(ctx context.Context, api client.Client, node string) error {
	ctx, cancel := context.WithTimeout(ctx, renewEvery)
	defer cancel()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node}}
	_, err := controllerutil.CreateOrUpdate(ctx, api, lease, func() error {
		lease.Spec.HolderIdentity = &node
		lease.Spec.LeaseDurationSeconds = ptr.To[int32](leaseSeconds)
		lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
		return nil
	})
	return err
}
