// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// Only the port-forwards, logs and proxies of the API server go this way, to kubelet's stand-in.
// https://kubernetes.io/docs/tasks/extend-kubernetes/setup-konnectivity/
const egress = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: "%s"
`

// issuer is kubeadm's for the default DNS domain.
const issuer = "https://kubernetes.default.svc.cluster.local"

// apiServerArguments follow getAPIServerCommand of kubeadm, with the paths and ports of this host.
// https://github.com/kubernetes/kubernetes/blob/v1.34.4/cmd/kubeadm/app/phases/controlplane/manifests.go
func (c *Cluster) apiServerArguments(m *controlPlane) ([]string, error) {
	selector := filepath.Join(m.folder, "egress.yaml")
	if err := os.WriteFile(selector, fmt.Appendf(nil, egress, c.kubelet.address()), 0o600); err != nil {
		return nil, err
	}
	arguments := []string{
		c.programs("kube-apiserver"),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", m.ports.APIServer),
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", m.ports.Etcd),
		"--etcd-cafile=" + m.pki.path(etcdCA+".crt"),
		"--etcd-certfile=" + m.pki.path("apiserver-etcd-client.crt"),
		"--etcd-keyfile=" + m.pki.path("apiserver-etcd-client.key"),
		"--cert-dir=" + m.pki.folder,
		"--tls-cert-file=" + m.pki.path("apiserver.crt"),
		"--tls-private-key-file=" + m.pki.path("apiserver.key"),
		"--client-ca-file=" + m.pki.path(clusterCA+".crt"),
		"--kubelet-client-certificate=" + m.pki.path("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + m.pki.path("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
		"--requestheader-client-ca-file=" + m.pki.path(frontProxyCA+".crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + m.pki.path("front-proxy-client.crt"),
		"--proxy-client-key-file=" + m.pki.path("front-proxy-client.key"),
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + m.pki.path("sa.pub"),
		"--service-account-signing-key-file=" + m.pki.path("sa.key"),
		"--service-cluster-ip-range=" + strings.Join(m.services, ","),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth=true", "--allow-privileged=true",
		"--egress-selector-config-file=" + selector, "--profiling=false",
	}
	if m.address != "" {
		arguments = append(arguments, "--advertise-address="+m.address)
	} else {
		arguments = append(arguments, "--endpoint-reconciler-type=none")
	}
	return arguments, nil
}

// controllerManagerArguments run all controllers: what a cluster does by itself is real.
func (c *Cluster) controllerManagerArguments() []string {
	kubeconfig := c.pki.path("controller-manager.conf")
	return []string{
		c.programs("kube-controller-manager"),
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--controllers=*,bootstrapsigner,tokencleaner", "--use-service-account-credentials=true",
		"--root-ca-file=" + c.pki.path(clusterCA+".crt"),
		"--client-ca-file=" + c.pki.path(clusterCA+".crt"),
		"--cluster-signing-cert-file=" + c.pki.path(clusterCA+".crt"),
		"--cluster-signing-key-file=" + c.pki.path(clusterCA+".key"),
		"--service-account-private-key-file=" + c.pki.path("sa.key"),
		"--profiling=false",
	}
}

func (c *Cluster) schedulerArguments() []string {
	kubeconfig := c.pki.path("scheduler.conf")
	return []string{
		c.programs("kube-scheduler"),
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--profiling=false",
	}
}

// serviceRange is kubeadm's default.
const serviceRange = "10.96.0.0/12"

func servicesOf(machine Machine) []string {
	if len(machine.Services) == 0 {
		return []string{serviceRange}
	}
	return machine.Services
}

// virtualIP is the address of the Service "kubernetes", the first one of the first range.
func virtualIP(services []string) string {
	prefix, err := netip.ParsePrefix(services[0])
	if err != nil {
		return "" // kube-apiserver says what is wrong with it
	}
	return prefix.Masked().Addr().Next().String()
}
