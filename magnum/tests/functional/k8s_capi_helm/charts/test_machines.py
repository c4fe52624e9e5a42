# SPDX-License-Identifier: Apache-2.0
"""Files of any text arrive on machines as they were written, whatever API version carries them."""

from __future__ import annotations

import subprocess
from typing import Any
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import machines, rendering
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one


class TextTest(unittest.TestCase):
    def test_a_worker_that_is_told_nothing_only_joins(self) -> None:
        self.assertEqual({"joinConfiguration"}, set(machines.worker(machines.plain())))

    def test_files_arrive_byte_for_byte(self) -> None:
        texts = [
            "plain\n",
            "no newline at the end",
            "two at the end\n\n",
            "  space before\nand after  \n",
            "\nempty line before\n",
            "{{ local_hostname }} {% if x %} {# y #}\n",
            "tab\tcarriage return\r\n",
            "ünïcode ☕ and \u2028 a line\n",
            "quotes ' \" ` $HOME \\ \\n %s\n",
            "key: value\n- item\n# comment\n",
            "---\n...\n",
            "0644",
        ]
        given = [{"path": f"/etc/t{place}", "content": text} for place, text in enumerate(texts)]
        for spec in at_least_one(machines.both(machines.plain(additionalFiles=given))):
            written = machines.files(spec)
            for place, text in enumerate(texts):
                with self.subTest(text=text):
                    self.assertEqual(text.encode(), written[f"/etc/t{place}"])

    def test_a_file_may_be_as_long_as_cluster_api_takes(self) -> None:
        for text in ("a" * 10239 + "\n", "ä" * 3840, "\t" * 7680):
            given = [{"path": "/etc/t", "content": text}]
            for spec in at_least_one(machines.both(machines.plain(additionalFiles=given))):
                (found,) = (one for one in spec["files"] if one["path"] == "/etc/t")
                self.assertEqual(10240, len(found["content"]))
                self.assertEqual(text.encode(), machines.files(spec)["/etc/t"])

    def test_only_the_certificates_of_an_explained_text_arrive(self) -> None:
        one, two = (
            f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----"
            for body in ("b25l", "dHdv")
        )
        # OpenSSL takes both.
        windows, spaced = one.replace("\n", "\r\n"), one.replace("\n", " \n  ", 1)
        for text, wanted in (
            (f"# Root of {{{{ example }}}}\n=====\n{one}\n", one),
            (f"Certificate:\n    Serial: 1\n{one}\n\nTwo\n{two}\nend\n", f"{one}\n{two}"),
            (f"\n{one}\n\n{two}\n", f"{one}\n\n{two}"),
            (windows, one),
            (spaced, spaced),
        ):
            for spec in at_least_one(machines.both(machines.plain(trustedCAs={"own": text}))):
                (path,) = (path for path in machines.files(spec) if "own." in path)
                with self.subTest(text=text):
                    self.assertEqual(f"{wanted}\n".encode(), machines.files(spec)[path])

    def test_a_longer_file_is_refused(self) -> None:
        mirrors = {"docker.io": [f"https://mirror-{one}.example.org" for one in range(200)]}
        path = "/etc/containerd/certs.d/docker.io/hosts.toml"
        long: list[tuple[str, dict[str, Any]]] = [
            ("additionalFiles", {"additionalFiles": [{"path": "/t", "content": "ä" * 3841}]}),
            ("additionalFiles", {"additionalFiles": [{"path": "/t", "content": "a" * 7681}]}),
            ("registryMirrors", {"registryMirrors": mirrors}),
            (
                "proxy.noProxy",
                {
                    "proxy": {
                        "http": "http://p.example.org:3128",
                        "noProxy": [f"host-{one}.example.org" for one in range(300)],
                    }
                },
            ),
        ]
        for key, change in long:
            with self.subTest(key=key):
                said = f"{key} makes the file /[^ ]* too long.*10240"
                with self.assertRaisesRegex(rendering.HelmRefused, said):
                    machines.plain(**change)
        proxy = {"kubeProxyConfiguration": {"mode": "m" * 10240}}
        said = "kubeadmConfigSpec.kubeProxyConfiguration makes the file /[^ ]* too long"
        with self.assertRaisesRegex(rendering.HelmRefused, said):
            machines.plain(controlPlane__kubeadmConfigSpec=proxy)
        namespaces = [f"namespace-{one}-of-many-that-there-are" for one in range(300)]
        said = "azimuthAuthorizationWebhook makes the file /[^ ]* too long"
        with self.assertRaisesRegex(rendering.HelmRefused, said):
            machines.rendered(
                "azimuth-webhook", azimuthAuthorizationWebhook__filteredNamespaces=namespaces
            )
        own = {"path": path, "contentFrom": {"secret": {"name": "mine", "key": "a"}}}
        machines.plain(registryMirrors=mirrors, additionalFiles=[own])
        spec = {"files": [{"path": "/t", "content": "a" * 10241}]}
        with self.assertRaisesRegex(rendering.HelmRefused, "kubeadmConfigSpec/files/0/content"):
            machines.plain(controlPlane__kubeadmConfigSpec=spec)

    def test_the_charts_own_files_hold_no_mark_of_a_template(self) -> None:
        for scenario in ("behind-a-proxy", "private-registries"):
            for spec in at_least_one(machines.both(machines.rendered(scenario))):
                for one in spec["files"]:
                    self.assertNotRegex(one.get("content", ""), r"[{][{%#]")

    def test_packages_are_words_for_apt(self) -> None:
        for spec in at_least_one(machines.both(machines.rendered())):
            (install,) = (one for one in spec["preKubeadmCommands"] if " install " in one)
            self.assertEqual(
                ["--", "nfs-common", "linux-modules-extra-generic=6.8.0.50"],
                machines.words(install)[-3:],
            )

    def test_a_word_stays_one_whatever_it_holds(self) -> None:
        """Helm can be told not to look at the schema, which lets no such package in."""
        text = rendering.text(
            rendering.CLUSTER,
            rendering.changed(
                rendering.scenarios(rendering.CLUSTER)["minimal"].values,
                {"additionalPackages": ["a'b; reboot", "$HOME"]},
            ),
            flags=("--skip-schema-validation",),
        )
        for spec in at_least_one(machines.both(rendering.documents(text))):
            (install,) = (one for one in spec["preKubeadmCommands"] if " install " in one)
            self.assertEqual(["--", "a'b; reboot", "$HOME"], machines.words(install)[-3:])

    def test_owner_permissions_and_secret_of_a_file(self) -> None:
        given = [
            {"path": "/a", "content": "a\n"},
            {"path": "/b", "owner": "root:adm", "permissions": "0400", "content": "b\n"},
            {"path": "/c", "contentFrom": {"secret": {"name": "mine", "key": "c"}}},
        ]
        first, second, third = machines.worker(machines.plain(additionalFiles=given))["files"]
        self.assertEqual(("root:root", "0644"), (first["owner"], first["permissions"]))
        self.assertEqual(("root:adm", "0400"), (second["owner"], second["permissions"]))
        self.assertEqual({"secret": {"name": "mine", "key": "c"}}, third["contentFrom"])
        self.assertNotIn("content", third)


class VersionsTest(unittest.TestCase):
    def test_both_api_versions_mean_the_same(self) -> None:
        for scenario in ("behind-a-proxy", "private-registries", "flatcar", "own-machine-setup"):
            older, newer = (
                machines.rendered(scenario, apiVersions__core=core)
                for core in ("v1beta1", "v1beta2")
            )
            with self.subTest(scenario=scenario):
                self.assertEqual(machines.names(older)["workers"], machines.names(newer)["workers"])
                for one, other in zip(machines.both(older), machines.both(newer), strict=True):
                    self.assertIsInstance(
                        one["joinConfiguration"]["nodeRegistration"]["kubeletExtraArgs"], dict
                    )
                    self.assertEqual(one, machines.as_maps(other))


class ScriptTest(unittest.TestCase):
    def test_scripts_are_clean(self) -> None:
        for script in (machines.CONTAINERD, machines.PROXY):
            subprocess.run(["/bin/sh", "-n", script], check=True)
            self.assertLess(len(script.read_text()), 10240)
