// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cluster-api/util/certs"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sandbox/clusterapi/machines/tenant"
)

// newAuthority makes a CA as Cluster API or Magnum would.
func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := certs.NewPrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	raw, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return authority{certificate: certificate, key: key}
}

// freePort is a port that is free on every address used here.
func freePort(t *testing.T) int32 {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return int32(listener.Addr().(*net.TCPAddr).Port)
}

// as is a client that trusts one CA and shows a certificate of another, or none.
func as(t *testing.T, trusted authority, shown *authority, serverName string) *http.Client {
	t.Helper()
	config := &tls.Config{RootCAs: trusted.pool(), ServerName: serverName, MinVersion: tls.VersionTLS12}
	if shown != nil {
		certificate, err := shown.serving("client", "127.0.0.1", x509.ExtKeyUsageClientAuth)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
}

func fetch(caller *http.Client, url string, headers ...string) (int, string) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, err.Error()
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := caller.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body)
}

// started is a workload cluster with one control-plane machine on a loopback address.
func started(t *testing.T, all *workloads, name, host string, port int32, ca authority) *workload {
	t.Helper()
	w := inMemory(all, client.ObjectKey{Namespace: "p", Name: name})
	if err := w.joinControlPlane(context.Background(), name+"-1", imageSource{}.images("v1.34.4"), "uid"); err != nil {
		t.Fatal(err)
	}
	if err := w.addAPIServer(name+"-1", host, port, "v1.34.4", ca); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w
}

// inMemory is the workload cluster of a Cluster.
func inMemory(all *workloads, key client.ObjectKey) *workload {
	return all.at(key).(*workload)
}

func allWorkloads(t *testing.T) *workloads {
	t.Helper()
	all, err := newWorkloads(t.Context(), tenant.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWhoMayAskTheWorkloadAPIServer(t *testing.T) {
	ca, foreign, port := newAuthority(t), newAuthority(t), freePort(t)
	started(t, allWorkloads(t), "one", "127.0.0.1", port, ca)
	url := fmt.Sprintf("https://127.0.0.1:%d", port)
	cases := []struct {
		who    string
		caller *http.Client
		path   string
		want   int
	}{
		{"anybody asks for health", as(t, ca, nil, ""), "/readyz", http.StatusOK},
		{"anybody asks for the version", as(t, ca, nil, ""), "/version", http.StatusOK},
		{"nobody in particular", as(t, ca, nil, ""), nodesPath, http.StatusUnauthorized},
		{"a certificate of another CA", as(t, ca, &foreign, ""), nodesPath, http.StatusUnauthorized},
		{"a certificate of the cluster's CA", as(t, ca, &ca, ""), nodesPath, http.StatusOK},
	}
	for _, test := range cases {
		if got, body := fetch(test.caller, url+test.path); got != test.want {
			t.Errorf("%s: %s answers %d %s, want %d", test.who, test.path, got, body, test.want)
		}
	}
	if _, problem := fetch(as(t, foreign, &ca, ""), url+"/readyz"); !strings.Contains(problem, "x509") {
		t.Errorf("the server's certificate is trusted with a foreign CA: %s", problem)
	}
}

func TestEtcdMembersNeedACertificateOfTheEtcdCA(t *testing.T) {
	ca, etcdCA, port := newAuthority(t), newAuthority(t), freePort(t)
	w := started(t, allWorkloads(t), "one", "127.0.0.1", port, ca)
	if err := w.addEtcdMember("etcd-one-1", "127.0.0.1", etcdCA); err != nil {
		t.Fatal(err)
	}
	dial := func(shown authority) error {
		certificate, err := shown.serving("client", "127.0.0.1", x509.ExtKeyUsageClientAuth)
		if err != nil {
			t.Fatal(err)
		}
		config := &tls.Config{RootCAs: etcdCA.pool(), ServerName: "etcd-one-1", Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
		connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), config)
		if err != nil {
			return err
		}
		defer func() { _ = connection.Close() }()
		_ = connection.SetDeadline(time.Now().Add(2 * time.Second))
		if _, err = connection.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
			return err
		}
		_, err = connection.Read(make([]byte, 1))
		return err
	}
	if err := dial(etcdCA); err != nil {
		t.Errorf("with a certificate of the etcd CA: %v", err)
	}
	if err := dial(ca); err == nil {
		t.Error("a certificate of the cluster's CA was accepted for etcd")
	}
}

