# SPDX-License-Identifier: Apache-2.0
"""The kopf operator around :mod:`sandbox.addons.rules`: it reads, asks the tables, and acts.

The names of the handlers are those of the addon provider, because kopf writes them into its
annotations and clients look at these.
"""

import asyncio
from collections.abc import Callable
import dataclasses
from typing import Any

import kopf

from sandbox.addons import rules, templates, tenant_install
from sandbox.addons.objects import Objects
from sandbox.addons.rules import Act, Phase
from sandbox.management.connection import Refused
from sandbox.state import SandboxError

#: How often a stuck run of Helm looks whether the fault is over, in seconds.
STUCK_POLL = 1.0


@dataclasses.dataclass(frozen=True)
class Options:
    """How long things take.

    :ivar install: seconds of one run of Helm.
    :ivar retry: seconds until an addon that waits is looked at again; 15 in the real one.
    """

    install: float = 1.0
    retry: float = 15.0


class Operator:
    """Handlers of one operator; what Helm would remember of a release is kept in memory."""

    def __init__(self, objects: Objects, options: Options) -> None:
        self._objects = objects
        self._options = options
        self._deployed: dict[str, Any] = {}  # chart and values by uid of the addon

    def register(self, registry: kopf.OperatorRegistry) -> None:
        """Tell kopf about all handlers."""
        kopf.on.startup(registry=registry)(configure)
        kopf.on.login(registry=registry)(login)
        for plural in rules.KINDS.values():
            where = (rules.GROUP, rules.VERSION, plural)
            named: dict[str, Any] = {"registry": registry, "id": "handle_addon_updated"}
            kopf.on.create(*where, **named)(self.updated)
            kopf.on.resume(*where, **named)(self.updated)
            # A new checksum of a Secret or ConfigMap is a changed annotation.
            kopf.on.update(*where, field="metadata.annotations", **named)(self.updated)
            kopf.on.update(*where, field="spec", **named)(self.updated)
            kopf.on.delete(*where, registry=registry, id="handle_addon_deleted")(self.deleted)
        watched: dict[str, Any] = {
            "registry": registry,
            "labels": {rules.WATCH_LABEL: kopf.PRESENT},
        }
        kopf.on.event("", "v1", "secrets", **watched)(self.source_changed)
        kopf.on.event("", "v1", "configmaps", **watched)(self.source_changed)

    async def updated(self, body: kopf.Body, **_: Any) -> None:
        """An addon is new, or its spec or annotations have changed, or this program has started."""
        addon = _plain(body)
        seen = await asyncio.to_thread(self._objects.look, addon)
        if not addon.get("status", {}).get("phase"):
            await self._status(addon, phase=Phase.PENDING)
        await self._follow(addon, rules.decide(rules.IDENTIFY, seen, Act.INSTALL))
        if seen.spec.get("paused"):
            return
        await asyncio.to_thread(self._identify, addon, seen)
        await self._follow(addon, rules.decide(rules.ADMIT, seen, Act.INSTALL))
        await self._install(addon, seen)

    async def deleted(self, body: kopf.Body, **_: Any) -> None:
        """An addon is being deleted; kopf lets go of the finalizer when this returns."""
        addon = _plain(body)
        seen = await asyncio.to_thread(self._objects.look, addon)
        if rules.decide(rules.DELETE, seen, Act.UNINSTALL).act is Act.UNINSTALL:
            await self._status(addon, phase=Phase.UNINSTALLING)
            await self._helm(addon)
            await self._inside(self._objects.uninstall, addon)
        self._deployed.pop(addon["metadata"]["uid"], None)

    async def source_changed(self, body: kopf.Body, type: str, **_: Any) -> None:
        """A watched Secret or ConfigMap is new or has changed: its addons learn its checksum."""
        if type == "DELETED":
            return
        source, kind = dict(body), body["kind"]
        await asyncio.to_thread(self._spread, kind, source)

    def _spread(self, kind: str, source: rules.Document) -> None:
        meta = source["metadata"]
        for addon in self._objects.addons_using(kind, meta["namespace"], meta["name"]):
            self._objects.note_checksum(addon, kind, source)

    async def _follow(self, addon: rules.Document, answer: rules.Answer) -> None:
        """Turn an answer that ends the run into what kopf understands."""
        if answer.act is Act.RETRY:
            raise kopf.TemporaryError(answer.message, delay=self._options.retry)
        if answer.act is Act.CRASH:
            raise RuntimeError(answer.message)
        if answer.act is Act.FAIL:
            await self._status(addon, phase=Phase.FAILED, failureMessage=answer.message)
            raise kopf.PermanentError(answer.message)

    def _identify(self, addon: rules.Document, seen: rules.Seen) -> None:
        """Label the addon, let its Cluster own it, and watch what it takes values from."""
        meta, cluster = addon["metadata"], seen.cluster or {}
        reference = rules.owner(cluster)
        owners = [dict(item) for item in meta.get("ownerReferences") or []]
        missing = rules.labels(addon).items() - (meta.get("labels") or {}).items()
        if missing or all(item["uid"] != reference["uid"] for item in owners):
            others = [item for item in owners if item["uid"] != reference["uid"]]
            patch = {"labels": dict(missing), "ownerReferences": [*others, reference]}
            self._objects.patch_addon(addon, {"metadata": patch})
        for (kind, _), source in seen.sources.items():
            if source is not None:
                self._objects.watch_source(kind, dict(source))
                self._objects.note_checksum(addon, kind, source)

    async def _install(self, addon: rules.Document, seen: rules.Seen) -> None:
        meta, status = addon["metadata"], addon.get("status", {})
        rendered = templates.render(addon, seen.sources, seen.context())
        wanted = [seen.spec.get("chart"), rendered]
        if status.get("phase") == Phase.DEPLOYED and self._same(meta["uid"], wanted):
            return
        await self._status(addon, phase=Phase.PREPARING)
        await self._status(addon, phase=rules.helm_phase(status))
        await self._helm(addon)
        documents = tenant_install.documents(addon, rendered)
        await self._inside(self._objects.install, addon, documents)
        self._deployed[meta["uid"]] = wanted
        await self._status(
            addon,
            phase=Phase.DEPLOYED,
            revision=int(status.get("revision") or 0) + 1,
            resources=templates.resources(documents),
            failureMessage=None,
        )

    def _same(self, uid: str, wanted: Any) -> bool:
        """Whether Helm has deployed this already; after a restart it is taken to be so."""
        return bool(self._deployed.setdefault(uid, wanted) == wanted)

    async def _helm(self, addon: rules.Document) -> None:
        """A run of Helm: a pause, which the fault ``stuck`` makes endless."""
        await asyncio.sleep(self._options.install)
        while await asyncio.to_thread(self._stuck, addon["metadata"]["name"]):
            await asyncio.sleep(STUCK_POLL)

    async def _inside(self, act: Callable[..., None], *arguments: Any) -> None:
        """Do something in the addon's cluster; where it does not answer, later once more."""
        try:
            await asyncio.to_thread(act, *arguments)
        except SandboxError as error:
            raise kopf.TemporaryError(str(error), delay=self._options.retry) from error

    def _stuck(self, name: str) -> bool:
        found = self._objects.get("v1", "default", "configmaps", rules.FAULTS) or {}
        return templates.matches((found.get("data") or {}).get("stuck"), name)

    async def _status(self, addon: rules.Document, **fields: Any) -> None:
        try:
            await asyncio.to_thread(self._objects.patch_addon, addon, {"status": fields}, "/status")
        except Refused as error:
            if error.status != 404:  # it was deleted meanwhile: nobody reads its status
                raise


def login(**kwargs: Any) -> Any:
    """The user of ``$KUBECONFIG``."""
    return kopf.login_with_kubeconfig(**kwargs)


def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    """Finalizer and annotations of the addon provider."""
    settings.persistence.finalizer = rules.FINALIZER
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=rules.GROUP)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(
        prefix=rules.GROUP, key=rules.LAST_HANDLED
    )
    settings.execution.max_workers = 20


def _plain(body: kopf.Body) -> rules.Document:
    """A copy of the object: kopf's own follows later changes."""
    copied: dict[str, Any] = {key: _copy(value) for key, value in body.items()}
    return copied


def _copy(value: Any) -> Any:
    if isinstance(value, dict) or hasattr(value, "items"):
        return {key: _copy(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_copy(inner) for inner in value]
    return value
