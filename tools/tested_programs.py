# SPDX-License-Identifier: Apache-2.0
"""The real programs of a run, with their versions: the table ``programs`` of tools/tested.py.

The page "What is real, what is simulated" shows them. A program that is not in a run has no row.
"""

from __future__ import annotations

from importlib import metadata
import os
from pathlib import Path
import subprocess

Subject = dict[str, str]

#: Services of OpenStack, by the name of their package.
_SERVICES = (
    *("barbican", "cinder", "glance", "keystone", "magnum"),
    *("neutron", "nova", "octavia", "openstack-placement"),
)
#: A checkout of what is no package, by the environment variable that names it.
_ADDON_PROVIDER = "ADDON_PROVIDER", "cluster-api-addon-provider"
_JANITOR = "JANITOR", "cluster-api-janitor-openstack"
_TIMEOUT = 30.0


def sandbox() -> list[Subject]:
    """The services and the programs of the management cluster in the sandbox."""
    from sandbox import cli
    from sandbox.cloud.conductor_layout import Layout
    from sandbox.management import addon_provider as provider
    from sandbox.management import binaries, tenant_api
    from sandbox.management.releases import Providers
    from sandbox.state import State

    state = State(cli.default_directory())
    providers, versions = Providers.of(state), {name: metadata.version(name) for name in _SERVICES}
    # Another release of Magnum has an environment of its own.
    versions["magnum"] = Layout.of(state).magnum or versions["magnum"]
    services = [_subject(name, version) for name, version in versions.items()]
    # What is this project's own simulates something.
    real = [one for one in binaries.programs(providers) if one.version != binaries.OWN]
    programs = [_subject(one.name, one.version) for one in real]
    if tenant_api.chosen(state) == tenant_api.REAL:
        names = tenant_api.SCHEDULER, tenant_api.KUBEADM
        programs += [_subject(name, binaries.KUBERNETES) for name in names]
    if provider.chosen(state) == provider.REAL:
        programs += addon_provider()
    return [*services, *programs]


def addon_provider() -> list[Subject]:
    """The addon provider that ``$ADDON_PROVIDER`` names; nothing without it."""
    return _checkout(*_ADDON_PROVIDER)


def janitor() -> list[Subject]:
    """The janitor that ``$JANITOR`` names; nothing without it."""
    return _checkout(*_JANITOR)


def kubeadm() -> list[Subject]:
    """The releases of kubeadm that were selected."""
    from sandbox.management import kubernetes_releases

    return [_subject("kubeadm", one.version) for one in kubernetes_releases.selected()]


def clusterctl() -> list[Subject]:
    """The clusterctl that moves objects, and upgrades Cluster API."""
    from sandbox.management import clusterctl as real

    program = real.program()
    return [_subject(program.name, program.version)]


def backup() -> list[Subject]:
    """The programs that save and restore the data of etcd."""
    from sandbox.management import backup as real

    return [_subject(one.name, one.version) for one in (real.ETCDCTL, real.ETCDUTL)]


def snapshots() -> list[Subject]:
    """The programs that bring a cluster's etcd to a bucket and back."""
    from sandbox.management import object_storage

    programs = (object_storage.RCLONE, object_storage.VERSITYGW)
    return [*backup(), *(_subject(one.name, one.version) for one in programs)]


def tenant() -> list[Subject]:
    """The programs of a tenant's cluster that use OpenStack."""
    from sandbox.management import cloud_programs

    return [_subject(one.name, one.version) for one in cloud_programs.PROGRAMS]


def prometheus() -> list[Subject]:
    """Prometheus and its promtool."""
    from sandbox.management import prometheus as programs

    return [_subject(one.name, one.version) for one in (programs.PROMETHEUS, programs.PROMTOOL)]


def _checkout(variable: str, name: str) -> list[Subject]:
    directory = os.environ.get(variable)
    return [_subject(name, described(Path(directory)))] if directory else []


def described(checkout: Path) -> str:
    """The tag of a checkout, or its commit; "unknown" where it has none."""
    command = ["git", "-C", str(checkout), "describe", "--tags", "--always"]
    done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=_TIMEOUT)
    return done.stdout.strip() or "unknown"


def _subject(program: str, version: str) -> Subject:
    return {"Program": program, "Version": version}
