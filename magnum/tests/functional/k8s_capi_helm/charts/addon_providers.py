# SPDX-License-Identifier: Apache-2.0
"""Both addon providers, the real one and the one that the sandbox plays, behind the same questions.

The real one is cluster-api-addon-provider, where a checkout of it is named by
$ADDON_PROVIDER; it runs in a Python of its own, named by $K8S_CAPI_HELM_ADDON_PROVIDER_PYTHON
(``tox -e addons`` makes one). Nothing of it is part of this project.
https://github.com/azimuth-cloud/cluster-api-addon-provider
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field
import json
import os
from pathlib import Path
import subprocess
import tempfile
from typing import Any, Protocol

import kopf

from magnum.tests.functional.k8s_capi_helm.charts.object_server import ObjectServer
from magnum.tests.functional.k8s_capi_helm.charts.rendering import NAMESPACE, Object
from tools import conversation

CHECKOUT, PYTHON = "ADDON_PROVIDER", "K8S_CAPI_HELM_ADDON_PROVIDER_PYTHON"
#: Seconds that the real one may take for an answer.
TIMEOUT = 60.0
GROUP = "addons.stackhpc.com"
DONE, RETRY, FAILED, ERROR = "done", "retry", "failed", "error"


class NotGiven(Exception):
    """There is no real addon provider; the text says how to give one."""


@dataclass(frozen=True)
class World:
    """Everything that is there when an addon is looked at.

    :ivar objects: Cluster, OpenStackCluster, Secrets and ConfigMaps.
    :ivar release: status that Helm tells of the addon's release, as ``pending-install``; None
        without one.
    :ivar has_kubeconfig: whether Cluster API has written how the addon's cluster is reached.
    """

    addon: Object
    objects: tuple[Object, ...]
    release: str | None = None
    has_kubeconfig: bool = True

    @property
    def number(self) -> int:
        """Helm's number of the release's newest revision, which the addon's status may not know."""
        known = int((self.addon.get("status") or {}).get("revision") or 0)
        interrupted = self.release in ("pending-upgrade", "pending-rollback")
        return known + interrupted + (self.release == "pending-rollback")


@dataclass(frozen=True)
class Outcome:
    """What an addon provider makes of it.

    :ivar end: done; retry, after the usual delay; failed, until the addon changes; error, which
        no handler catches, so that kopf retries for ever.
    :ivar phases: of the addon, one after the other.
    :ivar labels: those of the addon provider that the addon has now.
    :ivar annotations: the same.
    :ivar revision: of Helm, in the addon's status; 0 without one.
    :ivar owned: whether the Cluster owns the addon.
    :ivar watched: kind and name of the objects whose changes are seen.
    :ivar chart: what helm installs: the chart of a HelmRelease, the objects of Manifests by file.
    :ivar values: with what values.
    """

    end: str
    phases: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    revision: int = 0
    owned: bool = False
    watched: tuple[tuple[str, str], ...] = ()
    chart: Any = None
    values: Any = None
    #: Why, in the provider's own words: these two are not compared.
    error: str = field(default="", compare=False)
    message: str = field(default="", compare=False)


class Provider(Protocol):
    """An addon provider."""

    def updated(self, world: World) -> Outcome:
        """An addon is new, or has changed, or the provider has started."""

    def deleted(self, world: World) -> Outcome:
        """An addon is to go."""

    def source_changed(self, world: World, source: Object, event: str) -> Outcome:
        """There is a watch event of a ConfigMap or Secret: ADDED, MODIFIED or DELETED."""

    def close(self) -> None:
        """End what was started."""


class _OnServer:
    """What both need: an API server with the objects, and what can be read from it afterwards."""

    def __init__(self) -> None:
        self.server = ObjectServer()
        self.server.__enter__()

    def close(self) -> None:
        self.server.__exit__()

    def fill(self, world: World) -> Object:
        """Put a world on the server.

        :returns: the addon as it is there.
        """
        self.server.clear()
        for one in world.objects:
            self.server.put(one)
        if world.has_kubeconfig:
            self.server.put(_kubeconfig(self.server.kubeconfig, world))
        return self.server.put(world.addon)

    def outcome(self, addon: Object, end: str, **more: Any) -> Outcome:
        meta, kind = addon["metadata"], addon["kind"]
        found = self.server.get(kind, meta["namespace"], meta["name"])
        after = found["metadata"]
        phases = [(addon.get("status") or {}).get("phase")]
        for _, path, body in self.server.writes:
            if path.endswith("/status") and body["status"]["phase"] != phases[-1]:
                phases.append(body["status"]["phase"])
        return Outcome(
            end,
            phases=tuple(phases[1:]),
            labels=_ours(after.get("labels") or {}),
            annotations=_ours(after.get("annotations") or {}),
            revision=(found.get("status") or {}).get("revision") or 0,
            owned=any(one["kind"] == "Cluster" for one in after.get("ownerReferences") or []),
            watched=self.server.labelled(f"{GROUP}/watch"),
            **more,
        )


