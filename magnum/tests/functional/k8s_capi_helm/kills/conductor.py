# SPDX-License-Identifier: Apache-2.0
"""A conductor that may be killed: Magnum's handlers and jobs, this driver, the real helm."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
import dataclasses
import datetime
import importlib
import os
from pathlib import Path
import threading
import traceback
from typing import Any, cast

from oslo_log import log
import yaml

from magnum import objects
from magnum.common import keystone, rpc
from magnum.conductor.handlers import nodegroup_conductor
from magnum.drivers.common import driver
from magnum.drivers.k8s_capi_helm import lease
from magnum.drivers.k8s_capi_helm.cloud import provision
from magnum.drivers.k8s_capi_helm.driver import Driver
from magnum.drivers.k8s_capi_helm.helm import release_secret
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader
from magnum.drivers.k8s_capi_helm.model import clock, names, secrets
from magnum.drivers.k8s_capi_helm.reconcile import install
from magnum.drivers.k8s_capi_helm.reconcile.process import caches, clients
from magnum.tests.functional.k8s_capi_helm.adoption import conductor as plain
from magnum.tests.functional.k8s_capi_helm.kills.cluster_api import QuickClusters
from magnum.tests.functional.k8s_capi_helm.kills.project import Cloud, LOG, Project
from magnum.tests.unit.drivers.k8s_capi_helm import magnum_release
from magnum.tests.unit.drivers.k8s_capi_helm.test_random_requests import _plain

CONF = plain.CONF
# The drivers' own options have to be known before a file is read. Done when this is imported, that
# is once, in the process from which conductors are forked.
log.register_options(CONF)
[point.load() for point, _ in driver.Driver.load_entry_points()]
#: Seconds of a lease: nobody wants to wait for as long as in a real conductor.
LEASE = 5.0
#: Longer than anything needs that is kept for a while on purpose.
_LATER = 60.0
_OWNER = "meta.helm.sh/release-name"
_GROUP_FIELDS = ("status", "status_reason", "node_count", "max_node_count", "node_labels")
#: Helm keeps them for machines that still stand, so there may be more of them than in a manifest.
KEPT = (names.MACHINE_TEMPLATE.name, names.BOOTSTRAP_TEMPLATE.name)


class Clock:
    """The clock of this process, which tests put forward.

    :ivar minutes: how far.
    """

    def __init__(self) -> None:
        self.minutes = 0.0

    def now(self) -> datetime.datetime:
        return clock.utc_now() + datetime.timedelta(minutes=self.minutes)


CLOCK = Clock()
#: What the drivers of this process are given.
_given: list[clients.Clients] = []


class Conductor(plain.Conductor):
    """Requests, periodic jobs, and looks at what is true; each method is one line of a test."""

    def __init__(self, cloud: Cloud) -> None:
        super().__init__()
        self._cloud = cloud

    # Requests beside those of the plain conductor -------------------------------------------------
    def change_group(self, name: str, **fields: Any) -> None:
        cluster = self._cluster()
        group = objects.NodeGroup.get_by_name(self._user, cluster.uuid, name)
        for field, value in fields.items():
            setattr(group, field, value)
        nodegroup_conductor.Handler().nodegroup_update(self._user, cluster, group)

    def rotate(self) -> None:
        magnum_release.credential_conductor.Handler().credential_rotate(self._user, self._cluster())

    def look_after(self, minutes: float) -> None:
        """Magnum's periodic jobs, so many minutes after the request."""
        CLOCK.minutes = minutes
        self.look()

    # Looks ----------------------------------------------------------------------------------------
    def rows(self) -> list[dict[str, Any]]:
        return [row(cluster) for cluster in objects.Cluster.list(self._admin)]

    def rests(self) -> bool:
        """Whether nobody waits for anything."""
        return all(self.is_at_rest(cluster) for cluster in objects.Cluster.list(self._admin))

    def is_at_rest(self, cluster: Any) -> bool:
        """Whether nobody waits for anything of this one."""
        rows = (cluster, *cluster.nodegroups)
        if any(row.status.endswith("_IN_PROGRESS") for row in rows):
            return False
        if cluster.status == "UPDATE_FAILED":  # for ten minutes, after a refusal
            return False
        record = self._record(cluster)
        return record is None or not record.operations

    def wrong(self) -> list[str]:
        """What is not as the database says, when everything rests."""
        found = []
        for cluster in objects.Cluster.list(self._admin):
            if cluster.status == "CREATE_FAILED":
                continue  # it says so, and can be deleted
            found += self.wrong_of(cluster)
            found += self._wrong_later(cluster)
        return found

    def _wrong_later(self, cluster: Any) -> list[str]:
        """What of the project is not when all is gone that is kept for a while.

        A lock that a killed conductor held is free when it was seen for as long as a lease lasts.
        """
        for seconds in (0.0, LEASE + 1.0):
            threading.Event().wait(seconds)
            self.look_after(_LATER)
            CLOCK.minutes = 0.0
            found = list(self._wrong_project(cluster))
            if not found:
                break
        return found

    def wrong_of(self, cluster: Any) -> list[str]:
        """What of this cluster is not as the database says."""
        rows = list(cluster.nodegroups)
        failed = [row for row in rows if not _is_fine(row)]
        found = [f"{row.name}: {row.status} {row.status_reason}" for row in failed]
        return [*found, *self._wrong_release(cluster, rows)]

    def left(self) -> tuple[list[str], list[str]]:
        """What is still there of clusters that Magnum has forgotten; and Magnum's certificates."""
        found = [f"{key}: {one}" for key, one in self._cloud.kept.read().items() if one]
        return found, [one.uuid for one in objects.X509KeyPair.list(self._admin)]

    def _record(self, cluster: Any) -> Any:
        if not cluster.stack_id:
            return None
        namespace = reader.cluster_namespace(cluster, CONF)
        return _given[0].leases.read(namespace, cluster.stack_id)

    def _wrong_release(self, cluster: Any, rows: list[Any]) -> Iterator[str]:
        ports, namespace = _given[0], reader.cluster_namespace(cluster, CONF)
        live = ports.helm.live(namespace, cluster.stack_id)
        if live is None or live.status != "deployed":
            yield f"the release is {live.status if live else 'gone'}"
            return
        request = reader.cluster_request(cluster, rows, CONF)
        facts = provision.find(self._cloud, request, self._cloud.facts(request))
        wanted, have = _plain(install.render_cluster(request, facts, CONF)), _plain(live.values)
        for key in sorted({*wanted, *have}):
            if wanted.get(key) != have.get(key):
                yield f"values.{key}: {have.get(key)}, not {wanted.get(key)}"
        yield from self._wrong_objects(namespace, cluster.stack_id)

    def _wrong_objects(self, namespace: str, release: str) -> Iterator[str]:
        """What differs between the newest revision and the API server."""
        kube = _given[0].kube
        known = {one.name: one for one in vars(names).values() if isinstance(one, names.Kind)}
        newest = release_secret.newest_revision(
            kube.list(names.SECRET, namespace, release_secret.release_labels(release))
        )
        assert newest is not None
        documents = [one for one in yaml.safe_load_all(release_secret.manifest(newest)) if one]
        told: dict[str, set[str]] = {kind: set() for kind in known}
        for one in documents:
            told.setdefault(one["kind"], set()).add(one["metadata"]["name"])
            if one["kind"] in known and known[one["kind"]].plural:
                kind = known[one["kind"]]
                version = one["apiVersion"].rpartition("/")[2]
                exact = names.Kind(kind.group, kind.name, kind.plural, (version,))
                have = kube.get(exact, namespace, one["metadata"]["name"])
                where = f"{kind.name} {one['metadata']['name']}"
                wanted = _as_kept(one)
                yield from _lacking(wanted, have, where) if have else [f"{where} is not there"]
        for kind in known.values():
            if kind.namespaced and kind.name not in ("Event", "Lease", *KEPT):
                for one in kube.list(kind, namespace, {}):
                    notes = one["metadata"].get("annotations") or {}
                    orphan = one["metadata"]["name"] not in told[kind.name]
                    if notes.get(_OWNER) == release and orphan:
                        yield f"{kind.name} {one['metadata']['name']} is nobody's"

    def _wrong_project(self, cluster: Any) -> Iterator[str]:
        release = cluster.stack_id
        kube, namespace = _given[0].kube, reader.cluster_namespace(cluster, CONF)
        secret = kube.get(names.SECRET, namespace, names.credential_secret(release))
        used = {one.id for one in secrets.credentials_of(secret)} if secret else set()
        if used != set(self._cloud.credentials):
            yield f"credentials: {sorted(self._cloud.credentials)}, not {sorted(used)}"
        groups = {names.server_group(release, row.name) for row in cluster.nodegroups}
        if set(self._cloud.openstack.ids()) - groups:
            yield f"server groups: {sorted(self._cloud.openstack.ids())}, not {sorted(groups)}"


