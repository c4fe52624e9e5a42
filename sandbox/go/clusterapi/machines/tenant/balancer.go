// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

const (
	probeEvery   = time.Second
	probeTimeout = 2 * time.Second
)

// balancer stands for the load balancer, or the floating IP, of a cluster: it hands each connection
// to an API server whose /readyz says ok, as Octavia hands it to a member that a health monitor finds.
type balancer struct {
	listener net.Listener
	log      logr.Logger

	mutex    sync.Mutex
	backends map[string]*backend
	last     int
}

type backend struct {
	address string
	ready   bool
	open    map[net.Conn]bool
}

func newBalancer(ctx context.Context, log logr.Logger, address string) (*balancer, error) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("controlPlaneEndpoint %s is not a loopback address: nothing can listen there; "+
			"give the cluster a floating IP of the sandbox's external network", address)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("the API of the cluster cannot be opened: %w", err)
	}
	made := &balancer{listener: listener, log: log, backends: map[string]*backend{}}
	go made.accept()
	go made.probe(ctx)
	return made, nil
}

// add gives it an API server, which gets connections when it is ready.
func (b *balancer) add(name string, port int) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.backends[name] = &backend{address: fmt.Sprintf("127.0.0.1:%d", port), open: map[net.Conn]bool{}}
}

// remove takes an API server away, with its connections.
func (b *balancer) remove(name string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if known := b.backends[name]; known != nil {
		for connection := range known.open {
			_ = connection.Close()
		}
		delete(b.backends, name)
	}
}

func (b *balancer) close() {
	_ = b.listener.Close()
	b.mutex.Lock()
	names := make([]string, 0, len(b.backends))
	for name := range b.backends {
		names = append(names, name)
	}
	b.mutex.Unlock()
	for _, name := range names {
		b.remove(name)
	}
}

// isReady tells whether an API server is ready, or whether any is for an empty name.
func (b *balancer) isReady(name string) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for known, one := range b.backends {
		if one.ready && (name == "" || name == known) {
			return true
		}
	}
	return false
}

func (b *balancer) accept() {
	for {
		connection, err := b.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			b.log.Error(err, "a connection to the API was not accepted")
			time.Sleep(probeEvery)
			continue
		}
		go b.serve(connection)
	}
}

func (b *balancer) serve(client net.Conn) {
	defer client.Close()
	chosen := b.choose(client)
	if chosen == nil {
		return // as a balancer without a member does
	}
	defer b.forget(chosen, client)
	server, err := net.DialTimeout("tcp", chosen.address, probeTimeout)
	if err != nil {
		return
	}
	tunnel(client, server)
}

// choose takes the ready ones in turn.
func (b *balancer) choose(client net.Conn) *backend {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	var names []string
	for name, one := range b.backends {
		if one.ready {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	b.last++
	chosen := b.backends[names[b.last%len(names)]]
	chosen.open[client] = true
	return chosen
}

func (b *balancer) forget(chosen *backend, client net.Conn) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	delete(chosen.open, client)
}

func (b *balancer) probe(ctx context.Context) {
	// Like a health monitor of type HTTPS, it does not ask who answers.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	client := &http.Client{Timeout: probeTimeout, Transport: transport}
	for ctx.Err() == nil {
		b.mutex.Lock()
		known := make([]*backend, 0, len(b.backends))
		for _, one := range b.backends {
			known = append(known, one)
		}
		b.mutex.Unlock()
		for _, one := range known {
			ready := answers(client, one.address)
			b.mutex.Lock()
			one.ready = ready
			b.mutex.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-time.After(probeEvery / 2):
		}
	}
}

func answers(client *http.Client, address string) bool {
	answer, err := client.Get("https://" + address + "/readyz")
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// tunnel copies in both directions until one side ends.
func tunnel(one, other io.ReadWriteCloser) {
	ended := make(chan struct{}, 2)
	copyTo := func(into io.Writer, from io.Reader) {
		_, _ = io.Copy(into, from) // what breaks off ends both sides
		ended <- struct{}{}
	}
	go copyTo(one, other)
	go copyTo(other, one)
	<-ended
	_, _ = one.Close(), other.Close()
}
