# SPDX-License-Identifier: Apache-2.0
"""Mirrors and passwords of registries, and what containerd is told of them."""

from __future__ import annotations

from pathlib import Path
import shutil
import tempfile
import tomllib
from typing import Any
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import machines, rendering
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one


class RegistriesTest(unittest.TestCase):
    def hosts(self, mirrors: Any, registry: str = "quay.io") -> dict[str, Any]:
        found = [
            machines.files(spec)[f"/etc/containerd/certs.d/{registry}/hosts.toml"]
            for spec in machines.both(machines.plain(registryMirrors={registry: mirrors}))
        ]
        self.assertEqual(found[0], found[1])
        return tomllib.loads(found[0].decode())

    def test_a_list_of_urls(self) -> None:
        usual = {"capabilities": ["pull", "resolve"], "skip_verify": False, "override_path": True}
        self.assertEqual(
            {
                "server": "https://quay.io",
                "host": {"https://a.example.org/v2/q": usual, "http://[2001:db8::1]:5000": usual},
            },
            self.hosts(["https://a.example.org/v2/q", "http://[2001:db8::1]:5000"]),
        )

    def test_a_mirror_with_options(self) -> None:
        mirror = {
            "url": "https://a.example.org",
            "capabilities": ["pull", "push"],
            "skipVerify": True,
            "overridePath": False,
        }
        found = self.hosts({"upstream": "https://up.example.org", "mirrors": [mirror]})
        self.assertEqual("https://up.example.org", found["server"])
        self.assertEqual(
            {"capabilities": ["pull", "push"], "skip_verify": True, "override_path": False},
            found["host"]["https://a.example.org"],
        )

    def test_mirrors_keep_their_order_and_the_hub_its_address(self) -> None:
        found = self.hosts(["https://z.example.org", "https://a.example.org"], "docker.io")
        self.assertEqual("https://registry-1.docker.io", found["server"])
        self.assertEqual(["https://z.example.org", "https://a.example.org"], list(found["host"]))

    def test_an_upstream_alone_and_no_mirror(self) -> None:
        found = self.hosts({"upstream": "https://up.example.org"})
        self.assertEqual({"server": "https://up.example.org"}, found)
        for nothing in (None, [], {}):
            spec = machines.worker(machines.plain(registryMirrors={"quay.io": nothing}))
            self.assertFalse([path for path in machines.files(spec) if "certs.d" in path])

    def test_any_other_registry_is_asked_itself_at_last(self) -> None:
        for mirrors in (
            ["https://a.example.org"],
            {"upstream": "", "mirrors": ["https://a.example.org"]},
            {"upstream": None, "mirrors": ["https://a.example.org"]},
        ):
            found = self.hosts(mirrors, "_default")
            self.assertEqual(
                (["https://a.example.org"], None), (list(found["host"]), found.get("server"))
            )

    def test_no_mirror_is_no_change(self) -> None:
        plain = machines.both(machines.plain())
        self.assertEqual(
            plain, machines.both(machines.plain(registryMirrors={"docker.io": None, "a": []}))
        )

    def test_containerd_is_told_and_begins_anew(self) -> None:
        for spec in at_least_one(
            machines.both(machines.plain(registryMirrors={"quay.io": ["https://a.example.org"]}))
        ):
            commands = spec["preKubeadmCommands"]
            self.assertIn("/opt/openstack-cluster/containerd.sh", machines.files(spec))
            self.assertLess(
                commands.index("sh /opt/openstack-cluster/containerd.sh"),
                commands.index(machines.RESTART),
            )

    def test_ones_own_fragment_is_read_too(self) -> None:
        own = [{"path": "/etc/containerd/conf.d/own.toml", "content": "version = 2\n"}]
        for spec in at_least_one(machines.both(machines.plain(additionalFiles=own))):
            self.assertEqual(
                ["sh /opt/openstack-cluster/containerd.sh", "systemctl daemon-reload"],
                spec["preKubeadmCommands"][:2],
            )

    def test_passwords_of_any_text_reach_containerd_and_nothing_else(self) -> None:
        passwords = [
            'quote " and \\ backslash \\u0041 \\',
            "{{ local_hostname }} {% x %} {# y #}",
            "ünïcode ☕ \u2028",
            "it's $HOME <&> # = [x]",
            "1e3",
        ]
        given = {
            f"r{place}.example.org:5000": {"username": f"u{text}", "password": text}
            for place, text in enumerate(passwords)
        }
        objects = machines.plain(registryAuth=given)
        for spec in at_least_one(machines.both(objects)):
            text = machines.files(spec, objects)["/etc/containerd/conf.d/auth.toml"].decode()
            (file,) = (one for one in spec["files"] if one["path"].endswith("/auth.toml"))
            self.assertEqual("0600", file["permissions"])
            configs = tomllib.loads(text)["plugins"]["io.containerd.grpc.v1.cri"]["registry"]
            self.assertEqual(
                {host: {"auth": auth} for host, auth in given.items()}, configs["configs"]
            )
        for found in objects:
            if found["kind"] != "Secret":
                for text in passwords[:-1]:
                    self.assertNotIn(repr(text)[1:-1], repr(found), found["kind"])

    def test_the_hub_gets_its_password_under_the_name_that_it_is_asked_by(self) -> None:
        objects = machines.plain(registryAuth={"docker.io": {"username": "a", "password": "b"}})
        secret = rendering.only(objects, "Secret")
        parsed = tomllib.loads(secret["stringData"]["auth.toml"])
        self.assertEqual(
            {"docker.io", "registry-1.docker.io"},
            set(parsed["plugins"]["io.containerd.grpc.v1.cri"]["registry"]["configs"]),
        )
        self.assertEqual(2, parsed["version"])
        self.assertNotIn("annotations", secret["metadata"])

    def test_a_changed_password_replaces_machines_of_both_roles(self) -> None:
        def of(password: str) -> dict[str, set[str]]:
            return machines.names(
                machines.plain(registryAuth={"a.org": {"username": "u", "password": password}})
            )

        before, after = of("old"), of("new")
        for role in before:
            self.assertNotEqual(before[role], after[role], role)
        self.assertEqual(before, of("old"))


class ContainerdScriptTest(unittest.TestCase):
    """The script, on the configurations that images are known to have."""

    SECTIONS = {
        2: "io.containerd.grpc.v1.cri",
        3: "io.containerd.cri.v1.images",
    }

    def setUp(self) -> None:
        super().setUp()
        self.root = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        self.config = self.root / "etc/containerd/config.toml"

    def told(self, config: str, *arguments: str) -> dict[str, Any]:
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text(config)
        machines.run(machines.CONTAINERD.read_text(), self.root, *arguments)
        once = self.config.read_text()
        machines.run(machines.CONTAINERD.read_text(), self.root, *arguments)
        self.assertEqual(once, self.config.read_text(), "a second run changes something")
        return self.parsed()

    def parsed(self) -> dict[str, Any]:
        return tomllib.loads(self.config.read_text().replace(str(self.root), ""))

    def check(self, found: dict[str, Any], version: int) -> None:
        registry = found["plugins"][self.SECTIONS[version]]["registry"]
        self.assertEqual("/etc/containerd/certs.d", registry["config_path"])
        self.assertIn("/etc/containerd/conf.d/*.toml", found["imports"])

    def test_a_configuration_that_says_nothing_of_registries(self) -> None:
        for version in self.SECTIONS:
            with self.subTest(version=version):
                self.check(self.told(f"version = {version}\n[grpc]\nuid = 0\n"), version)

    def test_a_section_without_a_path(self) -> None:
        for version, section in self.SECTIONS.items():
            for quote in "\"'":
                with self.subTest(version=version, quote=quote):
                    header = f"  [plugins.{quote}{section}{quote}.registry]\n"
                    found = self.told(f"version = {version}\nimports = []\n{header}    x = 1\n")
                    self.check(found, version)

    def test_a_path_that_is_empty_or_another(self) -> None:
        for path in ("''", '"/etc/docker/certs.d"'):
            config = (
                'version = 2\nimports = ["/other.toml"]\n'
                f'[plugins."io.containerd.grpc.v1.cri".registry]\n  config_path = {path}\n'
            )
            with self.subTest(path=path):
                found = self.told(config)
                self.check(found, 2)
                self.assertIn("/other.toml", found["imports"])

    def test_a_configuration_that_needs_nothing_is_left_alone(self) -> None:
        config = (
            f'version = 3\nimports = ["{self.root}/etc/containerd/conf.d/*.toml"]\n'
            "[plugins.'io.containerd.cri.v1.images'.registry]\n"
            f"config_path = '{self.root}/etc/containerd/certs.d:/etc/docker/certs.d'\n"
        )
        self.told(config)
        self.assertEqual(config, self.config.read_text())

    def test_the_pause_image_comes_from_the_prefix_below_its_whole_name(self) -> None:
        for version, key in ((2, "sandbox_image"), (3, "sandbox")):
            section = f'[plugins."x"]\n  {key} = "registry.k8s.io/pause:3.10"\n'
            with self.subTest(version=version):
                found = self.told(f"version = {version}\n{section}", "reg.example.org/mirror")
                self.assertEqual(
                    "reg.example.org/mirror/registry.k8s.io/pause:3.10",
                    found["plugins"]["x"][key],
                )

    def test_flatcars_own_configuration_is_copied_and_named(self) -> None:
        own = self.root / "usr/share/containerd/config.toml"
        own.parent.mkdir(parents=True)
        own.write_text("version = 2\n")
        machines.run(machines.CONTAINERD.read_text(), self.root)
        self.check(self.parsed(), 2)
        dropin = self.root / "etc/systemd/system/containerd.service.d/20-config.conf"
        self.assertEqual(
            f"[Service]\nEnvironment=CONTAINERD_CONFIG={self.config}\n", dropin.read_text()
        )
        self.assertEqual("version = 2\n", own.read_text())