def row(cluster: Any) -> dict[str, Any]:
    """What of a cluster those have to know who ask for something."""
    return {
        "status": cluster.status,
        "reason": cluster.status_reason,
        "cluster_template_id": cluster.cluster_template_id,
        "groups": {
            one.name: {key: one[key] for key in _GROUP_FIELDS if key in one.fields}
            for one in cluster.nodegroups
        },
    }


def _is_fine(row: Any) -> bool:
    """COMPLETE; or only the request of its user could have made its server group."""
    lost = row.status == "CREATE_FAILED" and "Delete the nodegroup" in row.status_reason
    return lost or row.status.endswith("_COMPLETE")


def _as_kept(document: Any) -> Any:
    """A document as an API server keeps it: what a Secret has as text is packed."""
    texts = document.pop("stringData", None) or {}
    packed = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()}
    return {**document, "data": {**document.get("data", {}), **packed}} if packed else document


def _lacking(told: Any, have: Any, where: str) -> Iterator[str]:
    """What a document says and the object does not."""
    if isinstance(told, dict) and isinstance(have, dict):
        for key, value in told.items():
            if value is not None:
                yield from _lacking(value, have.get(key), f"{where}.{key}")
    elif isinstance(told, list) and isinstance(have, list) and len(told) == len(have):
        for number, (one, other) in enumerate(zip(told, have, strict=True)):
            yield from _lacking(one, other, f"{where}[{number}]")
    elif told != have and (told or have):
        yield f"{where}: {have!r:.200}, not {told!r:.200}"


