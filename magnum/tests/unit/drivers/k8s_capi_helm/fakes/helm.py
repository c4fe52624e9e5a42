# SPDX-License-Identifier: Apache-2.0
"""Helm in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import copy
import dataclasses
import datetime
import json
import pathlib
import threading

from magnum.drivers.k8s_capi_helm import chart_store, errors
from magnum.drivers.k8s_capi_helm.helm import release_secret
from magnum.drivers.k8s_capi_helm.lease import HeldLease
from magnum.drivers.k8s_capi_helm.model import Chart, Json, LiveRelease


class FakeHelm:
    """Helm in memory, with HelmClient's methods.

    :ivar refusal: raised by the next runs of helm, until it is set to None.
    :ivar refuses: what is wrong with given values, None if nothing is.
    :ivar check_refusal: with what a check of values ends, whatever they are.
    :ivar is_half_way: whether values that are refused are so by the management cluster, half-way,
        so that Helm keeps them as a failed revision.
    :ivar runs: helm runs so far: (verb, release, values); verbs are apply, adopt and uninstall.
    :ivar renders: the objects of a release with given values, for who wants to see them before.
    :ivar releases: the newest revision of each release.
    :ivar reads: how often a live release was read.
    :ivar lists: how often all deployed releases of a namespace were.
    :ivar on_apply: called with each release that was applied; puts the chart's objects in place.
    :ivar on_uninstall: called with the namespace and the name of each release that was taken away.
    :ivar midway: called in the middle of each run, with the release as Helm keeps it then.
    """

    def __init__(self) -> None:
        self.refusal: errors.DriverError | None = None
        self.runs: list[tuple[str, str, Json]] = []
        self.check_refusal: errors.DriverError | None = None
        self.refuses: Callable[[Json], errors.DriverError | None] = lambda values: None
        self.renders: Callable[[Json], list[Json]] = lambda values: []
        self.is_half_way = False
        self.on_apply: Callable[[LiveRelease], None] | None = None
        self.on_uninstall: Callable[[str, str], None] | None = None
        self.midway: Callable[[LiveRelease], None] | None = None
        self.reads = self.lists = 0
        self.releases: dict[tuple[str, str], LiveRelease] = {}
        #: Revisions of each release by number, as Helm keeps them in a Secret each.
        self.history: dict[tuple[str, str], dict[int, LiveRelease]] = {}
        self._lock = threading.RLock()

    def live(self, namespace: str, release: str) -> LiveRelease | None:
        self.reads += 1
        live = self.releases.get((namespace, release))
        if live is None:
            return None
        kept = {**self.history.get((namespace, release), {}), live.revision: live}
        whole = [number for number, one in kept.items() if one.status in release_secret.WHOLE]
        return dataclasses.replace(copy.deepcopy(live), whole=max(whole, default=0))

    def deployed_releases(self, namespace: str) -> dict[str, LiveRelease]:
        self.lists += 1
        reads, found = self.reads, {}
        for place, release in self.releases:
            live = self.live(place, release) if place == namespace else None
            if live is not None and live.status == "deployed":
                found[release] = live
        self.reads = reads
        return found

    def deployed_release(self, namespace: str, release: str) -> LiveRelease | None:
        live = self.releases.get((namespace, release))
        if live is not None and live.status != "deployed":
            kept = self.history.get((namespace, release), {})
            whole = [one for one in kept.values() if one.status == "deployed"]
            live = max(whole, key=lambda one: one.revision, default=None)
        return copy.deepcopy(live)

    def show(self, namespace: str, release: str, shown: Mapping[int, str]) -> None:
        """Keep some revisions only, with these statuses: what a loss or a restore leaves."""
        place = namespace, release
        found = self.history[place]
        kept = {one: dataclasses.replace(found[one], status=shown[one]) for one in sorted(shown)}
        self.history[place] = kept
        self.releases.pop(place, None)
        if kept:
            self.releases[place] = kept[max(kept)]

    def apply(
        self,
        namespace: str,
        release: str,
        chart: Chart,
        values: Json,
        *,
        held_lock: HeldLease | None = None,
        adopt: bool = False,
    ) -> LiveRelease:
        with self._lock:
            self._run("adopt" if adopt else "apply", release, values)
            if held_lock is not None and held_lock.is_lost():
                raise errors.Busy("Another Magnum conductor may have taken over this cluster.")
            before = self._recovered(namespace, release)
            wrong = self.refuses(values)
            if wrong is not None and not self.is_half_way:
                raise wrong
            number = before.revision + 1 if before else 1
            live = LiveRelease(
                name=release,
                namespace=namespace,
                revision=number,
                status="deployed" if wrong is None else "failed",
                chart_name=chart.name,
                chart_version=chart.version,
                chart_family=chart.family,
                values=json.loads(json.dumps(values)),
                whole=number if wrong is None else 0,
                takes_prefix=chart_store.uses_tenant_registry(chart),
                deployed_at=datetime.datetime.now(datetime.timezone.utc).timestamp(),
            )
            self._begin(live, before)
            self._end(live)
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
        wrong = self.check_refusal or self.refuses(values)
        if wrong is not None and not self.is_half_way:
            raise wrong

    def preview(
        self, namespace: str, release: str, chart: Chart, values: Json, *, adopt: bool = False
    ) -> list[Json]:
        self.check(namespace, release, chart, values)
        return self.renders(values)

    def uninstall(
        self, namespace: str, release: str, *, held_lock: HeldLease | None = None
    ) -> None:
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
        kept = self.history.setdefault(place, {})
        if before is None:
            kept.clear()
        else:
            kept[before.revision] = before
        begun = dataclasses.replace(live, status=f"pending-{status}")
        self.releases[place] = kept[live.revision] = begun
        self._midway(*place)

    def _end(self, live: LiveRelease) -> None:
        """Helm marks what was deployed before as superseded when a revision is through."""
        place = live.namespace, live.name
        kept = self.history[place]
        if live.status == "deployed":
            for number, one in kept.items():
                if one.status == "deployed":
                    kept[number] = dataclasses.replace(one, status="superseded")
        self.releases[place] = kept[live.revision] = live

    def _recovered(self, namespace: str, release: str) -> LiveRelease | None:
        """What is live; a revision that was never ended has failed."""
        live = self.releases.get((namespace, release))
        if live is not None and live.status in release_secret.PENDING:
            live = dataclasses.replace(live, status="failed")
        return live

    def _midway(self, namespace: str, release: str) -> None:
        if self.midway is not None:
            self.midway(self.releases[namespace, release])

    def _run(self, verb: str, release: str, values: Json) -> None:
        self.runs.append((verb, release, copy.deepcopy(values)))
        if self.refusal is not None:
            raise self.refusal
