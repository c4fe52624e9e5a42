// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const etcdTimeout = 5 * time.Second

// startMember starts the etcd member of a machine: the first one of a new cluster, one that joins
// it as a learner, as kubeadm lets it, or one that is a member already.
func (c *Cluster) startMember(ctx context.Context, m *controlPlane) error {
	peers, state := []string{peerOf(m.name, m.ports.Peer)}, "new"
	if _, err := os.Stat(filepath.Join(m.folder, "etcd", "member")); err == nil {
		state = "existing"
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	} else if !m.isFirst {
		state = "existing"
		if peers, err = c.addLearner(ctx, m); err != nil {
			return fmt.Errorf("etcd member %s cannot join: %w", m.name, err)
		}
	}
	m.etcd = startProgram(c.ctx, c.log, m.folder, "etcd", false, c.etcdArguments(m, peers, state))
	return nil
}

func peerOf(name string, port int) string { return fmt.Sprintf("%s=https://127.0.0.1:%d", name, port) }

func (c *Cluster) etcdArguments(m *controlPlane, peers []string, state string) []string {
	clients := fmt.Sprintf("https://127.0.0.1:%d", m.ports.Etcd)
	peer := fmt.Sprintf("https://127.0.0.1:%d", m.ports.Peer)
	ca, certificate, key := m.pki.path(etcdCA+".crt"), m.pki.path("etcd.crt"), m.pki.path("etcd.key")
	return []string{
		c.programs("etcd"),
		"--name=" + m.name,
		"--data-dir=" + filepath.Join(m.folder, "etcd"),
		"--listen-client-urls=" + clients, "--advertise-client-urls=" + clients,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + strings.Join(peers, ","), "--initial-cluster-state=" + state,
		"--client-cert-auth", "--trusted-ca-file=" + ca, "--cert-file=" + certificate, "--key-file=" + key,
		"--peer-client-cert-auth", "--peer-trusted-ca-file=" + ca,
		"--peer-cert-file=" + certificate, "--peer-key-file=" + key,
		// What a killed process has written is there; a power cut may take it.
		"--unsafe-no-fsync", "--log-level=warn",
	}
}

// addLearner makes the machine known to the other members, and returns all of them.
func (c *Cluster) addLearner(ctx context.Context, m *controlPlane) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	etcd, err := c.etcdClient(m)
	if err != nil {
		return nil, err
	}
	defer etcd.Close()
	peer := fmt.Sprintf("https://127.0.0.1:%d", m.ports.Peer)
	listed, err := etcd.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	members := listed.Members
	if memberAt(members, peer) == nil { // an earlier try may have got this far
		added, err := etcd.MemberAddAsLearner(ctx, []string{peer})
		if err != nil {
			return nil, err
		}
		members = added.Members
	}
	var peers []string
	for _, member := range members {
		name := member.Name
		if name == "" {
			name = m.name // it has none until it has started
		}
		for _, url := range member.PeerURLs {
			peers = append(peers, name+"="+url)
		}
	}
	return peers, nil
}

func memberAt(members []*etcdserverpb.Member, peer string) *etcdserverpb.Member {
	for _, member := range members {
		for _, url := range member.PeerURLs {
			if url == peer {
				return member
			}
		}
	}
	return nil
}

// isVoter tells whether the machine's member votes; a learner that has caught up becomes a voter.
func (c *Cluster) isVoter(ctx context.Context, m *controlPlane) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	etcd, err := c.etcdClient(nil)
	if err != nil {
		return false, err
	}
	defer etcd.Close()
	listed, err := etcd.MemberList(ctx)
	if err != nil {
		return false, err
	}
	own := memberAt(listed.Members, fmt.Sprintf("https://127.0.0.1:%d", m.ports.Peer))
	if own == nil || own.Name == "" {
		return false, nil
	}
	if own.IsLearner {
		if _, err := etcd.MemberPromote(ctx, own.ID); err != nil {
			c.log.Info("etcd learner is not promoted yet", "member", m.name, "reason", err.Error())
			return false, nil
		}
	}
	return true, nil
}

// etcdClient reaches all members, but for that of one machine.
func (c *Cluster) etcdClient(without *controlPlane) (*clientv3.Client, error) {
	config := clientv3.Config{DialTimeout: etcdTimeout, Logger: zap.NewNop()}
	for _, m := range c.machines {
		if m == without || !m.etcd.runs() {
			continue
		}
		config.Endpoints = append(config.Endpoints, fmt.Sprintf("https://127.0.0.1:%d", m.ports.Etcd))
		certificate, err := pairOf(m.pki.authorities.Etcd, "machines", nil, nil)
		if err != nil {
			return nil, err
		}
		config.TLS = &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: m.pki.authorities.Etcd.pool(),
			Certificates: []tls.Certificate{certificate},
		}
	}
	if len(config.Endpoints) == 0 {
		return nil, errors.New("no member runs")
	}
	return clientv3.New(config)
}
