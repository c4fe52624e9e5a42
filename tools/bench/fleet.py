# SPDX-License-Identifier: Apache-2.0
"""A fleet of clusters in Magnum's database and on a real kube-apiserver, for benchmarks.

One cluster is made by the driver in memory, as in the unit tests, and copied under other names. Its
objects are those of the unit tests: no controller touches them, and their CRDs take any field. They
are put into etcd itself, as kube-apiserver does it (https://etcd.io/docs/latest/dev-guide/api_grpc_gateway/
and /registry/GROUP/RESOURCE/NAMESPACE/NAME): through it, a thousand clusters take half an hour.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
import contextlib
import dataclasses
import datetime
import gzip
import importlib
import json
from pathlib import Path
import tempfile
from typing import Any
import uuid

import urllib3

from magnum.drivers.k8s_capi_helm.kube.watch.informers import KINDS
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import names
from sandbox import processes
from sandbox.management import binaries, crds, server
from sandbox.management.api import Api
from sandbox.management.pki import Pki
from sandbox.state import State
from tools.bench import pass_costs

Json = dict[str, Any]
#: The unit tests' world; not imported by name, because it is checked less strictly than tools are.
CASES: Any = importlib.import_module("magnum.tests.unit.drivers.k8s_capi_helm.driver_case")
builders = CASES.builders
#: Kinds in the order of names.py that the fleet has objects of.
_MADE = {one.name: one for one in (*KINDS, names.OPENSTACK_MACHINE, names.LEASE, names.SECRET)}
#: Of ``metadata``: what the server gives.
_SERVERS = ("uid", "generation", "resourceVersion", "creationTimestamp")
_EVENTS = 5
_CLUSTERS_PER_PROJECT = 10
#: Objects of one transaction, and their bytes; etcd takes 128, and 1.5 MiB.
_TOGETHER, _BYTES = 100, 2**20
_UUID = "99999999-8888-4777-8666-555555555555"
#: The server writes down what Magnum's user asks for, a line each.
_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata", "users": [server.DRIVER]}, {"level": "None"}],
}


def one_cluster(*, in_progress: bool) -> Json:
    """One cluster at rest, or one that waits for machines: rows, objects and release."""

    def live(case: Any) -> None:
        case.made()
        case.health_task()
        if in_progress:
            case.resize(3)
            case.status_task()

    return played(live)


def played(live: Callable[[Any], None]) -> Json:
    """Rows, objects and release of the one cluster of the unit tests' world, after *live*."""
    case = type("Case", (CASES.DriverCase,), {"runTest": lambda self: None})("runTest")
    case.setUp()
    try:
        live(case)
        cluster = case.cluster()
        things = [one for one in case.kube.everything() if one["kind"] in _MADE]
        found = {
            "template": cluster.cluster_template.as_dict(),
            "cluster": cluster.as_dict(),
            "groups": [one.as_dict() for one in cluster.nodegroups],
            "things": things,
            "release": dataclasses.asdict(case.helm.live(builders.NAMESPACE, builders.RELEASE)),
        }
    finally:
        case.doCleanups()
    plain: Json = json.loads(json.dumps(found, default=str))
    return plain


def copy(cluster: Json, number: int, project: str = "") -> Json:
    """The same cluster once more: another name, another project, its release as Helm keeps it.

    :param project: "" for one that it shares with a few others.
    """
    project = project or f"bench{number // _CLUSTERS_PER_PROJECT}"
    text = json.dumps(cluster)
    for old, new in (
        (builders.RELEASE, f"demo-{number:012d}"),
        (builders.NAMESPACE, f"{pass_costs.CLUSTERS}{project}"),
        (_UUID, f"99999999-8888-4777-8666-{number:012d}"),
        ('"p1"', f'"{project}"'),
        ('"observedGeneration": 2', '"observedGeneration": 1'),
    ):
        text = text.replace(old, new)
    found: Json = json.loads(text)
    found["things"] += [_release(found["release"]), *_events(found)]
    return found


