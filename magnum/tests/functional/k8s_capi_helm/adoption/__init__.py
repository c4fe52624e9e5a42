# SPDX-License-Identifier: Apache-2.0
"""Clusters of magnum-capi-helm, taken over and given back; and what no running cluster may see.

Two conductors share one database of Magnum, one magnum.conf and one API server: the package from
PyPI in an environment of its own, and this driver. Both are driven through Magnum's own handlers
and periodic jobs, and both run the real helm. Only OpenStack is played, from one file of facts.

``K8S_CAPI_HELM_KUBECONFIG`` is as for :mod:`magnum.tests.functional.k8s_capi_helm.envtest`;
``K8S_CAPI_HELM_PREDECESSOR`` is the Python that has magnum-capi-helm (``tox -e adoption`` sets
both).
"""
