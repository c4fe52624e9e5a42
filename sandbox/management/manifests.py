# SPDX-License-Identifier: Apache-2.0
"""CRDs and webhook configurations of Cluster API and CAPO from their modules.

They are read once, when the programs are built, and kept as JSON; :func:`localize` makes them fit a
sandbox, where a webhook is an address on loopback instead of a Service.
"""

import base64
import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import yaml

from sandbox.management import gomodules

Document = dict[str, Any]

CRD = "CustomResourceDefinition"
ADDONS = Path(__file__).parent.parent / "addons" / "crds"


@dataclasses.dataclass(frozen=True)
class Source:
    """One provider: the directory ``config`` of its module.

    :ivar manager: name of the program that answers its webhooks; empty when it has none.
    :ivar module: directory below sandbox/go.
    :ivar dependency: path of the Go module.
    :ivar config: directory in that module.
    :ivar only: take only files whose name ends so, before .yaml.
    """

    manager: str
    module: str
    dependency: str
    config: str = "config"
    only: str = ""


SOURCES = (
    Source("capi-core", "clusterapi", "sigs.k8s.io/cluster-api", "core/config"),
    Source(
        "capi-bootstrap-kubeadm",
        "clusterapi",
        "sigs.k8s.io/cluster-api",
        "bootstrap/kubeadm/config",
    ),
    Source(
        "capi-controlplane-kubeadm",
        "clusterapi",
        "sigs.k8s.io/cluster-api",
        "controlplane/kubeadm/config",
    ),
    Source("capo", "capo", "sigs.k8s.io/cluster-api-provider-openstack"),
    # CAPO watches Images of the OpenStack resource controller and nothing else of it; each CRD
    # less saves memory in kube-apiserver.
    Source("", "capo", "github.com/k-orc/openstack-resource-controller/v2", only="_images"),
)


def digest() -> str:
    """Short digest of everything that decides what :func:`write` writes."""
    parts = [str(SOURCES), Path(__file__).read_text()]
    for module in sorted({source.module for source in SOURCES}):
        parts += gomodules.contents(module)
    parts += [path.read_text() for path in sorted(ADDONS.glob("*.yaml"))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def write(target: Path) -> None:
    """Read all manifests from the module cache into a JSON file.

    :raises SandboxError: a module cannot be downloaded.
    """
    found = []
    for source in SOURCES:
        root = gomodules.directory(source.module, source.dependency) / source.config
        for document in read(root, source.only):
            found.append({"manager": source.manager, "document": document})
    for path in sorted(ADDONS.glob("*.yaml")):
        found += [{"manager": "", "document": document} for document in _load(path)]
    draft = target.with_name(f".{target.name}.draft")
    draft.write_text(json.dumps(found))
    draft.replace(target)


def read(config: Path, only: str = "") -> list[Document]:
    """CRDs with the contract labels of their kustomization, and webhook configurations.

    :param config: directory with ``crd/bases`` and perhaps ``webhook/manifests.yaml``.
    """
    (kustomization,) = _load(config / "crd" / "kustomization.yaml")
    labels: dict[str, str] = {}
    for entry in kustomization.get("labels", []):
        labels |= entry["pairs"]
    documents = []
    for path in sorted((config / "crd" / "bases").glob(f"*{only}.yaml")):
        for document in _load(path):
            document["metadata"].setdefault("labels", {}).update(labels)
            document.pop("status", None)
            documents.append(document)
    webhooks = config / "webhook" / "manifests.yaml"
    if webhooks.exists():
        for document in _load(webhooks):
            # Every provider calls its own the same; the name is made unique by localize.
            documents.append(document)
    return documents


def localize(found: list[Document], addresses: dict[str, str], authority: bytes) -> list[Document]:
    """The manifests for one sandbox.

    :param found: what :func:`write` wrote.
    :param addresses: base URL of each manager's webhook server, by the manager's name.
    :param authority: PEM certificate of the CA that signed the webhook servers' certificate.
    """
    bundle = base64.b64encode(authority).decode()
    documents = []
    for entry in found:
        document = json.loads(json.dumps(entry["document"]))
        base = addresses.get(entry["manager"], "")
        if document["kind"] == CRD:
            if base and len(document["spec"]["versions"]) > 1:
                document["spec"]["conversion"] = _conversion(f"{base}/convert", bundle)
        else:
            document["metadata"]["name"] += f"-{entry['manager']}"
            for webhook in document["webhooks"]:
                path = webhook["clientConfig"]["service"]["path"]
                webhook["clientConfig"] = {"url": base + path, "caBundle": bundle}
        documents.append(document)
    return documents


def _conversion(url: str, bundle: str) -> Document:
    client = {"url": url, "caBundle": bundle}
    return {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client},
    }


def _load(path: Path) -> list[Document]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with path.open() as text:
        return [document for document in yaml.load_all(text, Loader=loader) if document]