def _release(live: Json) -> Json:
    metadata = {"name": live["chart_name"], "version": live["chart_version"]}
    if live["chart_family"]:
        metadata["annotations"] = {names.CHART_FAMILY_ANNOTATION: live["chart_family"]}
    revision = {
        "name": live["name"],
        "namespace": live["namespace"],
        "version": live["revision"],
        "info": {"status": live["status"]},
        "chart": {"metadata": metadata},
        "config": live["values"],
    }
    packed = base64.b64encode(gzip.compress(json.dumps(revision).encode()))
    labels = {"owner": "helm", "name": live["name"], "status": live["status"]}
    return {
        "kind": "Secret",
        "type": "helm.sh/release.v1",
        "metadata": {
            "name": f"sh.helm.release.v1.{live['name']}.v{live['revision']}",
            "namespace": live["namespace"],
            "labels": {**labels, "version": str(live["revision"])},
        },
        "data": {"release": base64.b64encode(packed).decode()},
    }


def _events(cluster: Json) -> Iterator[Json]:
    release = cluster["cluster"]["stack_id"]
    namespace = cluster["release"]["namespace"]
    for number in range(_EVENTS):
        yield {
            "kind": "Event",
            "metadata": {"name": f"{release}.{number}", "namespace": namespace},
            "involvedObject": {"kind": "Machine", "name": release, "namespace": namespace},
            "reason": "SuccessfulCreate",
            "message": f"Created server {release}-{number} with id {_UUID}",
            "type": "Normal",
            "lastTimestamp": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}",
        }


class ManagementCluster:
    """A throw-away API server with an audit log, and the fleet's objects on it.

    :ivar admin: a client that may do anything, by :attr:`admin_kubeconfig`.
    :ivar kubeconfig: of the user that the driver is, with the rights that it needs; see `audit`.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self.audit = state.path("audit.log")
        self._policy = state.path("audit.json")
        self._forgotten = 0
        self.admin_kubeconfig = server.kubeconfig(state)
        self.admin = KubeClient(str(self.admin_kubeconfig))
        self.kubeconfig = server.driver_kubeconfig(state)

    def up(self, kinds: Sequence[names.Kind]) -> None:
        """Start it, with these kinds in their first version, and the driver's roles."""
        place = binaries.build()
        Pki(self._state).ensure()
        server.write_users(self._state)
        processes.start(self._state, "etcd", server.etcd(self._state, place))
        self._policy.write_text(json.dumps(_POLICY))
        audit = [f"--audit-policy-file={self._policy}", f"--audit-log-path={self.audit}"]
        api = Api(server.kubeconfig(self._state))
        processes.start(
            self._state,
            "kube-apiserver",
            [*server.apiserver(self._state, place), *audit],
            ready=api.answers,
            timeout=server.START_TIMEOUT,
        )
        api.apply_all(_definition(kind) for kind in kinds)
        api.wait_established(f"{kind.plural}.{kind.group}" for kind in kinds)
        api.apply_all(crds.rbac())

    def fill(self, clusters: Iterable[Json]) -> None:
        """Make the objects of clusters, and what a project's namespace has."""
        clusters = list(clusters)
        for namespace in sorted({one["release"]["namespace"] for one in clusters}):
            self.admin.apply(names.NAMESPACE, {"metadata": {"name": namespace}})
            self.admin.apply(names.ROLE_BINDING, binding(namespace))
        things = (thing for one in clusters for thing in one["things"])
        self._transact(_together(_put(one) for one in things))

    def put(self, things: Iterable[Json]) -> None:
        """Make objects in namespaces that are there, or give them another content.

        Each has a revision of its own, as kube-apiserver gives them: a watch that ends after one
        goes on after its revision, and would not show others that have the same.
        """
        self._transact([_put(one)] for one in things)

    def clear(self) -> None:
        """Delete the objects of all clusters that :meth:`fill` has made."""
        spaces = [f"{_directory(kind)}/{pass_costs.CLUSTERS}".encode() for kind in _MADE.values()]
        ranges = [{"key": one, "range_end": one[:-1] + bytes([one[-1] + 1])} for one in spaces]
        self._transact([[{"requestDeleteRange": _coded(one)} for one in ranges]])

    def requests(self, since: float, until: float) -> dict[str, int]:
        """How often Magnum asked between two times, by verb and resource."""
        with self.audit.open("rb") as lines:
            lines.seek(self._forgotten)
            return pass_costs.count_requests(lines, since, until)

    def forget_requests(self) -> None:
        """Do not look through those until now again: nobody will ask for them."""
        self._forgotten = self.audit.stat().st_size if self.audit.exists() else 0

    def _transact(self, transactions: Iterable[list[Json]]) -> None:
        pki = Pki(self._state)
        url = f"https://127.0.0.1:{self._state.port('etcd')}/v3/kv/txn"
        with urllib3.PoolManager(
            ca_certs=str(pki.authority), cert_file=str(pki.certificate), key_file=str(pki.key)
        ) as etcd:
            for together in transactions:
                answer = etcd.request("POST", url, json={"success": together}, timeout=30.0)
                if answer.status != 200:
                    raise RuntimeError(f"etcd: HTTP {answer.status}: {answer.data[:300]!r}")


