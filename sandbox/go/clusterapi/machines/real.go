// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"sandbox/clusterapi/machines/tenant"
)

// real is a tenantAPI of the real programs.
type real struct{ cluster *tenant.Cluster }

func (r real) boot(ctx context.Context, machine booting) (bool, error) {
	authorities, err := authoritiesOf(machine)
	if err != nil {
		return false, err
	}
	documents, err := readKubeadm(machine.data)
	if err != nil {
		return false, err
	}
	config, isFirst := "", false
	for _, document := range documents {
		config += document.text + "\n---\n"
		isFirst = isFirst || document.Kind == "InitConfiguration"
	}
	return r.cluster.Boot(ctx, tenant.Machine{
		Name: machine.name, Version: machine.version, Address: firstIP(machine.addresses),
		Host: machine.endpoint.Host, Port: machine.endpoint.Port, Services: machine.services,
		KubeadmConfig: config, IsFirst: isFirst, Authorities: authorities,
	})
}

// authoritiesOf are the keys that Cluster API gives every control-plane machine.
func authoritiesOf(machine booting) (tenant.Authorities, error) {
	var found tenant.Authorities
	for purpose, into := range map[secret.Purpose]*tenant.Authority{
		secret.ClusterCA: &found.Cluster, secret.EtcdCA: &found.Etcd, secret.FrontProxyCA: &found.FrontProxy,
	} {
		known, err := machine.authorityOf(purpose)
		if err != nil {
			return found, err
		}
		*into = tenant.Authority{Certificate: known.certificate, Key: known.key}
	}
	account, err := machine.secretOf(secret.ServiceAccount)
	if err != nil {
		return found, err
	}
	found.ServiceAccountPublic = account.Data[secret.TLSCrtDataName]
	found.ServiceAccountKey = account.Data[secret.TLSKeyDataName]
	if len(found.ServiceAccountPublic) == 0 || len(found.ServiceAccountKey) == 0 {
		return found, fmt.Errorf("Secret %s/%s has no tls.crt and tls.key", account.Namespace, account.Name)
	}
	return found, nil
}

func firstIP(addresses clusterv1.MachineAddresses) string {
	if known := ipsOf(addresses); len(known) > 0 {
		return known[0]
	}
	return ""
}

func ipsOf(addresses clusterv1.MachineAddresses) []string {
	var found []string
	for _, address := range addresses {
		if address.Type == clusterv1.MachineInternalIP {
			found = append(found, address.Address)
		}
	}
	return found
}

func (r real) settle(ctx context.Context, node *corev1.Node) error {
	return r.cluster.Settle(ctx, node)
}

func (r real) powerOff(_ context.Context, name string, _ bool) error {
	r.cluster.PowerOff(name)
	return nil
}

func (r real) serves() bool { return r.cluster.Serves() }

func (r real) node(ctx context.Context, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	return node, r.cluster.Client().Get(ctx, client.ObjectKey{Name: name}, node)
}

func (r real) createNode(ctx context.Context, node *corev1.Node) error {
	return r.cluster.Client().Create(ctx, node)
}

// patchNode changes the node as the cloud controller manager does, and its status as kubelet does.
func (r real) patchNode(ctx context.Context, node, was *corev1.Node) error {
	api := r.cluster.Client()
	if !equality.Semantic.DeepEqual(was.Spec, node.Spec) {
		// Taints are a list, and others write into it.
		lock := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
		if err := api.Patch(ctx, node.DeepCopy(), lock); err != nil {
			return err
		}
	}
	if equality.Semantic.DeepEqual(was.Status, node.Status) {
		return nil
	}
	return api.Status().Patch(ctx, node, client.MergeFrom(was))
}

// beat: the node lifecycle controller of the cluster notices.
func (r real) beat(node string, addresses []string, silent bool) bool {
	r.cluster.Beat(node, addresses, silent)
	return true
}

func (r real) close() { r.cluster.Close() }

// sweepFolders ends clusters that were deleted while this program did not run.
//
// Without a folder, with API servers in memory, there is nothing of theirs: an empty path would be
// the directory that this program runs in.
func (p *player) sweepFolders(ctx context.Context, options tenant.Options) error {
	if options.Folder == "" {
		return nil
	}
	if !filepath.IsAbs(options.Folder) {
		return fmt.Errorf("the folder of the tenants' clusters is no absolute path: %q", options.Folder)
	}
	folders, err := filepath.Glob(filepath.Join(options.Folder, "*", "*"))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		key := client.ObjectKey{Namespace: filepath.Base(filepath.Dir(folder)), Name: filepath.Base(folder)}
		if _, err := p.core.cluster(ctx, key); client.IgnoreNotFound(err) != nil {
			return err
		} else if err != nil {
			if err := os.RemoveAll(folder); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweeping runs sweepFolders once, as soon as the caches are filled.
func sweeping(player *player, options tenant.Options) manager.RunnableFunc {
	return func(ctx context.Context) error { return player.sweepFolders(ctx, options) }
}
