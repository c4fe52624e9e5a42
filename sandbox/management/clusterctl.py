# SPDX-License-Identifier: Apache-2.0
"""The real clusterctl, on a local repository of the releases that a sandbox has.

The repository has what clusterctl installs of each provider: its Namespace, its CRDs and its
webhook configurations, as the release's module has them and with the addresses of the sandbox; and
a Deployment without replicas, because managers run as processes. cert-manager is not there either:
certificates are the sandbox's own, and clusterctl is told that somebody else provides it, which it
proves by an Issuer and a Certificate (played: two CRDs that take anything).
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
import subprocess

import yaml

from sandbox import progress
from sandbox.management import binaries, crds, manifests, server
from sandbox.management.api import Api
from sandbox.management.binaries import Program
from sandbox.management.connection import Document
from sandbox.management.leader_leases import LEASES
from sandbox.management.pki import Pki, write_private
from sandbox.management.releases import MODULE, Providers, Release
from sandbox.state import SandboxError, State

TIMEOUT = 300.0
#: Managers and what clusterctl calls their providers: type, name, and option of init and upgrade.
PROVIDERS = {
    "capi-core": ("CoreProvider", "cluster-api", "core"),
    "capi-bootstrap-kubeadm": ("BootstrapProvider", "kubeadm", "bootstrap"),
    "capi-controlplane-kubeadm": ("ControlPlaneProvider", "kubeadm", "control-plane"),
    "capo": ("InfrastructureProvider", "openstack", "infrastructure"),
}
_CERT_MANAGER = {"Issuer": "issuers", "Certificate": "certificates"}


@dataclasses.dataclass(frozen=True)
class Component:
    """A provider as clusterctl knows it.

    :ivar manager: name of its manager.
    """

    manager: str
    release: Release

    @property
    def label(self) -> str:
        """Its directory in a repository: openstack is infrastructure-openstack, the core is not."""
        kind, name, option = PROVIDERS[self.manager]
        return name if kind == "CoreProvider" else f"{option}-{name}"

    @property
    def file(self) -> str:
        """Name of the file with its objects."""
        return f"{PROVIDERS[self.manager][2]}-components.yaml"

    @property
    def namespace(self) -> str:
        """Where its manager would run."""
        return LEASES[self.manager][0]

    @property
    def choice(self) -> str:
        """The provider and its version, as an option of clusterctl."""
        _, name, option = PROVIDERS[self.manager]
        return f"--{option}={name}:v{self.release.version}"

    @property
    def upgrade(self) -> str:
        """The same for an upgrade, which wants to know in which namespace."""
        _, name, option = PROVIDERS[self.manager]
        return f"--{option}={self.namespace}/{name}:v{self.release.version}"


def program() -> Program:
    """clusterctl of the newest release, which serves all that a sandbox can have."""
    release = Providers.capi
    flags = f"-X {release.module}/version.gitVersion=v{release.version}"
    return Program(
        "clusterctl",
        MODULE,
        f"{release.module}/cmd/clusterctl",
        release.version,
        ("version", "--output=short"),
        flags,
        release=release,
    )


def components(providers: Providers) -> list[Component]:
    """All providers of a management cluster."""
    return [
        Component(manager, providers.capo if manager == "capo" else providers.capi)
        for manager in PROVIDERS
    ]


def initialize(state: State, providers: Providers, *, webhooks: bool = True) -> None:
    """``clusterctl init``: what runs becomes known to clusterctl, and movable.

    :param webhooks: False for a management cluster without managers.
    :raises SandboxError: clusterctl refuses.
    """
    Api(server.kubeconfig(state)).apply_all(_cert_manager())
    Api(server.kubeconfig(state)).wait_established(
        f"{plural}.cert-manager.io" for plural in _CERT_MANAGER.values()
    )
    with progress.step("clusterctl init (real)"):
        chosen = [one.choice for one in components(providers)]
        run(state, providers, "init", *chosen, webhooks=webhooks)


def upgrade(state: State, providers: Providers) -> str:
    """``clusterctl upgrade apply`` to these providers; the managers are the caller's to exchange.

    :returns: what clusterctl says.
    :raises SandboxError: clusterctl refuses.
    """
    chosen = [one.upgrade for one in components(providers)]
    return run(state, providers, "upgrade", "apply", *chosen)


def move(source: State, target: State, namespace: str) -> str:
    """``clusterctl move`` of a namespace.

    :returns: what clusterctl says.
    :raises SandboxError: clusterctl refuses.
    """
    option = f"--to-kubeconfig={server.kubeconfig(target)}"
    providers = Providers.of(source)
    return run(source, providers, "move", option, f"--namespace={namespace}", "-v=2")


def run(state: State, providers: Providers, *arguments: str, webhooks: bool = True) -> str:
    """Run clusterctl on a management cluster, and return what it says.

    :param providers: what its repository has, besides the sandbox's present ones.
    :param webhooks: whether its repository has webhooks.
    :raises SandboxError: it fails, with its last lines.
    """
    configuration = repository(state, providers, webhooks=webhooks)
    command = [
        str(binaries.one(program())),
        *arguments,
        f"--kubeconfig={server.kubeconfig(state)}",
        f"--config={configuration}",
    ]
    environment = {
        **os.environ,
        "CLUSTERCTL_DISABLE_VERSIONCHECK": "true",
        "XDG_CONFIG_HOME": str(configuration.parent),
        "XDG_CACHE_HOME": str(configuration.parent),
        "NO_PROXY": "127.0.0.1",
    }
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    said = done.stdout + done.stderr
    with state.log("clusterctl").open("a") as log:
        log.write(f"$ clusterctl {' '.join(arguments)}\n{said}\n")
    if done.returncode:
        raise SandboxError(
            "\n".join([f"clusterctl {' '.join(arguments)} failed:", *said.splitlines()[-15:]])
        )
    return said


def repository(state: State, providers: Providers, *, webhooks: bool = True) -> Path:
    """Write the repository for a management cluster; returns clusterctl's configuration."""
    root = state.path("management", "clusterctl", "x").parent
    entries: list[Document] = []
    for wanted in (Providers.of(state), providers):
        entries = [
            _write(root, one, _documents(state, wanted, one, webhooks=webhooks))
            for one in components(wanted)
        ]
    configuration = {
        "providers": entries,
        "cert-manager": {"externallyProvisioned": "true", "timeout": "1m"},
    }
    path = root / "clusterctl.yaml"
    write_private(path, yaml.safe_dump(configuration).encode())
    return path


