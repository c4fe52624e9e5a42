// SPDX-License-Identifier: Apache-2.0

// Command bootstrapdata prints the bootstrap data of clusters: what the machines of rendered objects
// are given to set themselves up with.
//
// Real are the conversions of the API versions, what the control plane provider makes of a
// KubeadmControlPlane, and the bootstrap provider's reconciler with its cloud-init and Ignition.
// There is no API server: their client keeps the objects in memory.
//
// It reads a JSON object, whose values are lists of objects of one cluster each, and prints one
// with the same keys: bootstrap data of each kind of machine, or an error.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// result is what became of one cluster.
type result struct {
	Machines []bootstrapData `json:"machines,omitempty"`
	Error    string          `json:"error,omitempty"`
}

func main() {
	ctrl.SetLogger(logr.Discard())
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bootstrapdata:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var clusters map[string][]json.RawMessage
	if err := json.NewDecoder(os.Stdin).Decode(&clusters); err != nil {
		return fmt.Errorf("the input is not a JSON object of lists of objects: %w", err)
	}
	results := map[string]result{}
	for name, documents := range clusters {
		machines, err := ofCluster(ctx, documents)
		if err != nil {
			results[name] = result{Error: err.Error()}
			continue
		}
		results[name] = result{Machines: machines}
	}
	return json.NewEncoder(os.Stdout).Encode(results)
}

func ofCluster(ctx context.Context, documents []json.RawMessage) ([]bootstrapData, error) {
	read := objects{}
	for _, document := range documents {
		if err := read.add(ctx, document); err != nil {
			return nil, err
		}
	}
	if read.cluster == nil || read.controlPlane == nil {
		return nil, fmt.Errorf("there is no Cluster or no KubeadmControlPlane")
	}
	provider, err := newProvider(ctx, &read)
	if err != nil {
		return nil, err
	}
	return provider.everyMachine(ctx)
}
