# SPDX-License-Identifier: Apache-2.0
"""Helm in memory."""

from __future__ import annotations

from collections.abc import Callable
import copy
import dataclasses
import json
import pathlib
import threading

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.helm_client import releases
from magnum.drivers.k8s_capi_helm.model import Chart, Json, LiveRelease
from magnum.drivers.k8s_capi_helm.operations import Hold


class FakeHelm:
    """Helm in memory, with HelmClient's methods.

    :ivar refusal: raised by the next runs of helm, until it is set to None.
    :ivar refuses: what is wrong with given values, None if nothing is.
    :ivar is_half_way: whether values that are refused are so by the management cluster, half-way,
        so that Helm keeps them as a failed revision.
    :ivar runs: helm runs so far: (verb, release, values); verbs are apply, adopt and uninstall.
    :ivar renders: the objects of a release with given values, for who wants to see them before.
    :ivar reads: how often a live release was read.
    :ivar on_apply: called with each release that was applied; puts the chart's objects in place.
    :ivar on_uninstall: called with the namespace and the name of each release that was taken away.
    :ivar midway: called in the middle of each run, with the release as Helm keeps it then.
    """

    def __init__(self) -> None:
        self.refusal: errors.DriverError | None = None
        self.runs: list[tuple[str, str, Json]] = []
        self.refuses: Callable[[Json], errors.DriverError | None] = lambda values: None
        self.renders: Callable[[Json], list[Json]] = lambda values: []
        self.is_half_way = False
        self.on_apply: Callable[[LiveRelease], None] | None = None
        self.on_uninstall: Callable[[str, str], None] | None = None
        self.midway: Callable[[LiveRelease], None] | None = None
        self.reads = 0
        self.releases: dict[tuple[str, str], LiveRelease] = {}
        self._deployed: dict[tuple[str, str], LiveRelease] = {}
        self._lock = threading.RLock()

    def live(self, namespace: str, release: str) -> LiveRelease | None:
        self.reads += 1
        return copy.deepcopy(self.releases.get((namespace, release)))

    def deployed(self, namespace: str, release: str) -> LiveRelease | None:
        live = self.releases.get((namespace, release))
        if live is not None and live.status != "deployed":
            live = self._deployed.get((namespace, release))
        return copy.deepcopy(live)

    def apply(
        self,
        namespace: str,
        release: str,
        chart: Chart,
        values: Json,
        *,
        hold: Hold | None = None,
        adopt: bool = False,
    ) -> LiveRelease:
        with self._lock:
            self._run("adopt" if adopt else "apply", release, values)
            if hold is not None and hold.lost():
                raise errors.Busy("Another worker may have taken over this cluster.")
            before = self._recovered(namespace, release)
            wrong = self.refuses(values)
            if wrong is not None and not self.is_half_way:
                raise wrong
            live = LiveRelease(
                name=release,
                namespace=namespace,
                revision=before.revision + 1 if before else 1,
                status="deployed" if wrong is None else "failed",
                chart_name=chart.name,
                chart_version=chart.version,
                chart_family=chart.family,
                values=json.loads(json.dumps(values)),
            )
            self._begin(live, before)
            self.releases[namespace, release] = live
        if wrong is not None:
            raise wrong
        if self.on_apply is not None:
            self.on_apply(live)
        return copy.deepcopy(live)

    def die_of_a_refusal(self) -> Callable[[], None]:
        """From now on the conductor dies once helm has refused; returns what ends that."""
        refuses = self.refuses

        def die(values: Json) -> errors.DriverError | None:
            found = refuses(values)
            if found is not None:
                self.refusal = errors.HelmInterrupted("the conductor died")
            return found

        def revive() -> None:
            self.refusal, self.refuses = None, refuses

        self.refuses = die
        return revive

    def check(self, namespace: str, release: str, chart: Chart, values: Json) -> None:
        wrong = self.refuses(values)
        if wrong is not None and not self.is_half_way:
            raise wrong

    def preview(self, namespace: str, release: str, chart: Chart, values: Json) -> list[Json]:
        self.check(namespace, release, chart, values)
        return self.renders(values)

    def uninstall(self, namespace: str, release: str, *, hold: Hold | None = None) -> None:
        with self._lock:
            if (namespace, release) not in self.releases:
                return
            self._run("uninstall", release, {})
            live = self.releases[namespace, release]
            self.releases[namespace, release] = dataclasses.replace(live, status="uninstalling")
            self._midway(namespace, release)
            del self.releases[namespace, release]
        if self.on_uninstall is not None:
            self.on_uninstall(namespace, release)

    def pull(
        self, reference: str, *, repository: str | None, version: str | None, into: pathlib.Path
    ) -> pathlib.Path:
        raise errors.ChartNotFound(f"There is no chart '{reference}' in version {version}.")

    def version(self) -> str:
        if isinstance(self.refusal, errors.HelmUnusable):
            raise self.refusal
        return "3.21.4"

    def _begin(self, live: LiveRelease, before: LiveRelease | None) -> None:
        """Helm keeps a revision as pending first, and makes its objects then."""
        place, status = (live.namespace, live.name), "upgrade" if before else "install"
        if before is None:
            self._deployed.pop(place, None)
        elif before.status == "deployed":
            self._deployed[place] = before
        self.releases[place] = dataclasses.replace(live, status=f"pending-{status}")
        self._midway(*place)

    def _recovered(self, namespace: str, release: str) -> LiveRelease | None:
        """What is live; a revision that was never ended has failed."""
        live = self.releases.get((namespace, release))
        if live is not None and live.status in releases.PENDING:
            live = dataclasses.replace(live, status="failed")
        return live

    def _midway(self, namespace: str, release: str) -> None:
        if self.midway is not None:
            self.midway(self.releases[namespace, release])

    def _run(self, verb: str, release: str, values: Json) -> None:
        self.runs.append((verb, release, copy.deepcopy(values)))
        if self.refusal is not None:
            raise self.refusal
