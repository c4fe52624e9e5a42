// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	ignition "github.com/flatcar/ignition/config/v2_3"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// checkIgnition lets Flatcar's Ignition parse and validate data that is for it. It only warns of a key
// that it does not know, as on a machine: Cluster API's transpiler writes an empty one.
func checkIgnition(made bootstrapData) error {
	if made.Format != string(bootstrapv1.Ignition) {
		return nil
	}
	_, found, err := ignition.Parse([]byte(made.Data))
	if err != nil || found.IsFatal() {
		return fmt.Errorf("Ignition does not take the data of the %s machine: %v %s", made.Kind, err, found.String())
	}
	return nil
}
