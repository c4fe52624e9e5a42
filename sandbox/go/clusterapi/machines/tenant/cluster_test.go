// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/util/certs"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// programsVariable names a directory with the real programs; without it no cluster is started.
const programsVariable = "MACHINES_TENANT_PROGRAMS"

const patience = 4 * time.Minute

func eventually(t *testing.T, what string, true func() (bool, error)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		is, err := true()
		if is && err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %v: %v", what, patience, err)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

func newAuthority(t *testing.T, name string) Authority {
	t.Helper()
	key, err := certs.NewSigner(bootstrapv1.EncryptionAlgorithmECDSAP256)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return Authority{certificate, key}
}

func newAuthorities(t *testing.T) Authorities {
	t.Helper()
	key, err := certs.NewPrivateKey()
	if err != nil {
		t.Fatal(err)
	}
	public, err := certs.EncodePublicKeyPEM(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return Authorities{
		Cluster: newAuthority(t, "kubernetes"), Etcd: newAuthority(t, "etcd-ca"), FrontProxy: newAuthority(t, "front-proxy-ca"),
		ServiceAccountPublic: public, ServiceAccountKey: certs.EncodePrivateKeyPEM(key),
	}
}

func startedCluster(t *testing.T) (*Cluster, Machine) {
	t.Helper()
	programs := os.Getenv(programsVariable)
	if programs == "" {
		t.Skipf("%s names no directory with the programs", programsVariable)
	}
	free, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	c := New(t.Context(), Options{Programs: programs, Folder: folder, Log: testr.New(t)}, client.ObjectKey{Namespace: "p", Name: "c"})
	t.Cleanup(c.Close)
	first := Machine{
		Name: "m1", Version: "v1.34.4", Address: "10.0.0.5", Host: "127.0.0.1", Port: int32(free[0]),
		IsFirst: true, Authorities: newAuthorities(t), KubeadmConfig: fmt.Sprintf(`apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration:
  name: '{{ local_hostname }}'
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: c
controlPlaneEndpoint: 127.0.0.1:%d
kubernetesVersion: v1.34.4`, free[0]),
	}
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(folder, "p", "c", "*", "*.log"))
			for _, path := range logs {
				text, _ := os.ReadFile(path)
				t.Logf("%s: %s", path, text[max(0, len(text)-2000):])
			}
		}
	})
	return c, first
}

func boot(t *testing.T, c *Cluster, machine Machine) {
	t.Helper()
	eventually(t, "boot of "+machine.Name, func() (bool, error) { return c.Boot(t.Context(), machine) })
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: machine.Name, Labels: map[string]string{corev1.LabelOSStable: "linux"},
	}}
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods: resource.MustParse("50"),
	}
	node.Status.Capacity, node.Status.Allocatable = room, room
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = 10250
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: machine.Address}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}
	if err := c.Client().Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	c.Beat(machine.Name, []string{machine.Address}, false)
	if err := c.Settle(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}

func TestClusterOfTheRealPrograms(t *testing.T) {
	c, first := startedCluster(t)
	boot(t, c, first)
	system := func(name string) client.ObjectKey {
		return client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}
	}
	for _, name := range []string{"kubeadm-config", "kubelet-config", "coredns", "kube-proxy"} {
		if err := c.Client().Get(t.Context(), system(name), &corev1.ConfigMap{}); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "pods of kubeadm's addons and static pods", func() (bool, error) {
		pods := &corev1.PodList{}
		if err := c.Client().List(t.Context(), pods, client.InNamespace(metav1.NamespaceSystem)); err != nil {
			return false, err
		}
		running := 0
		for _, pod := range pods.Items {
			if pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if running < 7 {
			return false, fmt.Errorf("%d of %d pods run", running, len(pods.Items))
		}
		return true, nil
	})
	dns := &appsv1.Deployment{}
	if err := c.Client().Get(t.Context(), system("coredns"), dns); err != nil || ptr.Deref(dns.Spec.Replicas, 0) != 2 {
		t.Errorf("got %v, %v", dns.Spec.Replicas, err)
	}
	checkForward(t, c, first)

	second := first
	second.Name, second.Address, second.IsFirst, second.KubeadmConfig = "m2", "10.0.0.6", false, ""
	boot(t, c, second)
	removeMember(t, c, second)
	c.PowerOff("m2")
	eventually(t, "an answer of the machine that is left", func() (bool, error) {
		return c.Serves(), c.Client().Get(t.Context(), system("kubeadm-config"), &corev1.ConfigMap{})
	})
}

// removeMember does what KubeadmControlPlane does before a machine goes.
func removeMember(t *testing.T, c *Cluster, machine Machine) {
	t.Helper()
	etcd, err := c.etcdClient(c.machines[machine.Name])
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	listed, err := etcd.MemberList(t.Context())
	if err != nil || len(listed.Members) != 2 {
		t.Fatalf("got %v, %v", listed, err)
	}
	own := memberAt(listed.Members, fmt.Sprintf("https://127.0.0.1:%d", c.machines[machine.Name].ports.Peer))
	if own == nil || own.IsLearner {
		t.Fatalf("%s has no voting member: %v", machine.Name, listed.Members)
	}
	if _, err := etcd.MemberRemove(t.Context(), own.ID); err != nil {
		t.Fatal(err)
	}
}

// checkForward reaches the API server of a machine as Cluster API does: through the API.
func checkForward(t *testing.T, c *Cluster, machine Machine) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.pki.path("admin.conf"))
	if err != nil {
		t.Fatal(err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(http.MethodPost, config.Host+"/api/v1/namespaces/kube-system/pods/kube-apiserver-"+machine.Name+"/portforward", nil)
	if err != nil {
		t.Fatal(err)
	}
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, request.URL)
	stop, ready := make(chan struct{}), make(chan struct{})
	defer close(stop)
	forwarder, err := portforward.New(dialer, []string{"0:6443"}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		t.Fatal(err)
	}
	forwarded, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", forwarded[0].Local), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if name := connection.ConnectionState().PeerCertificates[0].Subject.CommonName; name != "kube-apiserver" {
		t.Errorf("got %s", name)
	}
}
