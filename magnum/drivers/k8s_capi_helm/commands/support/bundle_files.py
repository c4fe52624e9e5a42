# SPDX-License-Identifier: Apache-2.0
"""The files of a support bundle: what the driver knows of one cluster and of its own host."""

from __future__ import annotations

import base64
import binascii
import collections
from collections.abc import Callable, Iterator, Mapping
import contextlib
import dataclasses
from importlib import metadata
import pathlib
import platform
from typing import Any

import magnum.conf
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.output.secret_mask import secrets_of_text
from magnum.drivers.k8s_capi_helm.commands.why.why import explanation
from magnum.drivers.k8s_capi_helm.helm import release_secret
from magnum.drivers.k8s_capi_helm.kube.watch import snapshot
from magnum.drivers.k8s_capi_helm.model import conditions, Json, Missing, names, Observed
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership

#: Lines of a log that are kept, the newest ones.
_LOG_LINES = 20_000
#: What a chart makes besides the objects of a snapshot.
_TEMPLATES = (names.MACHINE_TEMPLATE, names.BOOTSTRAP_TEMPLATE, names.MACHINE_HEALTH_CHECK)


@dataclasses.dataclass(frozen=True, slots=True)
class BundleSource:
    """What the files are made from.

    :ivar cluster: Magnum's cluster.
    """

    run: Reconciliation
    cluster: Any

    @property
    def namespace(self) -> str:
        """On the management cluster."""
        return ownership.owner(self.cluster, self.run.settings).namespace

    @property
    def release(self) -> str:
        """Name of the Helm release."""
        return str(release_of(self.cluster.stack_id))


def _explanation(source: BundleSource) -> str:
    """What ``why`` prints."""
    _, rows = explanation(source.run, source.cluster)
    return "".join(f"{' '.join(filter(None, row.columns))}\n" for row in rows)


def _cluster(source: BundleSource) -> Json:
    return dict(source.cluster.as_dict())


def _nodegroups(source: BundleSource) -> list[Json]:
    return [dict(nodegroup.as_dict()) for nodegroup in source.cluster.nodegroups]


def _template(source: BundleSource) -> Json:
    return dict(source.cluster.cluster_template.as_dict())


def _lease(source: BundleSource) -> Json | None:
    kube, name = source.run.clients.kube, names.lease(source.release)
    return kube.get(names.LEASE, source.namespace, name)


def _values(source: BundleSource) -> Json | None:
    live = source.run.clients.helm.live(source.namespace, source.release)
    return None if live is None else live.values


def _revisions(source: BundleSource) -> list[Json]:
    """The metadata of each revision's Secret: number, status, time."""
    labels = release_secret.release_labels(source.release)
    return source.run.clients.kube.list(names.SECRET, source.namespace, labels, metadata_only=True)


def _manifest(source: BundleSource) -> list[Json]:
    """The objects that Helm has written last, without Secrets of the chart."""
    labels = release_secret.release_labels(source.release)
    listed = source.run.clients.kube.list(names.SECRET, source.namespace, labels)
    newest = release_secret.newest_revision(listed)
    objects = release_secret.documents(release_secret.manifest(newest)) if newest else []
    return [_outline(obj) if obj.get("kind") == "Secret" else obj for obj in objects]


def _objects(source: BundleSource) -> Json:
    """The objects of Cluster API and the addons, as they are now."""
    kube, run = source.run.clients.kube, source.run
    observed = snapshot.take_snapshot(kube, source.namespace, source.release, run.now)
    if observed.unreachable:
        raise errors.ManagementUnreachable(
            "The management cluster did not answer completely.", observed.unreachable
        )
    labels = {names.LABEL_CLUSTER_NAME: source.release}
    listed = {kind.plural: kube.list(kind, source.namespace, labels) for kind in _TEMPLATES}
    of_chart = {names.LABEL_CHART_CLUSTER: source.release}
    listed[names.DEPLOYMENT.plural] = kube.list(names.DEPLOYMENT, source.namespace, of_chart)
    return {**_observed(observed), **listed, "events": _events(source)}


def _observed(observed: Observed) -> Json:
    parts = ("cluster", "infrastructure", "control_plane", "machine_deployments", "machine_sets")
    found = {part: getattr(observed, part) for part in (*parts, "machines", "servers", "addons")}
    return {
        part: value.value if isinstance(value, Missing) else value for part, value in found.items()
    }


