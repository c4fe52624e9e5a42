// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	cloudv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	inmemoryruntime "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime"
	inmemoryapi "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server/api"
	inmemoryetcd "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server/etcd"
	"sigs.k8s.io/cluster-api/util/certs"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sandbox/clusterapi/machines/tenant"
)

// workloads are the workload clusters of all Clusters of the management cluster.
type workloads struct {
	memory inmemoryruntime.Manager
	ctx    context.Context //nolint:containedctx // of the real programs
	real   tenant.Options  // without a folder every workload cluster is in memory
	log    logr.Logger
	mutex  sync.Mutex
	open   map[client.ObjectKey]tenantAPI
}

func newWorkloads(ctx context.Context, real tenant.Options) (*workloads, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(
		cloudv1.AddToScheme(scheme), corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme),
		rbacv1.AddToScheme(scheme), storagev1.AddToScheme(scheme), policyv1.AddToScheme(scheme),
		apiextensionsv1.AddToScheme(scheme),
	); err != nil {
		return nil, err
	}
	memory := inmemoryruntime.NewManager(scheme)
	if err := memory.Start(ctx); err != nil {
		return nil, err
	}
	real.Log = klog.Background()
	return &workloads{
		memory: memory, ctx: ctx, real: real, log: klog.Background(), open: map[client.ObjectKey]tenantAPI{},
	}, nil
}

// at returns the workload cluster of a Cluster, empty and silent when it is asked for the first time.
func (w *workloads) at(cluster client.ObjectKey) tenantAPI {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if known := w.open[cluster]; known != nil {
		return known
	}
	var made tenantAPI
	if w.real.Folder != "" {
		made = real{tenant.New(w.ctx, w.real, cluster)}
	} else {
		w.memory.AddResourceGroup(cluster.String())
		made = newWorkload(w.memory, cluster.String(), w.log)
	}
	w.open[cluster] = made
	return made
}

// drop ends the workload cluster of a Cluster that is gone, with all its content.
func (w *workloads) drop(cluster client.ObjectKey) {
	w.mutex.Lock()
	known := w.open[cluster]
	delete(w.open, cluster)
	w.mutex.Unlock()
	if known == nil {
		return
	}
	known.close() // programs take a moment to end, and others are not to wait for it
	if w.real.Folder == "" {
		w.memory.DeleteResourceGroup(cluster.String())
	}
}

// parallel is how many machines are looked at at once: those in memory answer without a wait.
func (w *workloads) parallel() int {
	if w.real.Folder == "" {
		return 1
	}
	return 4
}

// workload is one workload cluster: API server and etcd members behind one address.
//
// Cluster API reaches an etcd member through a port-forward of the API server; the upstream
// in-memory server leads that tunnel back to this very address, where the TLS server name tells
// which member is meant.
type workload struct {
	client  inmemoryruntime.Client
	handler http.Handler
	log     logr.Logger

	mutex      sync.RWMutex
	apiServers map[string]bool
	listener   net.Listener
	server     *http.Server
	version    string
	apiTLS     *tls.Config
	clientCA   *x509.CertPool
	etcdTLS    map[string]*tls.Config
}

func newWorkload(memory inmemoryruntime.Manager, group string, log logr.Logger) *workload {
	resolve := func(string) (string, error) { return group, nil }
	made := &workload{
		client:     memory.GetResourceGroup(group).GetClient(),
		log:        log.WithValues("cluster", group),
		apiServers: map[string]bool{},
		etcdTLS:    map[string]*tls.Config{},
	}
	api := made.authenticated(tables(inmemoryapi.NewAPIServerHandler(memory, log, resolve)))
	etcd := inmemoryetcd.NewEtcdServerHandler(memory, log, resolve)
	made.handler = http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		if in.ProtoMajor == 2 && strings.HasPrefix(in.Header.Get("Content-Type"), "application/grpc") {
			etcd.ServeHTTP(out, in)
			return
		}
		api.ServeHTTP(out, in)
	})
	return made
}

// authority is a CA of the workload cluster, as Cluster API or the cluster's owner made it.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func (a authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// servingKey is shared by all certificates of this process: making one takes a second.
var servingKey = sync.OnceValues(certs.NewPrivateKey)

// serving signs a server certificate for a name and an address.
func (a authority) serving(name, host string, usages ...x509.ExtKeyUsage) (tls.Certificate, error) {
	key, err := servingKey()
	if err != nil {
		return tls.Certificate{}, err
	}
	config := certs.Config{CommonName: name, Usages: usages, AltNames: certs.AltNames{
		DNSNames: []string{"localhost", name, "kubernetes", "kubernetes.default"},
		IPs:      []net.IP{net.ParseIP(host), net.IPv4(127, 0, 0, 1)},
	}}
	certificate, err := config.NewSignedCert(key, a.certificate, a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("no serving certificate for %s: %w", name, err)
	}
	return tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}, nil
}

// addEtcdMember lets the address answer as the etcd member of a pod too; its clients need a
// certificate of the etcd CA.
func (w *workload) addEtcdMember(pod, host string, ca authority) error {
	certificate, err := ca.serving(pod, host, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	if err != nil {
		return err
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.etcdTLS[pod] = &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2"},
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    ca.pool(),
	}
	return nil
}

// addAPIServer starts the API server of a control-plane machine; the first one opens the address.
func (w *workload) addAPIServer(name, host string, port int32, version string, ca authority) error {
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("controlPlaneEndpoint %s is not a loopback address: nothing can listen there; "+
			"give the cluster a floating IP of the sandbox's external network", host)
	}
	certificate, err := ca.serving("kube-apiserver", host, x509.ExtKeyUsageServerAuth)
	if err != nil {
		return err
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.version, w.clientCA = version, ca.pool()
	w.apiTLS = &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2", "http/1.1"},
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequestClientCert, // judged per request, see authenticated
	}
	w.apiServers[name] = true
	if w.listener != nil {
		return nil
	}
	return w.listen(net.JoinHostPort(host, fmt.Sprint(port)))
}

// listen opens the address; the mutex must be held.
func (w *workload) listen(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("the workload API server cannot listen: %w", err)
	}
	server := &http.Server{
		Handler:           w.handler,
		ReadHeaderTimeout: 10 * time.Second,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: w.configFor},
	}
	w.listener, w.server = listener, server
	w.log.Info("workload API server listens", "address", address)
	go func() {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			w.log.Error(err, "workload API server ended", "address", address)
		}
	}()
	return nil
}

func (w *workload) configFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	w.mutex.RLock()
	defer w.mutex.RUnlock()
	if member := w.etcdTLS[hello.ServerName]; member != nil {
		return member, nil
	}
	return w.apiTLS, nil
}

// removeControlPlane takes the API server and the etcd member of a machine away; with the last
// API server the address closes.
func (w *workload) removeControlPlane(name string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	delete(w.apiServers, name)
	delete(w.etcdTLS, "etcd-"+name)
	if len(w.apiServers) == 0 {
		w.shut()
	}
}

func (w *workload) close() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.shut()
}

// shut closes the address and every connection; the mutex must be held.
func (w *workload) shut() {
	if w.server != nil {
		_ = w.server.Close()
		w.server, w.listener = nil, nil
	}
}

// serves tells whether any API server runs: only then can another machine join.
func (w *workload) serves() bool {
	w.mutex.RLock()
	defer w.mutex.RUnlock()
	return w.listener != nil
}
