// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options are what all clusters share.
type Options struct {
	Programs string // directory of the programs
	Folder   string // directory of everything that clusters write
	Log      logr.Logger
}

// Machine is a control-plane machine that boots.
type Machine struct {
	Name, Version, Address string
	Host                   string // of the cluster's endpoint
	Port                   int32
	Services               []string // CIDR blocks; those of kubeadm if there are none
	KubeadmConfig          string   // documents of `kubeadm init` or `kubeadm join`
	IsFirst                bool     // it runs `kubeadm init`
	Authorities            Authorities
}

// Cluster is a tenant's cluster: what runs on its control-plane machines, and what kubelet does on all.
type Cluster struct {
	options Options
	folder  string
	log     logr.Logger
	ctx     context.Context //nolint:containedctx // ends what the cluster has started
	cancel  context.CancelFunc

	starting sync.Mutex // held by who starts or ends something
	balancer *balancer
	pki      pki
	manager  *program
	schedule *program
	isServed bool // the workers for pods and leases run

	mutex    sync.Mutex // for what follows, which is written with starting held, too
	kubelet  *kubelet
	client   client.Client
	machines map[string]*controlPlane
}

// controlPlane is what runs on one control-plane machine.
type controlPlane struct {
	name, version, address, config, folder string
	isFirst                                bool
	services                               []string
	ports                                  ports
	pki                                    pki
	etcd, apiServer                        *program
}

// New makes a cluster of which nothing runs yet. What an earlier process has left on disk goes on.
func New(ctx context.Context, options Options, key client.ObjectKey) *Cluster {
	inner, cancel := context.WithCancel(ctx)
	return &Cluster{
		options: options, folder: filepath.Join(options.Folder, key.Namespace, key.Name),
		log: options.Log.WithValues("cluster", key.String()), ctx: inner, cancel: cancel,
		machines: map[string]*controlPlane{},
	}
}

func (c *Cluster) programs(name string) string { return filepath.Join(c.options.Programs, name) }

// Boot takes a control-plane machine one step forward, and tells whether its API server answers.
func (c *Cluster) Boot(ctx context.Context, machine Machine) (bool, error) {
	c.starting.Lock()
	defer c.starting.Unlock()
	if err := c.open(machine); err != nil {
		return false, err
	}
	m, err := c.known(machine)
	if err != nil {
		return false, err
	}
	if !m.etcd.runs() {
		if err := c.startMember(ctx, m); err != nil {
			return false, err
		}
	}
	if votes, err := c.isVoter(ctx, m); err != nil || !votes {
		c.log.Info("etcd member is not ready yet", "member", m.name, "reason", fmt.Sprint(err))
		return false, nil
	}
	if m.apiServer == nil {
		arguments, err := c.apiServerArguments(m)
		if err != nil {
			return false, err
		}
		m.apiServer = startProgram(c.ctx, c.log, m.folder, "kube-apiserver", true, arguments)
		c.balancer.add(m.name, m.ports.APIServer)
	}
	if !c.balancer.isReady(m.name) {
		return false, nil
	}
	return true, c.serve()
}

