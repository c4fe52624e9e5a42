// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// What can be wrong with a machine: keys of the ConfigMap default/machines-faults. The value is a
// regular expression on the machine's name.
const (
	noNode       = "no-node"       // kubeadm never ends
	notReady     = "not-ready"     // kubelet falls silent
	wrongKubelet = "wrong-kubelet" // the node reports an old kubelet
)

type faults map[string]*regexp.Regexp

// hit tells whether the fault is on for a machine.
func (f faults) hit(fault, machine string) bool {
	return f[fault] != nil && f[fault].MatchString(machine)
}

func (p *player) faults(ctx context.Context) (faults, error) {
	config := &corev1.ConfigMap{}
	if err := p.Get(ctx, faultsKey, config); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	known := faults{}
	for name, text := range config.Data {
		pattern, err := regexp.Compile(text)
		if err != nil || text == "" {
			log.FromContext(ctx).Info("fault ignored: its value is no regular expression", "fault", name, "value", text)
			continue
		}
		known[name] = pattern
	}
	return known, nil
}

// addons tells which of the addons that a node waits for run in a cluster.
type addons struct {
	cloudController bool // gives nodes their providerID
	network         bool // lets nodes become Ready
}

// chartRoles are the charts, by spec.chart.name of a HelmRelease, that a node waits for.
var chartRoles = map[string]func(*addons){
	"openstack-cloud-controller-manager": func(a *addons) { a.cloudController = true },
	"tigera-operator":                    func(a *addons) { a.network = true },
	"cilium":                             func(a *addons) { a.network = true },
}

// addons reads what the addon provider says of a cluster's HelmReleases.
func (p *player) addons(ctx context.Context, cluster client.ObjectKey) (addons, error) {
	releases := listOf(helmReleaseKind)
	if err := p.List(ctx, releases, client.InNamespace(cluster.Namespace)); err != nil {
		return addons{}, err
	}
	return runningAddons(releases.Items, cluster.Name), nil
}

func runningAddons(releases []unstructured.Unstructured, cluster string) addons {
	var running addons
	for _, release := range releases {
		text := func(path ...string) string {
			value, _, _ := unstructured.NestedString(release.Object, path...)
			return value
		}
		mark := chartRoles[text("spec", "chart", "name")]
		if mark != nil && text("spec", "clusterName") == cluster && installed(text("status", "phase")) {
			mark(&running)
		}
	}
	return running
}

// installed: an addon that is being upgraded keeps running in its old version.
func installed(phase string) bool {
	return phase == "Deployed" || phase == "Upgrading"
}
