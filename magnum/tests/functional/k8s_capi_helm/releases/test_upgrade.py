# SPDX-License-Identifier: Apache-2.0
"""A cluster of Magnum 20 goes on under 21, 22 and 23: no node rolls, each request is carried out.

Only Magnum is upgraded, as its operators do: its programs end, ``magnum-db-manage upgrade`` of the
next release runs, and that release's programs start.
"""

from __future__ import annotations

import sqlalchemy

from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer, VERSION
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management
from sandbox import cloud, database, stack
from sandbox.cloud import magnum_release, watched_conductor
from sandbox.cloud.conductor_layout import Layout, RABBIT

_OLD = "v1.33.8"
_CONDUCTOR = "magnum-conductor-1"
#: Seconds, several passes of Magnum's periodic tasks, for which no server may change.
_STEADY = 30.0
#: Blocked hubs that are printed of each release.
_SHOWN = 5


class Upgrade(Life):
    """One control plane machine and one worker; a request after each upgrade of Magnum."""

    name = "releases"

    def new_customer(self) -> Customer:
        running = Layout.of(setting.state()).release
        assert running is not None and running.major == 20, running
        return super().new_customer()

    @step
    def create(self) -> None:
        self.customer.create(version=_OLD).complete("CREATE")
        self.cluster.check_release()

    @step
    def under_21(self) -> None:
        """More workers; those that are there stay."""
        before = self._move_to("21")
        self.customer.resize(2)
        self.cluster.complete()
        assert before < set(self.customer.tenant.servers())

    @step
    def under_22(self) -> None:
        """The next minor release of Kubernetes, and a nodegroup."""
        self._move_to("22")
        self.customer.upgrade(VERSION)
        self.cluster.complete()
        assert self.cluster.rows().cluster["coe_version"] == VERSION
        self.customer.create_group("second", 1)
        self.cluster.complete()

    @step
    def under_23(self) -> None:
        """What no earlier release could: another credential."""
        self._move_to("23")
        known = self.customer.tenant.credentials()
        self.customer.magnum.rotate_credential(self.cluster.uuid)
        assert known < self.customer.tenant.credentials()
        self.customer.resize(1)
        self.cluster.complete()
        self.cluster.check_release()

    @ending
    def delete(self) -> None:
        self.customer.delete()
        self.customer.leave()

    def _move_to(self, number: str) -> set[str]:
        """Upgrade Magnum; returns the servers, which are the same before and after."""
        state, release = setting.state(), magnum_release.choose(number)
        self._show_blocked_hubs()
        servers, revision = set(self.customer.tenant.servers()), self._revision()
        before = self.cluster.rows()
        cloud.stop_magnum(state)
        # Health that is there again has been written by a pass of the new release.
        with sqlalchemy.create_engine(database.url(state)).begin() as connection:
            connection.execute(sqlalchemy.text("UPDATE cluster SET health_status = NULL"))
        stack.up(state, layout=Layout(RABBIT, magnum=release.version))
        rows = self.cluster.until(lambda rows: rows.health == "HEALTHY", "health", fail=False)
        self.say(f"Magnum {release.version}: {rows.status}, {rows.health}")
        assert rows.status == before.status, rows
        self.cluster.steady(lambda _: servers == set(self.customer.tenant.servers()), _STEADY)
        assert revision == self._revision()
        return servers

    def _revision(self) -> int:
        release = management().release(self.customer.tenant.namespace, self.cluster.release)
        assert release is not None
        return int(release["version"])

    def _show_blocked_hubs(self) -> None:
        log = setting.state().log(_CONDUCTOR).read_text(encoding="utf-8", errors="replace")
        gaps = sorted(watched_conductor.gaps(log), reverse=True)
        self.say(f"{len(gaps)} times the hub was blocked for 50 ms or more; the longest:")
        for gap in gaps[:_SHOWN]:
            self.say(f"{gap.milliseconds} ms, processor {gap.processor} ms: {gap.where}")


class TestUpgrade(LifeCase, life=Upgrade):
    """Create under Magnum 20; 21, 22, 23; delete."""
