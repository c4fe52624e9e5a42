// SPDX-License-Identifier: Apache-2.0

// Command machines plays the virtual machines of Cluster API clusters: what kubeadm, kubelet and
// an etcd member leave behind once Nova says that a server is ACTIVE.
//
// Real are the objects it reads (OpenStackServer, Machine, Cluster, the bootstrap data and the CA
// Secrets in the management cluster), the TLS connections with certificates of the cluster's own
// CA, and Cluster API's in-memory API server and etcd (sigs.k8s.io/cluster-api/test) that answer
// behind them. Played is the rest: there is no operating system, no pod ever runs, and every
// client with a certificate of the cluster's CA may do everything.
//
// With --tenant-folder the control planes are real, see the package tenant; their content is on disk.
//
// A workload API server listens on the host and port of its Cluster's controlPlaneEndpoint, which
// must be a loopback address. Its content lives in memory. After a restart of this program the
// machines that had joined are there again at once, with their nodes and etcd members; objects
// that somebody else made in a workload cluster are lost.
package main

import (
	"errors"
	"flag"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"sandbox/clusterapi/machines/tenant"
)

// delays are the seconds that a real machine would take, as short as the user wants them.
type delays struct {
	join  time.Duration // server ACTIVE until kubeadm has ended and the node is registered
	init  time.Duration // cloud controller manager runs until the node has its providerID
	ready time.Duration // network addon runs until the node is Ready
}

func main() {
	var wait delays
	var health string
	var tenants tenant.Options
	flag.DurationVar(&wait.join, "join", 3*time.Second, "from server ACTIVE to a registered node")
	flag.DurationVar(&wait.init, "init", time.Second, "from a running cloud controller manager to the node's providerID")
	flag.DurationVar(&wait.ready, "ready", time.Second, "from a running network addon to node Ready")
	flag.StringVar(&tenants.Folder, "tenant-folder", "", "directory of tenants' clusters with the real programs; "+
		"without it they are in memory")
	flag.StringVar(&tenants.Programs, "tenant-programs", "", "directory of these programs")
	flag.StringVar(&health, "health-addr", "127.0.0.1:0", "address of /readyz")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(wait, health, tenants); err != nil {
		klog.Background().Error(err, "machines ends")
		os.Exit(1)
	}
}

func run(wait delays, health string, tenants tenant.Options) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(
		corev1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), clusterv1beta1.AddToScheme(scheme),
	); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 100, 200
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		HealthProbeBindAddress: health,
		Metrics:                server.Options{BindAddress: "0"},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			// Of all ConfigMaps only the one with the faults is watched.
			&corev1.ConfigMap{}: {
				Namespaces: map[string]cache.Config{faultsKey.Namespace: {}},
				Field:      fields.OneTermEqualSelector("metadata.name", faultsKey.Name),
			},
		}},
	})
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	workloads, err := newWorkloads(ctx, tenants)
	if err != nil {
		return err
	}
	old, err := isOld(manager.GetRESTMapper())
	if err != nil {
		return err
	}
	player := newPlayer(manager, workloads, wait, old)
	synced := func(request *http.Request) error {
		if !manager.GetCache().WaitForCacheSync(request.Context()) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
	if err := errors.Join(
		player.setUp(manager),
		manager.Add(sweeping(player, tenants)),
		manager.AddHealthzCheck("ping", healthz.Ping),
		manager.AddReadyzCheck("caches", synced),
	); err != nil {
		return err
	}
	return manager.Start(ctx)
}
