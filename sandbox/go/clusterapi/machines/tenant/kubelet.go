// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // what the port-forward of Cluster API's server takes
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/client-go/tools/portforward"
	inmemory "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server/api/portforward"
)

// kubeletPort is that of kubelet on every node.
const kubeletPort = "10250"

// kubelet answers for the kubelets of all nodes of a cluster. The API server reaches it through a
// proxy of its own, so that nodes keep the addresses that Neutron has given them.
type kubelet struct {
	log    logr.Logger
	proxy  net.Listener
	server *http.Server
	ways   handed
	target func(pod, port string) (string, error)

	mutex sync.Mutex
	nodes map[string][]string // addresses of each node whose kubelet runs
}

// proxies are numbered, so that each has a name.
var proxies atomic.Int64

// handed are connections that the proxy hands to the server.
type handed struct {
	connections chan net.Conn
	closed      chan struct{}
}

func (h handed) Accept() (net.Conn, error) {
	select {
	case connection := <-h.connections:
		return connection, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

func (h handed) Close() error   { return nil }
func (h handed) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// newKubelet opens the proxy; target tells where a port of a pod is on this host.
func newKubelet(log logr.Logger, ca Authority, target func(pod, port string) (string, error)) (*kubelet, error) {
	certificate, err := pairOf(ca, "kubelet", []string{"system:nodes"}, nil)
	if err != nil {
		return nil, err
	}
	// A name without a file, because the path of a file may be too long: unix(7). Not TCP, for which
	// kube-apiserver needs TLS.
	proxy, err := net.Listen("unix", fmt.Sprintf("@machines-%d-%d", os.Getpid(), proxies.Add(1)))
	if err != nil {
		return nil, err
	}
	made := &kubelet{
		log: log, proxy: proxy, target: target, nodes: map[string][]string{},
		ways: handed{make(chan net.Conn), make(chan struct{})},
	}
	made.server = &http.Server{
		Handler: made.handler(), ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate},
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool(),
		},
		// No HTTP/2: a port-forward takes the connection over.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	go func() { _ = made.server.ServeTLS(made.ways, "", "") }()
	go func() {
		_ = (&http.Server{Handler: http.HandlerFunc(made.connect), ReadHeaderTimeout: 10 * time.Second}).Serve(proxy)
	}()
	return made, nil
}

func (k *kubelet) address() string { return k.proxy.Addr().String() }

func (k *kubelet) close() {
	close(k.ways.closed)
	_, _ = k.proxy.Close(), k.server.Close()
}

// run lets the kubelet of a node work.
func (k *kubelet) run(node string, addresses []string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.nodes[node] = append([]string{node}, addresses...)
}

// halt lets it fall silent.
func (k *kubelet) halt(node string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	delete(k.nodes, node)
}

func (k *kubelet) runs(node string) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.nodes[node] != nil
}

func (k *kubelet) running() []string {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	var names []string
	for name := range k.nodes {
		names = append(names, name)
	}
	return names
}

// ip is the first address of a node.
func (k *kubelet) ip(node string) string {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if known := k.nodes[node]; len(known) > 1 {
		return known[1]
	}
	return ""
}

// connect is the API server's proxy: it leads to kubelets and to nothing else.
func (k *kubelet) connect(out http.ResponseWriter, in *http.Request) {
	host, port, err := net.SplitHostPort(in.Host)
	if in.Method != http.MethodConnect || err != nil || port != kubeletPort || !k.knows(host) {
		http.Error(out, "no process listens at "+in.Host, http.StatusBadGateway)
		return
	}
	hijacker, can := out.(http.Hijacker)
	if !can {
		http.Error(out, "this connection cannot be taken over", http.StatusInternalServerError)
		return
	}
	connection, _, err := hijacker.Hijack()
	if err != nil {
		k.log.Error(err, "a request to a kubelet is lost")
		return
	}
	if _, err := io.WriteString(connection, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = connection.Close()
		return
	}
	select {
	case k.ways.connections <- connection:
	case <-k.ways.closed:
		_ = connection.Close()
	}
}

func (k *kubelet) knows(host string) bool {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, addresses := range k.nodes {
		for _, address := range addresses {
			if address == host {
				return true
			}
		}
	}
	return false
}

// handler has those paths of kubelet that have an answer without a container.
// https://github.com/kubernetes/kubernetes/blob/v1.34.4/pkg/kubelet/server/server.go
func (k *kubelet) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(out http.ResponseWriter, _ *http.Request) { fmt.Fprint(out, "ok") })
	mux.HandleFunc("/portForward/{namespace}/{pod}", k.portForward)
	mux.HandleFunc("/portForward/{namespace}/{pod}/{uid}", k.portForward)
	mux.HandleFunc("/containerLogs/{namespace}/{pod}/{container}", func(out http.ResponseWriter, in *http.Request) {
		fmt.Fprintf(out, "container %s is simulated and writes no log\n", in.PathValue("container"))
	})
	mux.HandleFunc("/", func(out http.ResponseWriter, in *http.Request) {
		http.Error(out, "no container runs on a simulated node", http.StatusNotImplemented)
	})
	return mux
}

func (k *kubelet) portForward(out http.ResponseWriter, in *http.Request) {
	pod := in.PathValue("pod")
	protocols := []string{portforward.PortForwardProtocolV1Name}
	if _, err := httpstream.Handshake(in, out, protocols); err != nil {
		return // Handshake has answered
	}
	streams := make(chan httpstream.Stream, 1)
	connection := spdy.NewResponseUpgrader().UpgradeResponse(out, in, inmemory.HTTPStreamReceived(streams))
	if connection == nil {
		return // UpgradeResponse has answered
	}
	defer connection.Close()
	connection.SetIdleTimeout(10 * time.Minute)
	forward := func(ctx context.Context, _, namespace, port string, stream io.ReadWriteCloser) error {
		if namespace != metav1.NamespaceSystem {
			return fmt.Errorf("no container runs in pod %s/%s", namespace, pod)
		}
		address, err := k.target(pod, port)
		if err != nil {
			return err
		}
		there, err := net.DialTimeout("tcp", address, probeTimeout)
		if err != nil {
			return err
		}
		return inmemory.HTTPStreamTunnel(ctx, stream, there)
	}
	inmemory.NewHTTPStreamHandler(connection, streams, pod, in.PathValue("namespace"), forward).Run(context.Background())
}

// targetOf is the address on this host of a static pod's port.
func (c *Cluster) targetOf(pod, port string) (string, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for name, m := range c.machines {
		switch {
		case pod == "etcd-"+name && port == "2379":
			return fmt.Sprintf("127.0.0.1:%d", m.ports.Etcd), nil
		case pod == "kube-apiserver-"+name:
			return fmt.Sprintf("127.0.0.1:%d", m.ports.APIServer), nil
		}
	}
	return "", fmt.Errorf("no process listens on port %s of pod %s", port, strings.TrimSpace(pod))
}
