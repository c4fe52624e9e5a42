# SPDX-License-Identifier: Apache-2.0
"""Apply CRDs, webhook configurations and roles to the management cluster."""

import hashlib
import json
from pathlib import Path

import yaml

from sandbox.management import addon_provider, binaries, controllers, manifests
from sandbox.management.api import Api
from sandbox.management.connection import Document
from sandbox.management.pki import Pki
from sandbox.state import SandboxError, State

#: What an operator applies for the driver; the sandbox applies the very same file.
DRIVER_RBAC = (
    Path(__file__).parents[2] / "magnum" / "drivers" / "k8s_capi_helm" / "manifests" / "rbac.yaml"
)


def install(state: State, place: Path, api: Api, *, webhooks: bool = True) -> int:
    """Apply everything that is not there yet in this form, and wait until the CRDs are served.

    :param webhooks: False leaves admission and conversion webhooks away.
    :returns: number of applied objects, 0 when all were there.
    :raises SandboxError: the API server refuses one, or does not serve a CRD in time.
    """
    documents = wanted(state, place, webhooks=webhooks)
    mark = hashlib.sha256(json.dumps(documents).encode()).hexdigest()
    # Beside the data of etcd, so that it goes when they go.
    applied = state.path("management", "applied")
    if applied.exists() and applied.read_text() == mark:
        return 0
    crds = [document for document in documents if document["kind"] == manifests.CRD]
    api.apply_all(crds)
    api.wait_established(document["metadata"]["name"] for document in crds)
    api.apply_all(document for document in documents if document["kind"] != manifests.CRD)
    applied.write_text(mark)
    return len(documents)


def wanted(state: State, place: Path, *, webhooks: bool = True) -> list[Document]:
    """All objects that the management cluster must have before its controllers start."""
    path = place / binaries.MANIFESTS
    try:
        found: list[Document] = json.loads(path.read_text())
    except OSError as error:
        raise SandboxError(f"{path} cannot be read ({error.strerror}); run `sandbox up`") from error
    addresses = {
        manager: webhook_address(state, manager) if webhooks else ""
        for manager in controllers.NAMES
    }
    documents = manifests.localize(found, addresses, Pki(state).authority.read_bytes())
    if addon_provider.chosen(state) == addon_provider.REAL:  # it applies its own, and no others
        documents = [one for one in documents if not _is_of_addons(one)]
    if not webhooks:
        documents = [document for document in documents if "webhooks" not in document]
    namespace = {"apiVersion": "v1", "kind": "Namespace"}
    documents.append({**namespace, "metadata": {"name": controllers.NAMESPACE}})
    return documents + rbac()


def webhook_address(state: State, manager: str) -> str:
    """Base URL of a manager's webhook server."""
    return f"https://127.0.0.1:{state.port(f'{manager}-webhook')}"


def _is_of_addons(document: Document) -> bool:
    if document["kind"] != manifests.CRD:
        return False
    return str(document["spec"]["group"]) == addon_provider.GROUP


def rbac() -> list[Document]:
    """The roles of the driver's user, from the manifest that the driver ships."""
    return [document for document in yaml.safe_load_all(DRIVER_RBAC.read_text()) if document]
