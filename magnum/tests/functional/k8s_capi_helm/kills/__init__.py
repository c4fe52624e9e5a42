# SPDX-License-Identifier: Apache-2.0
"""Conductors that are killed at random moments, and what their successors make of it.

A conductor is a process: Magnum's own handlers and periodic jobs, this driver, the real helm and a
real kube-apiserver. OpenStack is played, from a file that outlives the conductor; and what Cluster
API would have made by now is made up when it is read. ``K8S_CAPI_HELM_KILLS`` is how many kills
there are to be (40), and ``K8S_CAPI_HELM_SEED`` what is drawn by lot.
"""
