// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/util/certs"
)

// Authority is one of the CAs that Cluster API has made for a cluster.
type Authority struct {
	Certificate *x509.Certificate
	Key         crypto.Signer
}

// Authorities are all keys of a cluster that kubeadm finds on its machines.
type Authorities struct {
	Cluster, Etcd, FrontProxy               Authority
	ServiceAccountPublic, ServiceAccountKey []byte // PEM
}

const (
	clusterCA    = "ca"
	etcdCA       = "etcd-ca"
	frontProxyCA = "front-proxy-ca"
)

// pki writes keys and certificates into a folder.
type pki struct {
	folder      string
	authorities Authorities
}

// newPKI writes what Cluster API has made.
func newPKI(folder string, authorities Authorities) (pki, error) {
	made := pki{folder, authorities}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return made, err
	}
	for name, authority := range map[string]Authority{
		clusterCA: authorities.Cluster, etcdCA: authorities.Etcd, frontProxyCA: authorities.FrontProxy,
	} {
		if err := made.write(name, authority.Certificate, authority.Key); err != nil {
			return made, err
		}
	}
	if err := os.WriteFile(made.path("sa.pub"), authorities.ServiceAccountPublic, 0o600); err != nil {
		return made, err
	}
	return made, os.WriteFile(made.path("sa.key"), authorities.ServiceAccountKey, 0o600)
}

func (p pki) path(name string) string { return filepath.Join(p.folder, name) }

func (p pki) write(name string, certificate *x509.Certificate, key crypto.Signer) error {
	encoded, err := certs.EncodePrivateKeyPEMFromSigner(key)
	if err != nil {
		return fmt.Errorf("key of %s: %w", name, err)
	}
	if err := os.WriteFile(p.path(name+".key"), encoded, 0o600); err != nil {
		return err
	}
	return os.WriteFile(p.path(name+".crt"), certs.EncodeCertPEM(certificate), 0o600)
}

// sign makes a key and a certificate; names are DNS names or addresses of a server.
func sign(ca Authority, name string, groups, names []string) (*x509.Certificate, crypto.Signer, error) {
	key, err := certs.NewSigner(bootstrapv1.EncryptionAlgorithmECDSAP256)
	if err != nil {
		return nil, nil, err
	}
	config := certs.Config{
		CommonName: name, Organization: groups,
		Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, one := range append([]string{"localhost", "127.0.0.1"}, names...) {
		if ip := net.ParseIP(one); ip != nil {
			config.AltNames.IPs = append(config.AltNames.IPs, ip)
		} else {
			config.AltNames.DNSNames = append(config.AltNames.DNSNames, one)
		}
	}
	certificate, err := config.NewSignedCert(key, ca.Certificate, ca.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("certificate of %s: %w", name, err)
	}
	return certificate, key, nil
}

// pair signs and writes a certificate.
func (p pki) pair(file string, ca Authority, name string, groups, names []string) error {
	certificate, key, err := sign(ca, name, groups, names)
	if err != nil {
		return err
	}
	return p.write(file, certificate, key)
}

// pairOf signs a certificate that is kept in memory.
func pairOf(ca Authority, name string, groups, names []string) (tls.Certificate, error) {
	certificate, key, err := sign(ca, name, groups, names)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}, nil
}

func (a Authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Certificate)
	return pool
}

// kubeconfig writes one for a user, by a certificate.
func (p pki) kubeconfig(file, server, user string, groups ...string) error {
	certificate, key, err := sign(p.authorities.Cluster, user, groups, nil)
	if err != nil {
		return err
	}
	encoded, err := certs.EncodePrivateKeyPEMFromSigner(key)
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["tenant"] = &clientcmdapi.Cluster{
		Server: server, CertificateAuthorityData: certs.EncodeCertPEM(p.authorities.Cluster.Certificate),
	}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{
		ClientCertificateData: certs.EncodeCertPEM(certificate), ClientKeyData: encoded,
	}
	config.Contexts["tenant"] = &clientcmdapi.Context{Cluster: "tenant", AuthInfo: user}
	config.CurrentContext = "tenant"
	return clientcmd.WriteToFile(*config, p.path(file))
}
