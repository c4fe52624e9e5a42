# SPDX-License-Identifier: Apache-2.0
"""Another release of Magnum, or another driver, under clusters that go on living."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy

from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer
from magnum.tests.functional.k8s_capi_helm.sandbox.life import Life
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management
from sandbox import cloud, database, stack
from sandbox.cloud import magnum_release, watched_conductor
from sandbox.cloud.conductor_layout import Layout, RABBIT

OLD = "v1.33.8"
_CONDUCTOR = "magnum-conductor-1"
#: Seconds, several passes of Magnum's periodic tasks, for which no server may change.
_STEADY = 30.0


class Moving(Life):
    """A life that begins on Magnum 20.

    :cvar driver: that Magnum has in the beginning; empty for this project's.
    """

    driver = ""

    def new_customer(self) -> Customer:
        layout = Layout.of(setting.state())
        assert layout.release is not None and layout.release.major == 20, layout
        assert layout.driver == self.driver, layout
        return super().new_customer()

    def move_to(self, number: str, meanwhile: Callable[[], None] = lambda: None) -> set[str]:
        """Have this project's driver on a release of Magnum.

        :param meanwhile: what the operator does while Magnum is stopped.
        :returns: the servers, which are the same before and after, as is the Helm release.
        """
        state, release = setting.state(), magnum_release.choose(number)
        self._show_blocked_hubs()
        servers, revision = set(self.customer.tenant.servers()), self._revision()
        before = self.cluster.rows()
        cloud.stop_magnum(state)
        # Health that is there again has been written by a pass of the new release.
        with sqlalchemy.create_engine(database.url(state)).begin() as connection:
            connection.execute(sqlalchemy.text("UPDATE cluster SET health_status = NULL"))
        meanwhile()
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
        for line in watched_conductor.summary(log):
            self.say(line)