def _events(source: BundleSource) -> list[Json]:
    """All events about objects of the release; their names begin with its name."""
    return [
        event
        for event in source.run.clients.kube.list(names.EVENT, source.namespace)
        if str(conditions.at_path(event, "involvedObject", "name") or "").startswith(source.release)
    ]


def _secrets(source: BundleSource) -> list[Json]:
    """Which Secrets there are, and how long each entry is."""
    return [_outline(secret) for secret in _secret_objects(source)]


def _secret_objects(source: BundleSource) -> list[Json]:
    labels = {names.LABEL_CLUSTER_NAME: source.release}
    return source.run.clients.kube.list(names.SECRET, source.namespace, labels)


def _outline(secret: Json) -> Json:
    """A Secret without its data."""
    found = {**(secret.get("data") or {}), **(secret.get("stringData") or {})}
    sizes = {f"{key} (characters)": len(str(found[key])) for key in found}
    return {"metadata": secret.get("metadata"), "type": secret.get("type"), "entries": sizes}


def _configuration(source: BundleSource) -> str:
    """All options of Magnum with their values; oslo.config hides those that are secret."""
    log = _Lines()
    magnum.conf.CONF.log_opt_values(log, 0)
    return "\n".join((*log.lines, ""))


class _Lines:
    """What oslo.config takes for a logger: it keeps the lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def log(self, level: int, text: str, *arguments: object) -> None:
        """Keep one line."""
        self.lines.append(text % arguments if arguments else text)


def _versions(source: BundleSource) -> str:
    """Helm, Python and the installed distributions."""
    try:
        helm = source.run.clients.helm.version()
    except errors.DriverError as error:
        helm = str(error)
    installed = sorted({f"{one.name} {one.version}" for one in metadata.distributions()})
    system = (f"Helm {helm}", f"Python {platform.python_version()}", platform.platform())
    return "\n".join((*system, *installed, ""))


#: Name -> what is in the file, and how it is made. What is no text becomes JSON.
FILES: Mapping[str, tuple[str, Callable[[BundleSource], Any]]] = {
    "why.txt": ("the output of 'why'", _explanation),
    "magnum/cluster.json": ("Magnum's cluster", _cluster),
    "magnum/nodegroups.json": ("Magnum's nodegroups", _nodegroups),
    "magnum/template.json": ("Magnum's template", _template),
    "helm/revisions.json": ("revisions of the release", _revisions),
    "helm/values.json": ("values of the release", _values),
    "helm/manifest.json": ("objects that Helm has written last", _manifest),
    "management/lease.json": ("the Lease with the pending operations", _lease),
    "management/objects.json": ("objects of Cluster API, addons and events", _objects),
    "management/secrets.json": ("Secrets by name, without their data", _secrets),
    "host/configuration.txt": ("the options of Magnum on this host", _configuration),
    "host/versions.txt": ("versions of programs and packages on this host", _versions),
}
#: Files that there are also of a cluster without a release.
WITHOUT_RELEASE = ("why.txt", *(name for name in FILES if name.startswith(("magnum/", "host/"))))


def cluster_secrets(source: BundleSource) -> Iterator[str]:
    """The secrets of a cluster and of this host, to be masked wherever they are.

    :raises errors.DriverError: the Secrets cannot be read.
    """
    # Until Magnum 22 clusters have trusts.
    yield getattr(source.cluster, "trustee_password", None) or ""
    if path := source.run.clients.kube.kubeconfig_path:
        # What cannot be read is not known to this process either.
        with contextlib.suppress(OSError):
            yield from secrets_of_text(pathlib.Path(path).read_text(errors="replace"))
    for secret in _secret_objects(source) if source.cluster.stack_id else ():
        for encoded in (secret.get("data") or {}).values():
            try:
                text = base64.b64decode(encoded).decode(errors="replace")
            except (binascii.Error, ValueError):
                text = str(encoded)
            yield from secrets_of_text(text)


def log_lines(path: str, source: BundleSource) -> str:
    """The newest lines of a log that name the cluster or its release.

    :raises errors.InvalidRequest: the log cannot be read.
    """
    subjects = [text for text in (source.cluster.uuid, release_of(source.cluster.stack_id)) if text]
    try:
        with open(path, encoding="utf-8", errors="replace") as log:
            lines = (line for line in log if any(text in line for text in subjects))
            return "".join(collections.deque(lines, _LOG_LINES))
    except OSError as error:
        raise errors.InvalidRequest(
            f"The log cannot be read. '{path}': {error.strerror}. Name a file that the user of "
            "this command may read."
        ) from None
