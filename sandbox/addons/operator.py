# SPDX-License-Identifier: Apache-2.0
"""The kopf operator of :mod:`sandbox.addons.rules`: reads objects and acts.

The names of the handlers are those of the addon provider, because kopf writes them into its
annotations and clients look at these.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
import dataclasses
import json
from typing import Any

import kopf

from sandbox.addons import release, rules, templates, tenant_install
from sandbox.addons.objects import Objects
from sandbox.addons.release import Content, Release, Status
from sandbox.addons.rules import Act, Phase
from sandbox.management.connection import Document, Refused
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
    """Handlers of one operator.

    :ivar releases: what Helm would remember, by uid of the addon; None for no release.
    """

    def __init__(self, objects: Objects, options: Options) -> None:
        self._objects = objects
        self._options = options
        self.releases: dict[str, Release | None] = {}

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
        if _phase(addon) == Phase.UNKNOWN:
            await self._status(addon, phase=Phase.PENDING)
        await self._follow(addon, rules.decide(rules.IDENTIFY, seen, Act.INSTALL))
        await asyncio.to_thread(self._identify, addon, seen)
        await self._follow(addon, rules.decide(rules.WATCH, seen, Act.INSTALL))
        await asyncio.to_thread(self._watch, seen)
        answer = rules.decide(rules.ADMIT, seen, Act.INSTALL)
        await self._follow(addon, answer)
        if answer.act is Act.INSTALL:
            await self._install(addon, seen)

    async def deleted(self, body: kopf.Body, **_: Any) -> None:
        """An addon is being deleted; kopf lets go of the finalizer when this returns."""
        addon = _plain(body)
        seen = await asyncio.to_thread(self._objects.look, addon)
        answer = rules.decide(rules.DELETE, seen, Act.UNINSTALL)
        await self._follow(addon, answer)
        if answer.act is Act.UNINSTALL:
            await self._status(addon, phase=Phase.UNINSTALLING)
            await self._helm(addon)
            await self._inside(self._objects.uninstall, addon)
        self.releases.pop(addon["metadata"]["uid"], None)

    async def source_changed(self, body: kopf.Body, type: str, **_: Any) -> None:
        """A watched Secret or ConfigMap is new, has changed or is gone: its addons learn of it."""
        source, kind = dict(body), body["kind"]
        value = "deleted" if type == "DELETED" else templates.checksum(source)
        await asyncio.to_thread(self._spread, kind, source, value)

    def _spread(self, kind: str, source: rules.Document, value: str) -> None:
        meta = source["metadata"]
        for addon in self._objects.addons_using(kind, meta["namespace"], meta["name"]):
            self._objects.note_checksum(addon, kind, meta["name"], value)

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
        """Label the addon, and let its Cluster own it."""
        meta, cluster = addon["metadata"], seen.cluster or {}
        reference = rules.owner(cluster)
        owners = [dict(item) for item in meta.get("ownerReferences") or []]
        known = meta.get("labels") or {}
        missing = dict(rules.labels(seen).items() - known.items())
        if missing or all(item["uid"] != reference["uid"] for item in owners):
            owners = [item for item in owners if item["uid"] != reference["uid"]] + [reference]
            patch = {"labels": missing, "ownerReferences": owners}
            self._objects.patch_addon(addon, {"metadata": patch})
            # Templates find both: else the next look would render other values, and Helm run again.
            meta.update(labels={**known, **missing}, ownerReferences=owners)

    def _watch(self, seen: rules.Seen) -> None:
        """Watch what an addon takes values from, and the identity that templates find."""
        found = {**seen.sources}
        identity = rules.watched_identity(seen)
        if identity is not None:
            found[identity["kind"], identity["metadata"]["name"]] = identity
        for (kind, _), source in found.items():
            if source is not None:
                self._objects.watch_source(kind, dict(source))

    async def _install(self, addon: rules.Document, seen: rules.Seen) -> None:
        uid, is_deployed = addon["metadata"]["uid"], _phase(addon) == Phase.DEPLOYED
        current = await self._repaired(addon)
        rendered = templates.render(addon, seen.sources, seen.context())
        wanted = Content.of(addon, rendered)
        if is_deployed and current is not None and current.content is None:
            # After a restart, what Helm has deployed is taken to be this.
            current = self.releases[uid] = dataclasses.replace(current, content=wanted)
        documents = tenant_install.documents(addon, rendered)
        if current is None or (current.status, current.content) != (Status.DEPLOYED, wanted):
            current = await self._upgrade(addon, current, wanted, documents)
            if current is None:
                return
        elif is_deployed:
            return
        await self._status(
            addon,
            phase=Phase.DEPLOYED,
            revision=current.revision,
            resources=templates.resources(documents),
            failureMessage=None,
        )

    async def _repaired(self, addon: rules.Document) -> Release | None:
        """The release of an addon, repaired if Helm was interrupted; None if there is none."""
        uid, status = addon["metadata"]["uid"], addon.get("status", {})
        current = self.releases.setdefault(uid, release.after_restart(status))
        if current is not None and current.is_interrupted:
            await self._status(addon, phase=Phase.PREPARING)
            if current.repaired() is None:
                await self._inside(self._objects.uninstall, addon)
            current = self.releases[uid] = current.repaired()
        return current

    async def _upgrade(
        self,
        addon: rules.Document,
        before: Release | None,
        wanted: Content,
        documents: list[Document],
    ) -> Release | None:
        """Let Helm install or upgrade a release, which makes objects in the addon's cluster.

        :returns: the new revision; None if the addon was deleted meanwhile.
        :raises RuntimeError: Helm does not take it.
        """
        uid, new = addon["metadata"]["uid"], release.pending(before)
        await self._status(addon, phase=rules.helm_phase(is_there=before is not None))
        json.dumps(wanted.values)  # a date, which YAML has and JSON has not, is an error
        self.releases[uid] = new
        if not await self._helm(addon):
            return None
        self.releases[uid] = before
        if not isinstance(wanted.values, dict):
            raise RuntimeError("Error: failed to parse values: they are no map")
        await self._inside(self._objects.install, addon, documents)
        made = self.releases[uid] = Release(wanted, new.revision)
        return made

    async def _helm(self, addon: rules.Document) -> bool:
        """A run of Helm: a pause, which the fault ``stuck`` makes endless.

        :returns: whether it came to its end: one for an addon that is deleted meanwhile is broken
            off, or kopf would not let the addon go before Helm's timeout.
        """
        await asyncio.sleep(self._options.install)
        while await asyncio.to_thread(self._stuck, addon["metadata"]["name"]):
            if await asyncio.to_thread(self._is_deleted_now, addon):
                return False
            await asyncio.sleep(STUCK_POLL)
        return True

    def _is_deleted_now(self, addon: rules.Document) -> bool:
        meta = addon["metadata"]
        if "deletionTimestamp" in meta:
            return False
        version, plural = f"{rules.GROUP}/{rules.VERSION}", rules.KINDS[addon["kind"]]
        found = self._objects.get(version, meta["namespace"], plural, meta["name"])
        return found is None or "deletionTimestamp" in found["metadata"]

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


def _phase(addon: rules.Document) -> str:
    return str(addon.get("status", {}).get("phase", Phase.UNKNOWN))


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
