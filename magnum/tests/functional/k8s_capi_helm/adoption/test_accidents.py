# SPDX-License-Identifier: Apache-2.0
"""Nothing of a running cluster changes because something of the site has."""

from __future__ import annotations

import os
import shutil
from typing import Any

from magnum.tests.functional.k8s_capi_helm.adoption import facts, other_site
from magnum.tests.functional.k8s_capi_helm.adoption.objects import changes, lasting, told
from magnum.tests.functional.k8s_capi_helm.adoption.setting import GROUP, HandoverCase, SUCCESSOR

#: Beside the objects of its machines, a new group adds nothing.
OWN_KINDS = {
    "KubeadmConfigTemplate",
    "MachineDeployment",
    "MachineHealthCheck",
    "OpenStackMachineTemplate",
}


class AccidentTest(HandoverCase):
    """A cluster of this driver, in a site where everything becomes another."""

    def setUp(self) -> None:
        super().setUp()
        self.bundled("first", changed=False)
        self.configure(capi_helm={"helm_chart_name": ""})

    def bundled(self, name: str, *, changed: bool) -> None:
        """Install a package of the driver with these charts."""
        self.stop()
        os.environ[facts.BUNDLED] = str(other_site.charts(self.directory / name, changed=changed))
        self.addCleanup(os.environ.pop, facts.BUNDLED, None)

    def become_another(self) -> None:
        """Another magnum.conf, cloud and package; the conductor starts anew."""
        other_site.cloud()
        self.bundled("later", changed=True)
        self.configure(**other_site.options())

    def moved(self, what: str, before: Any) -> dict[tuple[str, str], list[tuple[str, Any, Any]]]:
        """What has changed, printed, without the Lease."""
        found = changes(lasting(before), lasting(self.objects()))
        self.show(what, found)
        return {key: listed for key, listed in found.items() if key[0] != "Lease"}

    def test_only_what_is_asked_for_moves(self) -> None:
        self.found(SUCCESSOR, masters=3)
        release, before = self.release(), self.objects()
        self.become_another()
        self.ask(SUCCESSOR, "look")
        self.assertEqual({}, self.moved("the first look", before))

        self.ask(SUCCESSOR, "resize", count=5)
        self.assertEqual("", self.row()["status_reason"] or "")
        group = ("MachineDeployment", f"{release}-default-worker")
        self.assertEqual({group: [(".spec.replicas", 2, 5)]}, self.moved("resize", before))
        self.ask(SUCCESSOR, "settle")

        before = self.objects()
        self.ask(SUCCESSOR, "resize", count=5, group="default-master")
        masters = ("KubeadmControlPlane", f"{release}-control-plane")
        self.assertEqual({masters: [(".spec.replicas", 3, 5)]}, self.moved("masters", before))
        self.ask(SUCCESSOR, "settle")

        before = self.objects()
        self.ask(SUCCESSOR, "add_group", name="more", node_count=1, **GROUP)
        found = self.moved("nodegroup create", before)
        self.assertEqual({"new"}, {listed[0][2] for listed in found.values()}, told(found))
        self.assertEqual(OWN_KINDS, {kind for kind, _ in found})
        machines = self.store.values(release)
        self.assertEqual("1.34.4", machines["kubernetesVersion"])
        self.ask(SUCCESSOR, "settle")

        before = self.objects()
        self.ask(SUCCESSOR, "drop_group", name="more")
        found = self.moved("nodegroup delete", before)
        self.assertEqual({None}, {listed[0][2] for listed in found.values()}, told(found))

    def test_an_empty_store_and_the_same_package(self) -> None:
        self.found(SUCCESSOR)
        release, before = self.release(), self.objects()
        self.stop()
        shutil.rmtree(self.directory / "k8s_capi_helm")
        other_site.cloud()
        self.ask(SUCCESSOR, "resize", count=3)
        group = ("MachineDeployment", f"{release}-default-worker")
        self.assertEqual({group: [(".spec.replicas", 2, 3)]}, self.moved("empty store", before))

    def test_an_empty_store_and_another_package(self) -> None:
        """The chart of before is found where it was applied."""
        self.found(SUCCESSOR)
        release, before = self.release(), self.objects()
        self.stop()
        shutil.rmtree(self.directory / "k8s_capi_helm")
        self.bundled("later", changed=True)
        self.ask(SUCCESSOR, "resize", count=3)
        group = ("MachineDeployment", f"{release}-default-worker")
        found = self.moved("empty store, another package", before)
        self.assertEqual({group: [(".spec.replicas", 2, 3)]}, found)
