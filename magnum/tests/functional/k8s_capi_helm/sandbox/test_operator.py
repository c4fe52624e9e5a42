# SPDX-License-Identifier: Apache-2.0
"""An operator with the command, beside a tenant's cluster: what it prints is what is so."""

from __future__ import annotations

import tarfile

import yaml

from magnum.drivers.k8s_capi_helm.commands.output.secret_mask import SecretMask
from magnum.tests.functional.k8s_capi_helm.sandbox import operator_command, setting
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import VERSION
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step

_OLD = "v1.33.8"
_NO_START = "server-fails"
_WHY = "Failed to deploy instance: asked for with the fault server-fails"


class Operated(Life):
    """A cluster that is well, that breaks, that heals and that is deleted, seen by its operator."""

    name = "operated"

    @step
    def check(self) -> None:
        """Nothing that the driver needs is at fault."""
        answer = operator_command.run("check", "-f", "json")
        faults = [row for row in answer.rows if row["Status"] == "CRITICAL"]
        assert answer.status in (0, 1) and not faults, answer
        listed = {row["Check"] for row in answer.rows}
        assert {"permissions", "cloud", "cluster-api", "clocks", "charts"} <= listed, listed
        warnings = [row["Finding"] for row in answer.rows if row["Status"] != "OK"]
        self.say(f"check: {len(answer.rows)} lines, warnings: {warnings}")

    @step
    def create(self) -> None:
        self.customer.create(version=_OLD).complete("CREATE")

    @step
    def well(self) -> None:
        """What ``list`` and ``why`` say of a cluster that is well."""
        self.cluster.until(
            lambda rows: rows.cluster["health_status"] == "HEALTHY", "a healthy cluster"
        )
        (row,) = [row for row in operator_command.rows("list") if row["UUID"] == self.cluster.uuid]
        assert (row["Status"], row["Health"]) == ("CREATE_COMPLETE", "HEALTHY"), row
        assert row["Kubernetes"] == self.cluster.intent.version, row
        answer = operator_command.run("why", self.cluster.uuid)
        assert answer.status == 0 and "nothing is wrong" in answer.out.splitlines()[0], answer
        (row,) = operator_command.rows("adopt", "--dry-run", self.cluster.uuid)
        assert row["State"] == "adopted", row
        (row,) = operator_command.rows("credentials", self.cluster.uuid)
        assert row["Status"] == "accepted", row

    @step
    def bundle(self) -> None:
        """The archive is complete, and none of the cluster's secrets is in it."""
        path = setting.state().path("run", f"{self.cluster.release}.tar.gz")
        path.unlink(missing_ok=True)
        operator_command.rows("support-bundle", self.cluster.uuid, "--output", str(path))
        texts = {}
        with tarfile.open(path) as archive:
            for member in archive.getmembers():
                file = archive.extractfile(member)
                assert file is not None
                texts[member.name.partition("/")[2]] = file.read().decode()
        assert self.cluster.release in texts["management/objects.json"]
        assert "MachineDeployment" in texts["helm/manifest.json"]
        for secret, piece in self.cluster.secret_texts():
            for name, text in texts.items():
                assert piece not in text, f"{name} holds what is in Secret {secret}"
        self.say(f"support-bundle: {len(texts)} files, {path.stat().st_size} bytes")
        path.unlink()

    @step
    def unchanged(self) -> None:
        """Nothing differs of a cluster that is well; its objects are printed without secrets."""
        assert operator_command.rows("diff", self.cluster.uuid) == []
        answer = operator_command.run("render", self.cluster.uuid)
        assert answer.status == 0 and "kind: KubeadmControlPlane" in answer.out, answer
        for secret, piece in self.cluster.secret_texts():
            assert piece not in answer.out, f"render prints what is in Secret {secret}"

    @step
    def paused(self) -> None:
        """A pause is on the Cluster until it is resumed; tasks of now run beside conductors."""
        uuid = self.cluster.uuid
        (row,) = operator_command.rows("pause", uuid, "--reason", "a drill")
        assert (row["Paused"], row["Reason"]) == ("yes", "a drill"), row
        self.cluster.until(
            lambda rows: (
                (rows.cluster.get("health_status_reason") or {}).get("cluster")
                == "is paused on the management cluster"
            ),
            "the health's word on the pause",
        )
        (row,) = operator_command.rows("resume", uuid)
        assert (row["Paused"], row["Reason"]) == ("no", ""), row
        self.cluster.until(
            lambda rows: rows.cluster["health_status"] == "HEALTHY", "a healthy cluster"
        )
        (row,) = operator_command.rows("reconcile", uuid)
        assert (row["After"], row["Health"]) == ("CREATE_COMPLETE", "HEALTHY"), row

    @step
    def upgraded(self) -> None:
        """What diff and render say of an upgrade is what it then makes."""
        uuid, template = self.cluster.uuid, self.customer.template(VERSION)
        found = operator_command.rows("diff", uuid, "--template", template, status=1)
        machines = {row["Object"].split()[0]: row["Machines"] for row in found if row["Machines"]}
        assert machines == {"KubeadmControlPlane": 1, "MachineDeployment": 1}, found
        answer = operator_command.run("render", uuid, "--template", template, "--values")
        (values,) = yaml.safe_load_all(answer.out)
        self.customer.upgrade(VERSION)
        self.cluster.complete()
        assert SecretMask().json(self.cluster.check_release()) == values
        assert operator_command.rows("diff", uuid) == []
        minutes = sum(row["Minutes"] for row in found if row["Minutes"])
        self.say(f"diff: {len(found)} rows, {minutes} minutes predicted")

    @step
    def broken(self) -> None:
        """The first line of ``why`` is the cause that the tenant reads, and the fault is below."""
        release = self.cluster.release
        self.fault(_NO_START, True, f"^{release}-broken-")
        self.customer.create_group("broken", 1)
        said = (
            f"internal: 3 hosts failed to start the server, the last one: {_WHY} "
            "(server <machine>); 0 of 1 broken machine is ready"
        )
        self.cluster.says(said)
        answer = operator_command.run("why", self.cluster.uuid)
        first = answer.out.splitlines()[0]
        assert answer.status == 2 and first.startswith("Cause: internal") and _WHY in first, answer
        assert any("Nova server" in line and _WHY in line for line in answer.out.splitlines())
        answer = operator_command.run("list", "--monitor", "-f", "json")
        (row,) = [row for row in answer.rows if row["UUID"] == self.cluster.uuid]
        # A health poll may have been there or not.
        assert answer.status == (2 if row["Health"] == "UNHEALTHY" else 0), answer
        assert row["Reason"] == "internal" and "nodegroup" in row["Pending"], row

    @step
    def heal(self) -> None:
        self.fault(_NO_START, False)
        self.customer.delete_group("broken")
        self.cluster.complete()

    @step
    def left(self) -> None:
        """A cluster that lives cannot be forced away; everything of it is listed."""
        found = operator_command.rows("force-delete", self.cluster.uuid, status=1)
        listed = [row["Resource"].split()[0] for row in found]
        for kind, count in (("server", 2), ("Machine", 2), ("OpenStackServer", 2), ("Cluster", 1)):
            assert listed.count(kind) == count, found
        for option in ("--release-objects", "--confirm-cloud-cleared"):
            answer = operator_command.run("force-delete", self.cluster.uuid, option)
            assert answer.status == 3 and "is not being deleted" in answer.error, answer
        assert operator_command.rows("force-delete", self.cluster.uuid, status=1) == found

    @ending
    def delete(self) -> None:
        self.fault(_NO_START, False)
        uuid = self.cluster.uuid
        self.customer.delete()
        answer = operator_command.run("why", uuid)
        assert answer.status == 3 and "There is no such cluster" in answer.error, answer
        self.customer.leave()


class TestOperated(LifeCase, life=Operated):
    """check, create, well, bundle, unchanged, paused, upgraded, broken, heal, left, delete."""
