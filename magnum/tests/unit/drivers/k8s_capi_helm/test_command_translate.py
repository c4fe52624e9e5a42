# SPDX-License-Identifier: Apache-2.0
"""``translate``: labels and fields of other drivers' templates, with advice for each."""

from __future__ import annotations

from typing import Any

from magnum.drivers.k8s_capi_helm import labels
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CommandCase,
    OK,
    UNKNOWN,
    WARNING,
)


class TestTranslate(CommandCase):
    def rows(self, *argv: str, status: int = WARNING) -> dict[str, dict[str, Any]]:
        printed = self.command("translate", "-f", "json", *argv)
        self.assertEqual(status, printed.status, printed.out + printed.error)
        return {row["Label or field"]: row for row in printed.rows()}

    def becomes(self, text: str) -> tuple[str, str]:
        [row] = self.rows("--labels", text).values()
        return row["Becomes"], row["Advice"]

    def test_what_is_understood_stays(self) -> None:
        rows = self.rows("--labels", "boot_volume_size=20,auto_healing_enabled=true", status=OK)
        self.assertEqual(
            ["auto_healing_enabled=true", "boot_volume_size=20"],
            [row["Becomes"] for row in rows.values()],
        )

    def test_labels_of_the_heat_driver(self) -> None:
        for text, advice in (
            ("heapster_enabled=true", "Use metrics_server_enabled."),
            ("heat_container_agent_tag=wallaby", "it is for Magnum's former Heat driver."),
            ("coredns_tag=1.8", "the charts and Kubernetes have their own versions."),
            ("flannel_network_cidr=10.1.0.0/16", "Flannel is not supported."),
        ):
            with self.subTest(text):
                becomes, said = self.becomes(text)
                self.assertEqual("", becomes)
                self.assertIn(advice, said)
                self.assertTrue(said.startswith("Leave it out: "), said)

    def test_a_label_that_is_off_asks_for_nothing(self) -> None:
        becomes, said = self.becomes("heapster_enabled=false")
        self.assertEqual(("", "Leave it out: it asks for nothing."), (becomes, said))

    def test_an_old_name(self) -> None:
        label = next(one for one in labels.REGISTRY if one.aliases)
        old = label.aliases[0]
        becomes, said = self.becomes(f"{old}={label.example}")
        self.assertEqual(f"{label.name}={label.example}", becomes)
        self.assertIn("another name", said)
        rows = self.rows("--labels", f"{old}={label.example},{label.name}={label.example}")
        self.assertEqual("", rows[old]["Becomes"])

    def test_a_value_that_cannot_be_read(self) -> None:
        becomes, said = self.becomes("boot_volume_size=much")
        self.assertEqual("", becomes)
        self.assertIn("Correct it: its value 'much' should be", said)

    def test_a_label_that_lacks_another(self) -> None:
        becomes, said = self.becomes("boot_volume_type=ssd")
        self.assertEqual("boot_volume_type=ssd", becomes)
        self.assertIn("no effect without a 'boot_volume_size'", said)

    def test_a_misspelt_one(self) -> None:
        _, said = self.becomes("boot_volume_sise=20")
        self.assertIn("did you mean 'boot_volume_size'", said)

    def test_a_value_with_a_comma(self) -> None:
        rows = self.rows(
            "--labels",
            "admission_control_list=NodeRestriction,PodNodeSelector,kube_tag=v1.34.4",
            status=OK,
        )
        self.assertEqual("NodeRestriction,PodNodeSelector", rows["admission_control_list"]["Value"])

    def test_a_template_with_its_fields(self) -> None:
        self._template(
            uuid="31111111-2222-4333-8444-555555555555",
            name="heat",
            public=True,
            network_driver="flannel",
            docker_storage_driver="devicemapper",
            server_type="vm",
            volume_driver="rexray",
            labels={"heapster_enabled": "true"},
        )
        rows = self.rows("heat")
        self.assertIn("the cluster uses 'calico'", rows["network_driver"]["Advice"])
        self.assertIn("containerd", rows["docker_storage_driver"]["Advice"])
        self.assertIn("'rexray'", rows["volume_driver"]["Advice"])
        self.assertIn("heapster_enabled", rows)

    def test_a_secret_is_not_printed(self) -> None:
        printed = self.command("translate", "--labels", "grafana_admin_passwd=hunter2hunter2")
        self.assertNotIn("hunter2", printed.out + printed.error)

    def test_what_is_wrong_of_the_call(self) -> None:
        for argv, words in (
            ((), "Name a cluster template, or give --labels."),
            (("heat", "--labels", "a=b"), "Name a cluster template, or give --labels."),
            (("--labels", "boot_volume_size"), "--labels takes pairs NAME=VALUE"),
            (("nothing",), "There is no such cluster template"),
        ):
            with self.subTest(argv):
                printed = self.command("translate", *argv)
                self.assertEqual(UNKNOWN, printed.status)
                self.assertIn(words, printed.error)
