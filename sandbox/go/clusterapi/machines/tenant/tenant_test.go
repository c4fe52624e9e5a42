// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

const initText = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration:
  name: '{{ local_hostname }}'
  kubeletExtraArgs:
  - name: provider-id
    value: 'openstack:///{{ instance_id }}'
skipPhases:
- addon/kube-proxy
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.34.4`

func TestKubeadmGetsWhatItWouldFindOnTheMachine(t *testing.T) {
	m := &controlPlane{name: "m1", address: "10.0.0.5", config: initText}
	text, skipped, err := m.kubeadmConfig()
	if err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []string{
		"name: m1", "advertiseAddress: 10.0.0.5", "containerd.sock", "openstack:///m1", "kubernetesVersion: v1.34.4",
	} {
		if !strings.Contains(string(text), wanted) {
			t.Errorf("no %q in %s", wanted, text)
		}
	}
	if len(skipped) != 1 || skipped[0] != "addon/kube-proxy" {
		t.Errorf("skipped: %v", skipped)
	}
}

func TestPhaseIsSkippedWithTheOneAboveIt(t *testing.T) {
	for _, one := range []struct {
		skipped string
		phase   []string
		want    bool
	}{
		{"addon/coredns", []string{"addon", "coredns"}, true},
		{"addon/coredns", []string{"addon", "kube-proxy"}, false},
		{"addon", []string{"addon", "kube-proxy"}, true},
		{"bootstrap-token", []string{"bootstrap-token", "--skip-token-print"}, true},
		{"upload-config", []string{"upload-config", "all"}, true},
	} {
		if got := isSkipped(one.phase, []string{"preflight", one.skipped}); got != one.want {
			t.Errorf("%v with %s skipped: %v", one.phase, one.skipped, got)
		}
	}
}

func TestKubeadmKeepsTheAddressThatIsSaid(t *testing.T) {
	said := "kind: InitConfiguration\nlocalAPIEndpoint: {advertiseAddress: 10.0.0.9}"
	m := &controlPlane{name: "m1", address: "10.0.0.5", config: said}
	text, _, err := m.kubeadmConfig()
	if err != nil || !strings.Contains(string(text), "advertiseAddress: 10.0.0.9") {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestMachineKeepsItsPorts(t *testing.T) {
	folder := t.TempDir()
	first, err := portsOf(folder)
	if err != nil || first.Etcd == first.Peer || first.Peer == first.APIServer {
		t.Fatalf("got %v, %v", first, err)
	}
	if again, err := portsOf(folder); again != first || err != nil {
		t.Errorf("got %v after %v, %v", again, first, err)
	}
}

func TestProgramEndsWhenItIsToldTo(t *testing.T) {
	folder := t.TempDir()
	p := startProgram(t.Context(), logr.Discard(), folder, "sleep", true, []string{"sleep", "60"})
	if !p.runs() {
		t.Error("it does not run")
	}
	begin := time.Now()
	p.stop()
	if took := time.Since(begin); p.runs() || took > killAfter {
		t.Errorf("runs %v after %v", p.runs(), took)
	}
}

func TestProgramThatEndsIsStartedAgain(t *testing.T) {
	folder := t.TempDir()
	again := startProgram(t.Context(), logr.Discard(), folder, "again", true, []string{"sh", "-c", "echo x"})
	once := startProgram(t.Context(), logr.Discard(), folder, "once", false, []string{"sh", "-c", "echo x"})
	defer again.stop()
	<-once.done
	deadline := time.Now().Add(10 * restartPause)
	for time.Now().Before(deadline) {
		text, _ := os.ReadFile(filepath.Join(folder, "again.log"))
		if strings.Count(string(text), "x") > 1 {
			break
		}
		time.Sleep(restartPause / 20)
	}
	text, err := os.ReadFile(filepath.Join(folder, "again.log"))
	if err != nil || strings.Count(string(text), "x") < 2 || !again.runs() {
		t.Errorf("got %q, %v, runs %v", text, err, again.runs())
	}
}

// apiServer answers /readyz with a status that can be changed.
func apiServer(t *testing.T, status *int) int {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.WriteHeader(*status)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().(*net.TCPAddr).Port
}

func TestBalancerLeadsToServersThatAreReady(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	free, err := freePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBalancer(ctx, logr.Discard(), fmt.Sprintf("127.0.0.1:%d", free[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	ready, broken := http.StatusOK, http.StatusInternalServerError
	b.add("ready", apiServer(t, &ready))
	b.add("broken", apiServer(t, &broken))
	deadline := time.Now().Add(20 * probeEvery)
	for !b.isReady("") && time.Now().Before(deadline) {
		time.Sleep(probeEvery / 20)
	}
	if !b.isReady("ready") || b.isReady("broken") {
		t.Errorf("ready %v, broken %v", b.isReady("ready"), b.isReady("broken"))
	}
	for range 4 {
		one, other := net.Pipe()
		if chosen := b.choose(one); chosen != b.backends["ready"] {
			t.Errorf("got %v", chosen)
		}
		_, _ = one.Close(), other.Close()
	}
	b.remove("ready")
	if b.isReady("") {
		t.Error("a removed server is ready")
	}
}

func TestBalancerRefusesAnAddressWhereNobodyCanListen(t *testing.T) {
	_, err := newBalancer(t.Context(), logr.Discard(), "203.0.113.5:6443")
	if err == nil || !strings.Contains(err.Error(), "give the cluster a floating IP") {
		t.Errorf("got %v", err)
	}
}

func TestServicesAreThoseOfTheCluster(t *testing.T) {
	for _, one := range []struct {
		given, wanted []string
		address       string
	}{
		{nil, []string{"10.96.0.0/12"}, "10.96.0.1"},
		{[]string{"172.24.0.0/13"}, []string{"172.24.0.0/13"}, "172.24.0.1"},
		{[]string{"fd00::/108", "172.24.0.0/13"}, []string{"fd00::/108", "172.24.0.0/13"}, "fd00::1"},
	} {
		found := servicesOf(Machine{Services: one.given})
		if !slices.Equal(found, one.wanted) || virtualIP(found) != one.address {
			t.Errorf("%v: %v, %s", one.given, found, virtualIP(found))
		}
	}
}
