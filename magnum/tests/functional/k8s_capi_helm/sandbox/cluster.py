# SPDX-License-Identifier: Apache-2.0
"""A cluster under test: what was asked for, what Magnum says of it, and whether that is true."""

from __future__ import annotations

import base64
from collections.abc import Callable
import json
import re
import time

import yaml

from magnum.tests.functional.k8s_capi_helm.sandbox import tenant, truth
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import MagnumApi, Rows
from magnum.tests.functional.k8s_capi_helm.sandbox.management import Json, management
from magnum.tests.functional.k8s_capi_helm.sandbox.truth import Intent
from magnum.tests.functional.k8s_capi_helm.sandbox.workload import Workload

#: Seconds between two looks at Magnum, each of which costs its API as much as a pass of a cluster.
INTERVAL = 1.0
#: Seconds in which a step has to be through on two busy cores.
LIMIT = 600.0
#: Seconds until a fault has to be readable in Magnum, on two cores that ten lives share.
TOLD_AFTER = 300.0
#: Seconds until the last trace of a deleted cluster has to be swept; it goes before the row.
SWEPT_AFTER = 60.0
_ROW_AFTER = 60.0
DEFAULT_GROUP = "default-worker"


class Cluster:
    """One cluster from its creation on.

    :ivar intent: what was asked for up to now.
    :ivar failed: nodegroups that are known to have failed and do not count.
    :ivar networks: how many networks the machines of a nodegroup are on, where it is not one.
    :ivar port: of the Kubernetes API.
    """

    port = 6443

    def __init__(self, owner: tenant.Tenant, magnum: MagnumApi, uuid: str, intent: Intent) -> None:
        self.tenant = owner
        self.magnum = magnum
        self.uuid = uuid
        self.name = ""
        self.intent = intent
        self.failed: set[str] = set()
        self.networks: dict[str, int] = {}
        self._workload: Workload | None = None
        self._release = ""

    def rows(self) -> Rows:
        """Magnum's rows; the cluster has to be there."""
        rows = self.magnum.rows(self.uuid)
        if rows is None:
            raise AssertionError(f"Magnum knows no cluster {self.uuid}")
        return rows

    def appear(self) -> None:
        """Wait for the row, which Magnum makes after its API has answered."""
        deadline = time.monotonic() + _ROW_AFTER
        while self.magnum.rows(self.uuid) is None:
            assert time.monotonic() < deadline, f"no row after {_ROW_AFTER:.0f} s"
            time.sleep(INTERVAL)
        self.name = self.rows().cluster["name"]

    def begun(self) -> None:
        """Wait until the release has a name."""
        self.until(lambda rows: bool(rows.release), "a release", _ROW_AFTER)

    @property
    def release(self) -> str:
        """Name of the Helm release and of the Cluster."""
        self._release = self._release or self.rows().release
        assert self._release, f"Magnum shows no name of the release of cluster {self.uuid}"
        return self._release

    def until(
        self, answer: Callable[[Rows], bool], what: str, limit: float = LIMIT, *, fail: bool = True
    ) -> Rows:
        """Look at Magnum until *answer* holds.

        :param what: is waited for, for the failure's text.
        :param fail: a FAILED cluster ends the wait.
        """
        deadline = time.monotonic() + limit
        while True:
            rows = self.rows()
            if answer(rows):
                return rows
            if fail and rows.status.endswith("_FAILED"):
                raise AssertionError(f"waiting for {what}, Magnum says {rows}")
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: not after {limit:.0f} s; Magnum says {rows}")
            time.sleep(INTERVAL)

    def refused(self, words: str, count: int, group: str = DEFAULT_GROUP) -> Rows:
        """Wait until a request for another number of machines is refused with these words.

        :param count: the machines of the nodegroup before and after.
        """

        def is_refused(rows: Rows) -> bool:
            # Magnum saves the cluster first and its nodegroup after it.
            return words in (rows.reason or "") and rows.groups[group]["node_count"] == count

        rows = self.until(is_refused, words, TOLD_AFTER, fail=False)
        assert rows.status == "UPDATE_FAILED", rows
        return rows

    def says(
        self, text: str, group: str = "", *, limit: float = TOLD_AFTER, fail: bool = True
    ) -> Rows:
        """Wait until the reason is this text, word for word.

        :param text: in it ``<time>`` stands for a time of today, ``<machine>`` for a machine that
            is there, or a MachineSet.
        :param group: whose reason is meant, the cluster's without.
        :param fail: a FAILED cluster ends the wait.
        """
        self.begun()
        thing = rf"(?P<thing>{self.release}-[a-z0-9-]+)"
        pattern = (
            re.escape(text)
            .replace("<time>", r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
            .replace("<machine>", thing)
        )
        said = ""

        def told(rows: Rows) -> bool:
            nonlocal said
            row = self.magnum.group(self.uuid, group) if group else rows.cluster
            said = row["status_reason"] or ""
            found = re.fullmatch(pattern, said)
            return found is not None and self._is_there(found.groupdict().get("thing"))

        try:
            return self.until(told, text, limit, fail=fail)
        except AssertionError as error:
            raise AssertionError(f"{group or 'it'} says {said!r}: {error}") from error

    def _is_there(self, name: str | None) -> bool:
        """Whether that machine or set of machines is there; without a name nothing is asked."""
        if name is None:
            return True
        found = [
            one["metadata"]["name"]
            for kind in ("Machine", "MachineSet")
            for one in management().objects(kind, self.tenant.namespace)
        ]
        return name in found

    def steady(self, holds: Callable[[Rows], bool], seconds: float) -> Rows:
        """Look at Magnum for some time, all of which *holds* has to hold; the last rows."""
        deadline = time.monotonic() + seconds
        rows = self.rows()
        while time.monotonic() < deadline:
            assert holds(rows), rows
            time.sleep(INTERVAL)
            rows = self.rows()
        return rows

    def complete(
        self, word: str = "UPDATE", limit: float = LIMIT, *, none_fails: bool = False
    ) -> Rows:
        """Wait until Magnum says that all of the intent is there; it has to be true at once.

        :param word: CREATE or UPDATE.
        :param none_fails: a nodegroup that fails ends the wait.
        :raises AssertionError: Magnum fails, takes too long, or lies.
        """
        believed: set[str] = set()

        def said(rows: Rows) -> bool:
            if none_fails:
                failed = [name for name in rows.groups if rows.has_failed(name)]
                assert not failed, [self.magnum.group(self.uuid, name) for name in failed]
            told = self._told(rows)
            for name in sorted(told - believed):
                self._believe(rows, f"nodegroup {name}", name)
                believed.add(name)
            return rows.status == f"{word}_COMPLETE" and self._is_all(rows, told)

        if word == "UPDATE":
            believed |= self._told(self.rows())  # the request is not about them
        rows = self.until(said, f"{word}_COMPLETE", limit)
        self._believe(rows, "the cluster")
        self._check_rows(rows)
        return rows

    def check_release(self) -> Json:
        """Helm's release: deployed, with the counts of the intent and without any secret."""
        release, name = self._live_release(), self.release
        assert release["info"]["status"] == "deployed", release["info"]
        values: Json = release["config"]
        counts = {group["name"]: group["machineCount"] for group in values["nodeGroups"]}
        assert counts == dict(self.intent.groups), f"{name}: values have {counts}"
        assert values["controlPlane"]["machineCount"] == self.intent.control_plane, values
        text = json.dumps(release)
        for secret, piece in self.secret_texts():
            assert piece not in text, f"{name}: the release holds what is in Secret {secret}"
        return values

    def workload(self) -> Workload:
        """The tenant's way in, with a certificate that Magnum signed."""
        if self._workload is None:
            self._workload = self.new_workload()
        return self._workload

    def new_workload(self) -> Workload:
        """The same with a certificate that is signed now."""
        return Workload(self.magnum, self.uuid, self.rows().cluster["api_address"])

    def left(self) -> list[str]:
        """What there is besides Magnum's row and its certificates; the Lease apart."""
        here = management().left(self.tenant.namespace)
        kept = [one for one in here if not one.startswith("leases/")]
        return [*kept, *self.tenant.left()]

    def gone(self, limit: float = LIMIT) -> None:
        """Wait until Magnum forgets the cluster; at that moment nothing of it may be left."""
        self.forgotten(limit)
        left = [*self.left(), *tenant.certificates(self.name)]
        assert not left, f"Magnum has forgotten the cluster, but there is: {left}"

    def forgotten(self, limit: float = LIMIT) -> None:
        """Wait until Magnum forgets the cluster, whatever else the project has."""
        deadline = time.monotonic() + limit
        rows = self.magnum.rows(self.uuid)
        while rows is not None:
            assert rows.status != "DELETE_FAILED", rows
            assert time.monotonic() < deadline, f"not deleted after {limit:.0f} s: {rows}"
            time.sleep(INTERVAL)
            rows = self.magnum.rows(self.uuid)

    def swept(self) -> None:
        """Wait until the Lease's tombstone is swept too."""
        deadline = time.monotonic() + SWEPT_AFTER
        while management().objects("Lease", self.tenant.namespace):
            assert time.monotonic() < deadline, "the Lease is still there"
            time.sleep(INTERVAL)

    def _told(self, rows: Rows) -> set[str]:
        """Groups that Magnum calls complete with the count that was asked for."""
        counts = self.intent.counts
        return {
            name
            for name, row in rows.groups.items()
            if row["status"].endswith("_COMPLETE") and counts.get(name) == row["node_count"]
        }

    def _is_all(self, rows: Rows, told: set[str]) -> bool:
        return told == set(self.intent.counts) and set(rows.groups) - told == self.failed

    def untruths(self) -> list[str]:
        """What would be wrong now in "the cluster is complete"; empty where it is true."""
        look = truth.Look(self.tenant, self.release)
        wrong = truth.untruths(look, self.intent)
        return wrong + truth.node_untruths(self.workload(), look, self.intent)

    def _believe(self, rows: Rows, who: str, group: str | None = None) -> None:
        if group is not None:
            look = truth.Look(self.tenant, self.release)
            wrong = truth.group_untruths(look, self.intent, group)
        else:
            wrong = self.untruths()
        assert not wrong, f"Magnum says that {who} is complete: {rows}, but {'; '.join(wrong)}"

    def _check_rows(self, rows: Rows) -> None:
        row = rows.cluster
        assert not row.get("status_reason"), rows
        assert row["coe_version"] == self.intent.version, row["coe_version"]
        floating = self.tenant.floating_ips()
        addresses = {f"https://{address}:{self.port}" for address in floating}
        assert row["api_address"] in addresses, (row["api_address"], addresses)
        assert row["master_count"] == self.intent.control_plane, row["master_count"]
        # Magnum adds up all rows, those of failed groups too.
        failed = sum(rows.groups[name]["node_count"] for name in self.failed)
        assert row["node_count"] == sum(self.intent.groups.values()) + failed, row["node_count"]
        for name, count in self.intent.counts.items():
            group = self.magnum.group(self.uuid, name)
            assert not group.get("status_reason"), (name, group["status_reason"])
            found = len(set(group["node_addresses"] or ()) - floating)
            wanted = count * self.networks.get(name, 1)
            assert found == wanted, f"{name}: {found} addresses of {count} machines"

    def check_openstack(self) -> None:
        """What the tenant has in OpenStack for a cluster with a network of its own."""
        own = self.tenant
        balancers = own.load_balancers()
        assert list(balancers.values()) == ["ACTIVE"], balancers
        assert len(own.floating_ips()) == 1, own.floating_ips()
        assert len(own.networks()) == 1, own.networks()
        assert len(own.security_groups()) == 2, own.security_groups()
        assert len(own.credentials()) == 1, own.credentials()
        ports = [one for one in own.left() if one.startswith("port ")]
        assert len(ports) >= sum(self.intent.counts.values()) + 2, ports

    def _live_release(self) -> Json:
        release = management().release(self.tenant.namespace, self.release)
        assert release is not None, "there is no Helm release"
        return release

    def secret_texts(self) -> list[tuple[str, str]]:
        """Pieces of this cluster's Secrets that must stand nowhere else."""
        found = []
        for secret in management().objects("Secret", self.tenant.namespace):
            name = secret["metadata"]["name"]
            if not name.startswith(self.release):
                continue
            for key, packed in (secret.get("data") or {}).items():
                text = base64.b64decode(packed).decode(errors="replace")
                if key == "tls.key":
                    found += [(name, packed), (name, text.splitlines()[1])]
                elif key == "clouds.yaml":
                    login = yaml.safe_load(text)["clouds"]["openstack"]["auth"]
                    found += [(name, packed), (name, login["application_credential_secret"])]
        assert len(found) >= 8, f"only {len(found)} secret texts: the check would prove nothing"
        return found