func TestClustersShareAPortOnDifferentAddresses(t *testing.T) {
	all, one, two, port := allWorkloads(t), newAuthority(t), newAuthority(t), freePort(t)
	started(t, all, "one", "127.0.0.1", port, one)
	started(t, all, "two", "127.0.0.2", port, two)
	for host, ca := range map[string]authority{"127.0.0.1": one, "127.0.0.2": two} {
		code, body := fetch(as(t, ca, &ca, ""), fmt.Sprintf("https://%s:%d/api/v1/pods", host, port))
		name := map[string]string{"127.0.0.1": "etcd-one-1", "127.0.0.2": "etcd-two-1"}[host]
		if code != http.StatusOK || !strings.Contains(body, name) {
			t.Errorf("%s answers %d without %s", host, code, name)
		}
	}
}

func TestAddressClosesWithTheLastControlPlaneMachine(t *testing.T) {
	all, ca, port := allWorkloads(t), newAuthority(t), freePort(t)
	w := started(t, all, "one", "127.0.0.1", port, ca)
	if err := w.addAPIServer("one-2", "127.0.0.1", port, "v1.34.4", ca); err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("https://127.0.0.1:%d/readyz", port)
	w.removeControlPlane("one-1")
	if code, body := fetch(as(t, ca, nil, ""), url); code != http.StatusOK || !w.serves() {
		t.Errorf("with one machine left: %d %s", code, body)
	}
	w.removeControlPlane("one-2")
	if code, _ := fetch(as(t, ca, nil, ""), url); code != 0 || w.serves() {
		t.Errorf("with none left it still answers %d", code)
	}
}

func TestOnlyLoopbackIsListenedOn(t *testing.T) {
	w := inMemory(allWorkloads(t), client.ObjectKey{Namespace: "p", Name: "one"})
	err := w.addAPIServer("one-1", "192.0.2.1", 6443, "v1.34.4", newAuthority(t))
	if err == nil || !strings.Contains(err.Error(), "192.0.2.1") || w.serves() {
		t.Errorf("got %v", err)
	}
}

func TestEtcdHasALeaderAfterTheFirstMemberIsGone(t *testing.T) {
	w := inMemory(allWorkloads(t), client.ObjectKey{Namespace: "p", Name: "one"})
	for _, name := range []string{"a", "b"} {
		if err := w.joinControlPlane(t.Context(), name, imageSource{}.images("v1.34.4"), "uid"); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.leaveControlPlane(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	members, err := w.etcdMembers(t.Context())
	if err != nil || len(members) != 1 {
		t.Fatalf("members %v, %v", members, err)
	}
	for key := range members[0].Annotations {
		if strings.HasSuffix(key, "/leader-from") {
			return
		}
	}
	t.Errorf("no leader among %v", members[0].Annotations)
}

func TestKubectlGetsATableOfNodes(t *testing.T) {
	all, ca, port := allWorkloads(t), newAuthority(t), freePort(t)
	w := started(t, all, "one", "127.0.0.1", port, ca)
	node := newNode("one-1", "v1.34.4", true, registration{})
	node.Spec.Unschedulable = true
	if err := w.client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	accept := "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	for _, path := range []string{nodesPath, nodesPath + "/one-1"} {
		_, body := fetch(as(t, ca, &ca, ""), fmt.Sprintf("https://127.0.0.1:%d%s", port, path), "Accept", accept)
		table := &metav1.Table{}
		if err := json.Unmarshal([]byte(body), table); err != nil || table.Kind != "Table" || len(table.Rows) != 1 {
			t.Fatalf("%s: %v in %s", path, err, body)
		}
		got := fmt.Sprint(table.Rows[0].Cells[0:3]...)
		if want := fmt.Sprint("one-1", "NotReady,SchedulingDisabled", "control-plane"); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	if code, _ := fetch(as(t, ca, &ca, ""), fmt.Sprintf("https://127.0.0.1:%d%s/none", port, nodesPath), "Accept", accept); code != http.StatusNotFound {
		t.Errorf("a node that is not there: %d", code)
	}
}