def _write(root: Path, one: Component, documents: list[Document]) -> Document:
    """Write the files of one provider; returns its entry in the configuration."""
    place = root / one.label / f"v{one.release.version}"
    place.mkdir(parents=True, exist_ok=True)
    (place / one.file).write_text(yaml.safe_dump_all(documents, sort_keys=False))
    metadata = (one.release.directory() / "metadata.yaml").read_text()
    (place / "metadata.yaml").write_text(metadata)
    kind, name, _ = PROVIDERS[one.manager]
    return {"name": name, "type": kind, "url": f"file://{place / one.file}"}


def _documents(
    state: State, providers: Providers, one: Component, *, webhooks: bool
) -> list[Document]:
    path = binaries.build(providers) / binaries.MANIFESTS
    found = [entry for entry in json.loads(path.read_text()) if entry["manager"] == one.manager]
    addresses = {one.manager: crds.webhook_address(state, one.manager) if webhooks else ""}
    labels = {"control-plane": f"{one.manager}-controller-manager"}
    pod = {
        "containers": [
            {"name": "manager", "image": f"example.org/{one.manager}:v{one.release.version}"}
        ]
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": one.manager, "namespace": one.namespace, "labels": labels},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": one.namespace}}
    localized = manifests.localize(found, addresses, Pki(state).authority.read_bytes())
    if not webhooks:
        localized = [document for document in localized if "webhooks" not in document]
    return [namespace, *localized, deployment]


def _cert_manager() -> list[Document]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return [
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": manifests.CRD,
            "metadata": {"name": f"{plural}.cert-manager.io"},
            "spec": {
                "group": "cert-manager.io",
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                "versions": [version],
            },
        }
        for kind, plural in _CERT_MANAGER.items()
    ]
