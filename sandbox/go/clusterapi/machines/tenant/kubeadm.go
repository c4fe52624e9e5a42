// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

const kubeadmTimeout = time.Minute

// phases are those of `kubeadm init` that talk to the API server; what the others do, the machine
// has done already.
var phases = [][]string{
	{"upload-config", "all"}, {"bootstrap-token", "--skip-token-print"}, {"addon", "coredns"}, {"addon", "kube-proxy"},
}

// hostFact is what cloud-init fills in: the machine's name, wherever the charts ask for a fact.
var hostFact = regexp.MustCompile(`'\{\{[^}]*\}\}'|\{\{[^}]*\}\}`)

// runPhases lets the real kubeadm make its objects, with the configuration of the machine itself.
func (c *Cluster) runPhases(ctx context.Context, m *controlPlane) error {
	path, done := filepath.Join(m.folder, "kubeadm.yaml"), filepath.Join(m.folder, "kubeadm.done")
	if _, err := os.Stat(done); err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	text, skipped, err := m.kubeadmConfig()
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	for _, phase := range phases {
		if isSkipped(phase, skipped) {
			continue
		}
		arguments := append([]string{"init", "phase"}, phase...)
		arguments = append(arguments, "--config="+path, "--kubeconfig="+c.pki.path("admin.conf"))
		if err := c.kubeadm(ctx, m, arguments); err != nil {
			return err
		}
	}
	return os.WriteFile(done, nil, 0o600)
}

// isSkipped tells whether a phase, or the one that it is a part of, is skipped.
func isSkipped(phase, skipped []string) bool {
	return slices.Contains(skipped, phase[0]) || slices.Contains(skipped, strings.Join(phase, "/"))
}

func (c *Cluster) kubeadm(ctx context.Context, m *controlPlane, arguments []string) error {
	ctx, cancel := context.WithTimeout(ctx, kubeadmTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, c.programs("kubeadm"), arguments...)
	output, err := command.CombinedOutput()
	_ = os.WriteFile(filepath.Join(m.folder, "kubeadm.log"), output, 0o600) // for whoever looks
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		return fmt.Errorf("kubeadm %s: %w: %s", strings.Join(arguments[:4], " "), err, strings.Join(lines[max(0, len(lines)-3):], "; "))
	}
	return nil
}

// kubeadmConfig is the machine's configuration with its name, and with what kubeadm would find out
// on the machine itself and cannot find out here; with it come the phases that it skips.
func (m *controlPlane) kubeadmConfig() ([]byte, []string, error) {
	var skipped []string
	text := hostFact.ReplaceAllString(m.config, m.name)
	documents := strings.Split(text, "\n---\n")
	for i, document := range documents {
		var content map[string]any
		if err := yaml.Unmarshal([]byte(document), &content); err != nil {
			return nil, nil, fmt.Errorf("kubeadm's configuration of %s: %w", m.name, err)
		}
		if content["kind"] != "InitConfiguration" {
			continue
		}
		registration := mapAt(content, "nodeRegistration")
		registration["name"] = m.name
		if registration["criSocket"] == nil || registration["criSocket"] == "" {
			registration["criSocket"] = "unix:///var/run/containerd/containerd.sock"
		}
		if endpoint := mapAt(content, "localAPIEndpoint"); m.address != "" && endpoint["advertiseAddress"] == nil {
			endpoint["advertiseAddress"] = m.address
		}
		if phases, is := content["skipPhases"].([]any); is {
			for _, phase := range phases {
				skipped = append(skipped, fmt.Sprint(phase))
			}
		}
		encoded, err := yaml.Marshal(content)
		if err != nil {
			return nil, nil, err
		}
		documents[i] = string(bytes.TrimSpace(encoded))
	}
	return []byte(strings.Join(documents, "\n---\n")), skipped, nil
}

func mapAt(content map[string]any, key string) map[string]any {
	found, _ := content[key].(map[string]any)
	if found == nil {
		found = map[string]any{}
		content[key] = found
	}
	return found
}
