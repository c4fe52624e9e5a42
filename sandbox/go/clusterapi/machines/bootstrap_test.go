// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func cloudInit(kubeadm string) []byte {
	return []byte("## template: jinja\n#cloud-config\nwrite_files:\n- path: /etc/other\n  content: x\n" +
		"- path: /run/kubeadm/kubeadm-join-config.yaml\n  content: |\n" + kubeadm)
}

func TestReadRegistration(t *testing.T) {
	spot := []corev1.Taint{{Key: "spot", Value: "yes", Effect: corev1.TaintEffectNoExecute}}
	cases := map[string]struct {
		kubeadm string
		want    registration
	}{
		"labels as kubeadm v1beta4 has them, after another document": {
			"    kind: ClusterConfiguration\n    ---\n    nodeRegistration:\n      kubeletExtraArgs:\n" +
				"      - {name: cloud-provider, value: external}\n      - {name: node-labels, value: 'a=b,c/d=e'}\n",
			registration{labels: map[string]string{"a": "b", "c/d": "e"}},
		},
		"labels as kubeadm v1beta3 has them, and taints": {
			"    nodeRegistration:\n      kubeletExtraArgs: {node-labels: a=b}\n" +
				"      taints: [{key: spot, value: 'yes', effect: NoExecute}]\n",
			registration{labels: map[string]string{"a": "b"}, taints: spot},
		},
		"an empty list of taints is not the default": {
			"    nodeRegistration: {taints: []}\n",
			registration{labels: map[string]string{}, taints: []corev1.Taint{}},
		},
		"nothing is said": {"    kind: JoinConfiguration\n", registration{}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := readRegistration(cloudInit(test.kubeadm))
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %#v, %v; want %#v", got, err, test.want)
			}
		})
	}
	if _, err := readRegistration([]byte("a: [")); err == nil {
		t.Error("broken bootstrap data was accepted")
	}
}
