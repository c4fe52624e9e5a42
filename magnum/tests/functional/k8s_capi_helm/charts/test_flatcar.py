# SPDX-License-Identifier: Apache-2.0
"""Flatcar is set up by Ignition, and asked for nothing that it does not have."""

from __future__ import annotations

from pathlib import Path
import shutil
import tempfile
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import machines, rendering
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one


class FlatcarTest(unittest.TestCase):
    def test_ignition_with_the_charts_units(self) -> None:
        for core in ("v1beta1", "v1beta2"):
            objects = machines.plain(osDistro="flatcar", apiVersions={"core": core})
            for spec in at_least_one(machines.both(objects)):
                self.assertEqual("ignition", spec["format"])
                units = spec["ignition"]["containerLinuxConfig"]["additionalConfig"]
                self.assertEqual(
                    (rendering.CLUSTER / "files/flatcar/units.yaml").read_text(), units
                )
                # A service that requires another one stops when that one is restarted.
                self.assertNotIn("Requires=", units)
                registration = spec["joinConfiguration"]["nodeRegistration"]
                self.assertEqual("${COREOS_OPENSTACK_HOSTNAME}", registration["name"])

    def test_authorities_stand_where_flatcar_looks(self) -> None:
        for spec in at_least_one(machines.both(machines.rendered("flatcar"))):
            paths = [one["path"] for one in spec["files"]]
            self.assertIn("/etc/ssl/certs/example-root.pem", paths)
            self.assertFalse([one for one in paths if "/apt/" in one or "/usr/" in one])
            self.assertIn("update-ca-certificates", spec["preKubeadmCommands"])
            self.assertFalse([one for one in spec["preKubeadmCommands"] if "apt" in one])

    def test_permissions_are_octal_for_yaml_too(self) -> None:
        own = [
            {"path": f"/etc/{mode}", "content": "a\n", "permissions": mode}
            for mode in ("644", "1755", "0600")
        ]
        flavor = {"machineFlavor": "m1.small"}
        for given in (
            {"additionalFiles": own},
            {"controlPlane": {**flavor, "kubeadmConfigSpec": {"files": own}}},
        ):
            for distro, wanted in (
                ("flatcar", ["0644", "01755", "0600"]),
                ("ubuntu", ["644", "1755", "0600"]),
            ):
                found = machines.control_plane(machines.plain(osDistro=distro, **given))["files"]
                modes = {one["path"]: one["permissions"] for one in found}
                self.assertEqual(wanted, [modes[one["path"]] for one in own])

    def test_ones_own_units_stand_in_place_of_the_charts(self) -> None:
        own = machines.control_plane(machines.rendered("flatcar"))["ignition"][
            "containerLinuxConfig"
        ]
        self.assertIs(True, own["strict"])
        self.assertNotIn("kubeadm.service", own["additionalConfig"])

    @unittest.skipUnless(shutil.which("envsubst"), "envsubst is not here")
    def test_the_name_alone_is_filled_in(self) -> None:
        commands = [
            one
            for one in machines.worker(machines.rendered("flatcar"))["preKubeadmCommands"]
            if not one.startswith(("systemctl", "update-ca", "sh /opt"))
        ]
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            (root / "etc").mkdir()
            (root / "run/metadata").mkdir(parents=True)
            (root / "run/metadata/flatcar").write_text(
                "COREOS_OPENSTACK_HOSTNAME=demo-workers-x.cloud.local\n"
            )
            (root / "etc/kubeadm.yml").write_text("name: ${COREOS_OPENSTACK_HOSTNAME}\na: $HOME\n")
            machines.run("set -e\n" + "\n".join(commands), root)
            found = root / "etc/kubeadm.yml"
            self.assertEqual("name: demo-workers-x\na: $HOME\n", found.read_text())
            self.assertEqual(0, found.stat().st_mode & 0o077)
