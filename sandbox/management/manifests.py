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
import re
from typing import Any

import yaml

from sandbox.management import gomodules
from sandbox.management.releases import Providers, Release
from sandbox.state import SandboxError

Document = dict[str, Any]

CRD = "CustomResourceDefinition"
ADDONS = Path(__file__).parent.parent / "addons" / "crds"


# CAPO watches Images of the OpenStack resource controller and nothing else of it; each CRD less
# saves memory in kube-apiserver. Its module got another path with its second major version.
_RESOURCE_CONTROLLER = re.compile(
    r"^\s*(github\.com/k-orc/openstack-resource-controller\S*) v", re.M
)


@dataclasses.dataclass(frozen=True)
class Source:
    """A directory of manifests of one provider.

    :ivar manager: name of the program that answers its webhooks.
    :ivar release: whose module it is in.
    :ivar config: directory in that module.
    """

    manager: str
    release: Release
    config: str


def sources(providers: Providers) -> tuple[Source, ...]:
    """Where the manifests of these providers are."""
    capi = providers.capi
    return (
        Source("capi-core", capi, f"{capi.core_path}/config".lstrip("/")),
        Source("capi-bootstrap-kubeadm", capi, "bootstrap/kubeadm/config"),
        Source("capi-controlplane-kubeadm", capi, "controlplane/kubeadm/config"),
        Source("capo", providers.capo, "config"),
    )


def digest(providers: Providers) -> str:
    """Short digest of everything that decides what :func:`write` writes."""
    parts = [str(sources(providers)), Path(__file__).read_text()]
    for release in (providers.capi, providers.capo):
        parts += release.pins()
    parts += [path.read_text() for path in sorted(ADDONS.glob("*.yaml"))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def write(target: Path, providers: Providers) -> None:
    """Read all manifests from the module cache into a JSON file.

    :raises SandboxError: a module cannot be downloaded.
    """
    found = []
    for source in sources(providers):
        for document in read(source.release.directory() / source.config):
            found.append({"manager": source.manager, "document": document})
    others = read(_resource_controller(providers.capo) / "config", "_images")
    for path in sorted(ADDONS.glob("*.yaml")):
        others += _load(path)
    found += [{"manager": "", "document": document} for document in others]
    draft = target.with_name(f".{target.name}.draft")
    draft.write_text(json.dumps(found))
    draft.replace(target)


def _resource_controller(capo: Release) -> Path:
    """The module of the OpenStack resource controller that CAPO was made with."""
    root = capo.directory()
    found = _RESOURCE_CONTROLLER.search((root / "go.mod").read_text())
    if found is None:
        raise SandboxError(f"{capo.dependency} needs no OpenStack resource controller")
    return gomodules.directory(root, found[1])


def read(config: Path, only: str = "") -> list[Document]:
    """CRDs with the contract labels of their kustomization, and webhook configurations.

    :param config: directory with ``crd/bases`` and perhaps ``webhook/manifests.yaml``.
    """
    (kustomization,) = _load(config / "crd" / "kustomization.yaml")
    # Under the older of kustomize's two names, and without a list, in CAPO 0.12.
    labels: dict[str, str] = dict(kustomization.get("commonLabels", {}))
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