@contextlib.contextmanager
def management_cluster(
    kinds: Sequence[names.Kind] = tuple(kind for kind in KINDS if kind.group),
) -> Iterator[ManagementCluster]:
    """One that is up, and goes with the block."""
    with tempfile.TemporaryDirectory() as place:
        state = State(Path(place))
        try:
            found = ManagementCluster(state)
            found.up(kinds)
            yield found
        finally:
            processes.stop_all(state)


def _put(thing: Json) -> Json:
    """A request to etcd for an object as kube-apiserver keeps it."""
    kind = _MADE[thing["kind"]]
    metadata = {key: value for key, value in thing["metadata"].items() if key not in _SERVERS}
    place = f"{_directory(kind)}/{metadata['namespace']}/{metadata['name']}"
    given = {
        # The same for the same place: an object may get another content.
        "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, place)),
        "generation": 1,
        "creationTimestamp": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    version = f"{kind.group}/{kind.versions[0]}".removeprefix("/")
    kept = {"apiVersion": version, **thing, "metadata": {**metadata, **given}}
    return {
        "requestPut": _coded({"key": place.encode(), "value": json.dumps(kept).encode()}),
    }


def _together(requests: Iterable[Json]) -> Iterator[list[Json]]:
    """Requests in transactions that etcd takes."""
    found, size = list[Json](), 0
    for one in requests:
        more = len(json.dumps(one))
        if found and (len(found) == _TOGETHER or size + more > _BYTES):
            yield found
            found, size = [], 0
        found.append(one)
        size += more
    if found:
        yield found


def _directory(kind: names.Kind) -> str:
    # Groups of Kubernetes itself are not in the place's name.
    group = f"{kind.group}/" if "." in kind.group.removesuffix(".k8s.io") else ""
    return f"/registry/{group}{kind.plural}"


def _coded(found: dict[str, bytes]) -> dict[str, str]:
    return {key: base64.b64encode(content).decode() for key, content in found.items()}


def binding(namespace: str) -> Json:
    role = "magnum-k8s-capi-helm"
    return {
        "metadata": {"name": role, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": server.DRIVER}
        ],
    }


def _definition(kind: names.Kind) -> Json:
    """A custom resource definition that takes everything, status included."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": kind.versions[0], "served": True, "storage": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a benchmark"},
        },
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"plural": kind.plural, "singular": kind.name.lower(), "kind": kind.name},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }
