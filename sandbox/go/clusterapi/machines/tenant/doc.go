// SPDX-License-Identifier: Apache-2.0

// Package tenant runs the control plane of tenants' clusters with the real programs: an etcd member
// and a kube-apiserver for each control-plane machine, one kube-controller-manager and one
// kube-scheduler for each cluster, and kubeadm's own phases for the objects that it makes.
//
// Played are the balancer in front of the API servers, and kubelet: Node, Lease, mirror pods and the
// status of pods are written as kubelet writes them, and its port for requests of the API server
// answers, but no container ever runs. A pod that is bound to a node is Running and Ready at once,
// one of a Job has Succeeded, and one that is deleted ends.
package tenant
