# SPDX-License-Identifier: Apache-2.0
"""An operator who offers images and templates as one file, and brings clusters to a patch release.

The commands read and write the real Glance, the real database of Magnum and the real objects.
"""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
import secrets
from typing import Any

import yaml

from magnum.tests.functional.k8s_capi_helm.sandbox import operator_command, rolls, setting
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from sandbox.cloud import seed

_OLD, _NEW = "v1.34.4", "v1.34.5"
#: Images are data for Glance only.
_DATA = bytes(2048)
_LABEL = "auto_healing_enabled"
#: Automatic upgrades need a window; this one is never closed.
_WINDOW = "00:00-00:00 UTC"


class Offers(Life):
    """A catalogue, a cluster from it, a new image in it, and the upgrade to that patch release."""

    name = "offers"
    directory: Path
    suffix: str
    old_machines: rolls.Machines

    @step
    def apply(self) -> None:
        """What the file says is offered; applied twice, the second time nothing changes."""
        self.suffix = secrets.token_hex(3)
        self.directory = setting.state().path("run", f"catalogue-{self.suffix}", "x").parent
        self._write(_OLD)
        rows = operator_command.rows("catalogue", "diff", self._file, status=1)
        assert {row["Name"] for row in rows} == {self._image(_OLD), self._template}, rows
        assert operator_command.rows("catalogue", "apply", self._file) == rows
        assert operator_command.rows("catalogue", "apply", self._file) == []
        assert operator_command.rows("catalogue", "diff", self._file) == []

    @step
    def show(self) -> None:
        """What is offered is a catalogue again, which changes nothing."""
        project = self.customer.tenant.project_id
        answer = operator_command.run("catalogue", "show", "--project", project)
        assert answer.status == 0, answer
        shown = self.directory / "shown.yaml"
        shown.write_text(answer.out, encoding="utf-8")
        assert operator_command.rows("catalogue", "diff", str(shown)) == []
        rows = operator_command.run("images", "--kubernetes", _OLD, "-f", "json").rows
        (row,) = (row for row in rows if row["Image"] == self._image(_OLD))
        assert (row["Status"], row["Finding"]) == ("OK", ""), row
        assert self._template in row["Templates"], row

    @step
    def create(self) -> None:
        """A cluster from the template comes up."""
        self.customer.create(template=self._template).complete("CREATE")
        self.old_machines = rolls.machines(self.cluster)

    @step
    def explain(self) -> None:
        """The label's value comes from the template, and is in force."""
        (row,) = operator_command.rows("explain", self.cluster.uuid, _LABEL)
        self.say(f"explain: {row}")
        assert "template" in str(row).lower(), row
        rows = operator_command.run("explain", self.cluster.uuid, "-f", "json").rows
        assert len(rows) > 50, len(rows)

    @step
    def charts(self) -> None:
        """The chart has a copy beside the cluster, is fetched, and is used."""
        rows = operator_command.rows("charts")
        assert [row for row in rows if row["Clusters"]], rows
        assert all(not row["Without copy"] for row in rows), rows
        (row,) = operator_command.rows("charts", "fetch", "--cluster", self.cluster.uuid)
        assert row["For"] == f"cluster {self.cluster.name}", row
        answer = operator_command.run("charts", "prune", "-f", "json")
        kept = [row for row in answer.rows if self.cluster.name in row["Used by"]]
        assert [row["Action"] for row in kept] == ["keep"], answer

    @step
    def certificates(self) -> None:
        """Those of the cluster's machine and its authorities are valid."""
        rows = operator_command.rows("certificates", self.cluster.uuid)
        assert len(rows) >= 4 and all(int(row["Days"]) > 300 for row in rows), rows

    @step
    def translate(self) -> None:
        """Labels of another driver: what becomes of each."""
        text = "kube_tag=v1.34.4,heat_container_agent_tag=x,auto_healing_controller=magnum"
        rows = operator_command.run("translate", "--labels", text, "-f", "json").rows
        assert len(rows) == 3 and all(row["Advice"] or row["Becomes"] for row in rows), rows

    @step
    def new_image(self) -> None:
        """The file has a newer image: the template that a cluster has is replaced by a new one."""
        self._write(_NEW)
        rows = operator_command.rows("catalogue", "apply", self._file)
        self.say(f"catalogue: {rows}")
        assert {self._image(_NEW), f"{self._template}-r2"} <= {row["Name"] for row in rows}, rows

    @step
    def patch(self) -> None:
        """The patch release is found, and its template brings the machines there.

        A rollout sends requests to conductors as processes of their own, as ``tox -e fleet`` has
        them; here the conductor is a thread of Magnum's API, and its user requests the upgrade.
        """
        self.cluster.until(lambda rows: rows.health == "HEALTHY", "health")
        chosen = ("--cluster", self.cluster.uuid, "--window", _WINDOW)
        (row,) = operator_command.rows("rollout", "patch", "--dry-run", *chosen, status=1)
        assert (row["From"], row["To"]) == (_OLD, _NEW), row
        assert row["Template"] == f"{self._template}-r2", row
        self.customer.magnum.upgrade(self.cluster.uuid, row["Template"])
        self.cluster.intent = dataclasses.replace(self.cluster.intent, version=_NEW)
        self.cluster.complete()
        now = rolls.machines(self.cluster)
        for group, before in self.old_machines.groups.items():
            assert not before & now.groups[group], group

    @step
    def renew(self) -> None:
        """Certificates are renewed by replacing the control plane alone."""
        before = rolls.machines(self.cluster)
        operator_command.run("certificates", "--renew", self.cluster.uuid)

        def renewed(_: object) -> bool:
            now = rolls.machines(self.cluster)
            masters = now.groups[rolls.MASTERS]
            return not masters & before.groups[rolls.MASTERS] and len(masters) == 1

        self.cluster.until(renewed, "another control plane machine")
        self.cluster.complete()
        assert rolls.machines(self.cluster).workers == before.workers

    @ending
    def delete(self) -> None:
        """With the cluster gone the templates go too; an empty catalogue offers nothing."""
        self.customer.delete()
        self._write("")
        operator_command.run("catalogue", "apply", self._file, "--prune")
        images = seed.connect(setting.state(), "admin").image
        for version in (_OLD, _NEW):
            if found := images.find_image(self._image(version)):
                images.delete_image(found)
        self.customer.leave()

    @property
    def _template(self) -> str:
        return f"k8s-{self.suffix}"

    @property
    def _file(self) -> str:
        return str(self.directory / "catalogue.yaml")

    def _image(self, version: str) -> str:
        return f"offer-{self.suffix}-{version}"

    def _write(self, version: str) -> None:
        """The catalogue with an image of this Kubernetes; "" for an empty one."""
        document: dict[str, Any] = {"project": self.customer.tenant.project_id}
        if version:
            (self.directory / "image.raw").write_bytes(_DATA)
            image = {
                "name": self._image(version),
                "file": "image.raw",
                "disk_format": "raw",
                "sha512": hashlib.sha512(_DATA).hexdigest(),
                "properties": {"os_distro": "ubuntu", "kube_version": version},
            }
            template = {
                "name": self._template,
                "image_id": self._image(version),
                "external_network_id": "public",
                "master_flavor_id": "m1.small",
                "flavor_id": "m1.medium",
                "network_driver": "calico",
                "master_lb_enabled": True,
                "floating_ip_enabled": True,
                "labels": {_LABEL: True},
            }
            document |= {"images": [image], "templates": [template]}
        Path(self._file).write_text(yaml.safe_dump(document), encoding="utf-8")


class TestOffers(LifeCase, life=Offers):
    """apply, show, create, explain, charts, certificates, translate, new image, patch, renew."""
