# SPDX-License-Identifier: Apache-2.0
"""Ports on a real kube-apiserver and a real Helm, which the environment has to provide.

``K8S_CAPI_HELM_KUBECONFIG`` is the kubeconfig of an administrator of a throw-away API server;
``HELM`` is a helm to use, else the one in ``PATH``. Without them the tests fail and say so.
"""

import os
import shutil


def kubeconfig() -> str:
    """The kubeconfig of the throw-away API server."""
    path = os.environ.get("K8S_CAPI_HELM_KUBECONFIG", "")
    if not path:
        raise AssertionError(
            "K8S_CAPI_HELM_KUBECONFIG is not set: these tests need the kubeconfig of an "
            "administrator of a throw-away kube-apiserver."
        )
    return path


def helm() -> str:
    """The helm binary to test with."""
    found = shutil.which(os.environ.get("HELM") or "helm")
    if found is None:
        raise AssertionError(
            f"There is no helm at '{os.environ.get('HELM') or 'helm'}': set HELM or PATH."
        )
    return found
