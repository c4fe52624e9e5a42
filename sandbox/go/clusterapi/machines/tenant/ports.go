// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
)

// ports are those of a control-plane machine on 127.0.0.1. An etcd member cannot get another one.
type ports struct {
	Etcd, Peer, APIServer int
}

// portsOf are those that the machine has had before, or else free ones.
func portsOf(folder string) (ports, error) {
	var found ports
	path := filepath.Join(folder, "ports.json")
	text, err := os.ReadFile(path)
	if err == nil {
		return found, json.Unmarshal(text, &found)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return found, err
	}
	free, err := freePorts(3)
	if err != nil {
		return found, err
	}
	found = ports{Etcd: free[0], Peer: free[1], APIServer: free[2]}
	if text, err = json.Marshal(found); err != nil {
		return found, err
	}
	return found, os.WriteFile(path, text, 0o600)
}

// freePorts are different ones on which nobody listens.
func freePorts(count int) ([]int, error) {
	var found []int
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close() // kept until the end, so that no number comes twice
		found = append(found, listener.Addr().(*net.TCPAddr).Port)
	}
	return found, nil
}