def configure(path: str) -> None:
    """Read a configuration, and begin to log."""
    CONF([], project="magnum", default_config_files=[path])
    log.setup(CONF, "magnum")
    rpc.init(CONF)


def serve(directory: str, configuration: str, requests: Any) -> None:
    """Answer requests until somebody kills this process.

    :param directory: of the played project, and of what is logged.
    :param requests: a connection, over which verb and arguments come.
    """
    place = Path(directory)
    output = os.open(place / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    configure(configuration)
    conductor = Conductor(_play(place))
    receive = _receiver(requests)
    while True:
        verb, arguments = receive()
        try:
            answer = getattr(conductor, verb)(**arguments)
        except Exception as error:
            traceback.print_exc()
            requests.send((f"{type(error).__name__}: {error}", None))
        else:
            requests.send(("", answer))


def _receiver(requests: Any) -> Callable[[], tuple[str, dict[str, Any]]]:
    """The next request; until it comes, greenthreads run, where threads are such."""
    if not magnum_release.EVENTLET:
        return cast("Callable[[], tuple[str, dict[str, Any]]]", requests.recv)
    from eventlet import tpool

    return lambda: tpool.execute(requests.recv)


def _play(place: Path) -> Cloud:
    """Put what is played in its place; returns the cloud as everybody's."""
    if magnum_release.EVENTLET:
        _play_trusts()
    cloud, made = Cloud(Project(place / "project.json")), clients.build(CONF)
    kube = QuickClusters(CONF.capi_helm.kubeconfig_file)
    holder = f"conductor/{os.getpid()}/{os.urandom(4).hex()}"
    ports = dataclasses.replace(
        made,
        kube=kube,
        leases=lease.ReleaseLeases(kube, holder=holder, lease_duration=LEASE, now=CLOCK.now),
        informers=None,
        # What is given up after a while is so in the minutes that the jobs are told.
        first_seen=caches.FirstSeen(lambda: CLOCK.now().timestamp()),
        cloud=cloud.seen_by,
        clock=CLOCK.now,
    )
    serve_with(ports)
    return cloud


def _play_trusts() -> None:
    """Until Magnum 22 the conductor itself asks Keystone for a trust for each cluster."""
    trusts = importlib.import_module("magnum.conductor.handlers.common.trust_manager")
    for name in ("create_trustee_and_trust", "delete_trustee_and_trust"):
        setattr(trusts, name, lambda *_: None)
    keystone.KeystoneClientV3.trustee_domain_id = "trustees"


def serve_with(ports: clients.Clients) -> None:
    """Give these clients to the driver that Magnum finds."""
    _given[:] = [ports]
    plain.give(lambda: Driver(lambda settings: ports))


def given() -> clients.Clients:
    """The clients of the driver of this process."""
    return _given[0]