// open makes what the whole cluster has once.
func (c *Cluster) open(machine Machine) error {
	if c.client != nil {
		return nil
	}
	made, err := newPKI(filepath.Join(c.folder, "pki"), machine.Authorities)
	if err != nil {
		return err
	}
	c.pki = made
	address := net.JoinHostPort(machine.Host, fmt.Sprint(machine.Port))
	for user, groups := range map[string][]string{
		"admin": {"system:masters"}, "controller-manager": nil, "scheduler": nil,
	} {
		name := "system:kube-" + user
		if groups != nil {
			name = "kubernetes-super-admin"
		}
		if err := c.pki.kubeconfig(user+".conf", "https://"+address, name, groups...); err != nil {
			return err
		}
	}
	if c.kubelet == nil {
		made, err := newKubelet(c.log, machine.Authorities.Cluster, c.targetOf)
		if err != nil {
			return err
		}
		c.mutex.Lock()
		c.kubelet = made
		c.mutex.Unlock()
	}
	if c.balancer == nil {
		if c.balancer, err = newBalancer(c.ctx, c.log, address); err != nil {
			return err
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.pki.path("admin.conf"))
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 50, 100
	admin, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.client = admin
	return nil
}

// known is the machine with its keys; they are made when it is asked for the first time.
func (c *Cluster) known(machine Machine) (*controlPlane, error) {
	if known := c.machines[machine.Name]; known != nil {
		return known, nil
	}
	made := &controlPlane{
		name: machine.Name, version: machine.Version, address: machine.Address, config: machine.KubeadmConfig,
		folder: filepath.Join(c.folder, machine.Name), isFirst: machine.IsFirst, services: servicesOf(machine),
	}
	var err error
	if made.pki, err = newPKI(filepath.Join(made.folder, "pki"), machine.Authorities); err != nil {
		return nil, err
	}
	if made.ports, err = portsOf(made.folder); err != nil {
		return nil, err
	}
	if err := made.writeCertificates(machine); err != nil {
		return nil, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.machines[made.name] = made
	return made, nil
}

// writeCertificates makes those of `kubeadm init phase certs`.
// https://kubernetes.io/docs/setup/best-practices/certificates/
func (m *controlPlane) writeCertificates(machine Machine) error {
	names := []string{
		m.name, machine.Host, virtualIP(m.services), "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local",
	}
	if m.address != "" {
		names = append(names, m.address)
	}
	authorities := machine.Authorities
	for _, one := range []struct {
		file, name    string
		ca            Authority
		groups, names []string
	}{
		{"apiserver", "kube-apiserver", authorities.Cluster, nil, names},
		{"apiserver-kubelet-client", "kube-apiserver-kubelet-client", authorities.Cluster, []string{"kubeadm:cluster-admins"}, nil},
		{"apiserver-etcd-client", "kube-apiserver-etcd-client", authorities.Etcd, nil, nil},
		{"front-proxy-client", "front-proxy-client", authorities.FrontProxy, nil, nil},
		{"etcd", m.name, authorities.Etcd, nil, []string{m.name}},
	} {
		if err := m.pki.pair(one.file, one.ca, one.name, one.groups, one.names); err != nil {
			return err
		}
	}
	return nil
}

// serve starts what a cluster has once, as soon as an API server answers.
func (c *Cluster) serve() error {
	if c.manager == nil {
		c.manager = startProgram(c.ctx, c.log, c.folder, "kube-controller-manager", true, c.controllerManagerArguments())
		c.schedule = startProgram(c.ctx, c.log, c.folder, "kube-scheduler", true, c.schedulerArguments())
	}
	if c.isServed {
		return nil
	}
	if err := c.workPods(); err != nil {
		return err
	}
	go beat(c.ctx, c.log, c.client, c.kubelet)
	c.isServed = true
	return nil
}

// Serves tells whether any API server answers: only then can another machine join.
func (c *Cluster) Serves() bool {
	c.starting.Lock()
	defer c.starting.Unlock()
	return c.balancer != nil && c.balancer.isReady("")
}

// Client is that of an administrator; there is none before a machine has booted.
func (c *Cluster) Client() client.Client {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.client
}

// Settle does what kubelet and kubeadm do on a control-plane machine that has its Node.
func (c *Cluster) Settle(ctx context.Context, node *corev1.Node) error {
	c.starting.Lock()
	defer c.starting.Unlock()
	m := c.machines[node.Name]
	if m == nil {
		return fmt.Errorf("control-plane machine %s has not booted", node.Name)
	}
	if err := c.mirrorPods(ctx, m, node); err != nil {
		return err
	}
	if !m.isFirst {
		return nil
	}
	return c.runPhases(ctx, m)
}

// Beat lets the kubelet of a node work, or fall silent.
func (c *Cluster) Beat(node string, addresses []string, silent bool) {
	c.mutex.Lock()
	own := c.kubelet
	c.mutex.Unlock()
	if silent {
		own.halt(node)
		return
	}
	own.run(node, addresses)
}

// PowerOff ends what runs on a machine, with all that it has on its disk.
func (c *Cluster) PowerOff(name string) {
	c.starting.Lock()
	defer c.starting.Unlock()
	if c.kubelet != nil {
		c.kubelet.halt(name)
	}
	m := c.machines[name]
	if m == nil {
		return
	}
	c.balancer.remove(name)
	m.apiServer.stop()
	m.etcd.stop()
	c.mutex.Lock()
	delete(c.machines, name)
	c.mutex.Unlock()
	if err := os.RemoveAll(m.folder); err != nil {
		c.log.Error(err, "files of a machine stay", "folder", m.folder)
	}
	if len(c.machines) == 0 {
		c.manager.stop()
		c.schedule.stop()
		c.manager, c.schedule = nil, nil
	}
}

// Close ends the cluster, with all its content.
func (c *Cluster) Close() {
	c.starting.Lock()
	defer c.starting.Unlock()
	c.cancel()
	for _, one := range c.machines {
		one.apiServer.stop()
		one.etcd.stop()
	}
	c.manager.stop()
	c.schedule.stop()
	if c.balancer != nil {
		c.balancer.close()
	}
	if c.kubelet != nil {
		c.kubelet.close()
	}
	if err := os.RemoveAll(c.folder); err != nil {
		c.log.Error(err, "files of a cluster stay", "folder", c.folder)
	}
	_ = os.Remove(filepath.Dir(c.folder)) // of the namespace, when it was the last one
}