class Played(_OnServer):
    """The one of the sandbox: ``sandbox.addons``."""

    def updated(self, world: World) -> Outcome:
        from sandbox.addons.release import Content, Release, Status

        addon = self.fill(world)
        played = self._operator()
        uid = addon["metadata"]["uid"]
        before = Content({}, {"of": "before"})
        status = world.release and Status(world.release)
        played.releases[uid] = Release(before, world.number, status) if status else None
        end, error = _end(played.updated(body=kopf.Body(addon)))
        release = played.releases.get(uid) if end == DONE else None
        computed = {}
        if release is not None and release.content not in (None, before):
            computed = {"chart": release.content.chart, "values": release.content.values}
        return self.outcome(addon, end, **_as_json(computed), **_told(error))

    def deleted(self, world: World) -> Outcome:
        addon = self.fill(world)
        end, error = _end(self._operator().deleted(body=kopf.Body(addon)))
        return self.outcome(addon, end, **_told(error))

    def source_changed(self, world: World, source: Object, event: str) -> Outcome:
        addon = self.fill(world)
        body: Any = self.server.put(source)
        end, error = _end(self._operator().source_changed(body=body, type=event))
        return self.outcome(addon, end, **_told(error))

    def _operator(self) -> Any:
        from sandbox.addons.objects import Objects
        from sandbox.addons.operator import Operator, Options
        from sandbox.management.connection import Connection

        return Operator(Objects(Connection(self.server.kubeconfig)), Options(install=0.0))


class Real(_OnServer):
    """cluster-api-addon-provider itself.

    :raises NotGiven: there is no checkout, or no Python that can run it.
    """

    def __init__(self) -> None:
        checkout, python = os.environ.get(CHECKOUT), os.environ.get(PYTHON)
        if not checkout or not python:
            raise NotGiven(
                "the real addon provider is not compared with: name a checkout of "
                f"azimuth-cloud/cluster-api-addon-provider in {CHECKOUT}, and run tox -e addons"
            )
        super().__init__()
        self._directory = tempfile.TemporaryDirectory()
        kubeconfig = Path(self._directory.name, "kubeconfig")
        kubeconfig.write_text(json.dumps(self.server.kubeconfig))
        self._process = subprocess.Popen(
            [python, "-W", "ignore", str(Path(__file__).with_name("addon_provider_process.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                "PATH": os.environ["PATH"],
                "PYTHONPATH": str(Path(checkout).resolve()),
                "PYTHONDONTWRITEBYTECODE": "1",
                "KUBECONFIG": str(kubeconfig),
            },
        )

    def close(self) -> None:
        super().close()
        self._process.communicate(timeout=TIMEOUT)
        self._directory.cleanup()

    def updated(self, world: World) -> Outcome:
        addon = self.fill(world)
        answer = self._ask("handle_addon_updated", {"body": addon}, world)
        return self._outcome(addon, answer)

    def deleted(self, world: World) -> Outcome:
        addon = self.fill(world)
        return self._outcome(addon, self._ask("handle_addon_deleted", {"body": addon}, world))

    def source_changed(self, world: World, source: Object, event: str) -> Outcome:
        addon = self.fill(world)
        body = self.server.put(source)
        meta = body["metadata"]
        arguments = {"type": event, "name": meta["name"], "namespace": meta["namespace"]}
        handler = f"handle_{body['kind'].lower()}_event"
        return self._outcome(addon, self._ask(handler, {**arguments, "body": body}, world))

    def _outcome(self, addon: Object, answer: Object) -> Outcome:
        ends = {"TemporaryError": RETRY, "PermanentError": FAILED}
        end = ends.get(answer["end"], answer["end"])
        upgrades = [one for one in answer["helm"] if one["verb"] == "upgrade"]
        computed: dict[str, Any] = {}
        if end == DONE and upgrades:
            computed = {key: upgrades[-1][key] for key in ("chart", "values")}
        failure = {key: answer[key] for key in ("error", "message")}
        return self.outcome(addon, end, **_as_json(computed), **failure)

    def _ask(self, handler: str, arguments: Object, world: World) -> Object:
        before = {"chart": {"name": "before", "version": "0"}, "values": {"of": "before"}}
        asked = {
            "handler": handler,
            "arguments": arguments,
            "status": world.release,
            "number": world.number,
            "deployed": before if world.release else None,
        }
        try:
            found: Object = conversation.ask(self._process, _as_json(asked), TIMEOUT)
        except EOFError:
            raise AssertionError(
                f"the addon provider ended or took {TIMEOUT} s: {handler}"
            ) from None
        return found


def _kubeconfig(kubeconfig: Object, world: World) -> Object:
    """The Secret with which the addon's cluster is reached; it is the same server."""
    name = f"{world.addon['spec']['clusterName']}-kubeconfig"
    value = base64.b64encode(json.dumps(kubeconfig).encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": {"value": value},
    }


def _end(handler: Any) -> tuple[str, Exception | None]:
    """How a handler of the played one ends, and its error."""
    try:
        asyncio.run(handler)
    except kopf.TemporaryError as error:
        return RETRY, error
    except kopf.PermanentError as error:
        return FAILED, error
    except Exception as error:
        return ERROR, error
    return DONE, None


def _told(error: Exception | None) -> dict[str, str]:
    if error is None:
        return {}
    return {"error": type(error).__name__, "message": str(error)}


def _ours(found: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Labels or annotations of the addon provider."""
    return tuple(sorted((key, value) for key, value in found.items() if GROUP in key))


def _as_json(found: dict[str, Any]) -> dict[str, Any]:
    """The same in what JSON has; a date of YAML is a text then."""
    result: dict[str, Any] = json.loads(json.dumps(found, default=str))
    return result
