# SPDX-License-Identifier: Apache-2.0
"""``credentials`` asks Keystone now, and says of each credential what it is."""

from __future__ import annotations

import datetime
import types
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud import Services
from magnum.drivers.k8s_capi_helm.cloud.resources import app_credentials
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CommandCase,
    CRITICAL,
    OK,
    UNKNOWN,
    WARNING,
)
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE, SECRET_TEXT

CREDENTIAL = f"id-magnum-{RELEASE}"


class TestCredentials(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.made()

    def rows(self, *argv: str, status: int = OK) -> list[dict[str, Any]]:
        printed = self.command("credentials", "-f", "json", *argv)
        self.assertEqual(status, printed.status, printed.out + printed.error)
        self.assertNotIn(SECRET_TEXT, printed.out + printed.error)
        return printed.rows()

    def one(self, status: int = OK) -> dict[str, Any]:
        [row] = self.rows(status=status)
        return row

    def test_one_that_works(self) -> None:
        self.assertEqual(
            {
                "Cluster": "demo",
                "UUID": self.cluster().uuid,
                "User": "u1",
                "Credential": CREDENTIAL,
                "Status": "accepted",
                "Expires": "never",
                "Next": "",
            },
            self.one(),
        )

    def test_one_that_is_refused(self) -> None:
        self.cloud.dead.add(CREDENTIAL)
        row = self.one(CRITICAL)
        self.assertEqual("refused", row["Status"])
        self.assertIn(f"openstack coe credential rotate {self.cluster().uuid}", row["Next"])

    def test_one_that_ends(self) -> None:
        for days, status in ((31, OK), (29, WARNING), (6, CRITICAL)):
            end = self.wall_clock() + datetime.timedelta(days=days, minutes=5)
            self.cloud.ends = {CREDENTIAL: end}
            self.assertEqual(days, self.one(status)["Expires"])

    def test_a_secret_that_is_gone(self) -> None:
        self.kube.remove(names.SECRET, NAMESPACE, f"{RELEASE}-cloud-credentials")
        row = self.one(CRITICAL)
        self.assertEqual(("missing", ""), (row["Status"], row["Credential"]))

    def test_a_keystone_that_does_not_answer(self) -> None:
        self.cloud.refusal = errors.CloudUnreachable("Keystone does not answer.")
        row = self.one(WARNING)
        self.assertEqual(("unknown", "unknown", ""), (row["Status"], row["Expires"], row["Next"]))

    def test_a_keystone_that_tells_nothing_of_other_users(self) -> None:
        self.cloud.ends_refusal = errors.CloudRefused("Not for you.")
        row = self.one()
        self.assertEqual(("accepted", "unknown"), (row["Status"], row["Expires"]))

    def test_one_that_is_retired(self) -> None:
        self.driver.rotate_credential(self.context, self.cluster())
        retired = [row for row in self.rows() if row["Status"].startswith("retired since ")]
        self.assertEqual([CREDENTIAL], [row["Credential"] for row in retired])

    def test_the_worst_of_several_counts(self) -> None:
        """The one in use is refused, and stands before the retired one."""
        self.driver.rotate_credential(self.context, self.cluster())
        self.cloud.dead = set(self.cloud.credentials) - {CREDENTIAL}
        statuses = [row["Status"] for row in self.rows(status=CRITICAL)]
        self.assertEqual("refused", statuses[0])
        self.assertRegex(statuses[1], "^retired since ")

    def test_a_management_cluster_that_is_away(self) -> None:
        self.kube.unreachable = True
        printed = self.command("credentials")
        self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))

    def test_whose(self) -> None:
        for argv in (("demo",), (RELEASE,), ("--project", "p1")):
            self.assertEqual(1, len(self.rows(*argv)), argv)
        self.assertEqual([], self.rows("--project", "p2"))
        self.assertEqual(UNKNOWN, self.command("credentials", "nothing").status)


class TestExpiries(CommandCase):
    def expiries(self, *listed: Any) -> Any:
        """What the real port makes of Keystone's list."""
        client = types.SimpleNamespace(application_credentials=lambda user: iter(listed))
        keystone = types.SimpleNamespace(session=types.SimpleNamespace(timeout=None), client=client)
        clients: Any = types.SimpleNamespace(keystone=lambda: keystone)
        return app_credentials.credential_expiries(Services(clients), "u1", "p1")

    def test_of_this_project_only_and_with_a_zone(self) -> None:
        def listed(name: str, project: str | None, end: str | None) -> Any:
            return types.SimpleNamespace(id=name, project_id=project, expires_at=end, name=name)

        found = self.expiries(
            listed("a", "p1", "2027-01-01T10:00:00.000000"),
            listed("b", None, None),
            listed("c", "p2", None),
        )
        end = datetime.datetime(2027, 1, 1, 10, tzinfo=datetime.timezone.utc)
        self.assertEqual({"a": end, "b": None}, found)
