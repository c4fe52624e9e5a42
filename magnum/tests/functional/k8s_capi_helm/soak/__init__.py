# SPDX-License-Identifier: Apache-2.0
"""Half an hour of random requests about fifty clusters, and what a conductor holds afterwards.

The conductor is a process with Magnum's own handlers and periodic jobs, this driver, its watches,
the real helm and a real kube-apiserver; OpenStack and the controllers are played as for the kills.
``K8S_CAPI_HELM_SOAK_MINUTES`` (30) and ``K8S_CAPI_HELM_SOAK_CLUSTERS`` (50) say how much.
"""
