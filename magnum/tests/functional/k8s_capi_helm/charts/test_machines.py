# SPDX-License-Identifier: Apache-2.0
"""What every machine gets: files, commands and flags, and that text arrives as it was written."""

from __future__ import annotations

from pathlib import Path
import shutil
import subprocess
import tempfile
import tomllib
from typing import Any
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import machines, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object

CONTAINERD = rendering.CLUSTER / "files" / "machine" / "containerd.sh"
#: What requires containerd, as kubeadm's own service may on Flatcar, must not be stopped by it.
RESTART = "systemctl restart --job-mode=ignore-dependencies containerd"
PROXY = rendering.CLUSTER / "files" / "machine" / "proxy.sh"


def rendered(scenario: str = "behind-a-proxy", /, **change: Any) -> list[Object]:
    """Objects of a scenario with other values; "__" stands for a dot."""
    values = rendering.scenarios(rendering.CLUSTER)[scenario].values
    dotted = {path.replace("__", "."): value for path, value in change.items()}
    return rendering.render(rendering.CLUSTER, rendering.changed(values, dotted))


def plain(**change: Any) -> list[Object]:
    """Objects of a cluster that asks for nothing but what is given."""
    nothing: dict[str, Any] = {"proxy": {}, "trustedCAs": {}, "additionalPackages": []}
    return rendered(**{**nothing, **change})


def both(objects: list[Object]) -> list[Object]:
    """The kubeadm configs of a control plane machine and of a worker."""
    return [machines.control_plane(objects), machines.worker(objects)]


def names(objects: list[Object]) -> dict[str, set[str]]:
    """Names of the bootstrap templates, and what of the control plane replaces its machines."""
    return {
        "workers": {
            found["metadata"]["name"]
            for found in rendering.by_kind(objects, "KubeadmConfigTemplate")
        },
        "control plane": {str(machines.control_plane(objects))},
    }


class TextTest(unittest.TestCase):
    def test_a_worker_that_is_told_nothing_only_joins(self) -> None:
        self.assertEqual({"joinConfiguration"}, set(machines.worker(plain())))

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
        for spec in both(plain(additionalFiles=given)):
            written = machines.files(spec)
            for place, text in enumerate(texts):
                with self.subTest(text=text):
                    self.assertEqual(text.encode(), written[f"/etc/t{place}"])

    def test_the_charts_own_files_hold_no_mark_of_a_template(self) -> None:
        for scenario in ("behind-a-proxy", "private-registries"):
            for spec in both(rendered(scenario)):
                for one in spec["files"]:
                    self.assertNotRegex(one.get("content", ""), r"[{][{%#]")

    def test_packages_are_words_for_apt(self) -> None:
        for spec in both(rendered()):
            (install,) = (one for one in spec["preKubeadmCommands"] if " install " in one)
            self.assertEqual(
                ["nfs-common", "linux-modules-extra-generic=6.8.0.50"],
                machines.words(install)[-2:],
            )

    def test_owner_permissions_and_secret_of_a_file(self) -> None:
        given = [
            {"path": "/a", "content": "a\n"},
            {"path": "/b", "owner": "root:adm", "permissions": "0400", "content": "b\n"},
            {"path": "/c", "contentFrom": {"secret": {"name": "mine", "key": "c"}}},
        ]
        first, second, third = machines.worker(plain(additionalFiles=given))["files"]
        self.assertEqual(("root:root", "0644"), (first["owner"], first["permissions"]))
        self.assertEqual(("root:adm", "0400"), (second["owner"], second["permissions"]))
        self.assertEqual({"secret": {"name": "mine", "key": "c"}}, third["contentFrom"])
        self.assertNotIn("content", third)


class RegistriesTest(unittest.TestCase):
    def hosts(self, mirrors: Any, registry: str = "quay.io") -> dict[str, Any]:
        found = [
            machines.files(spec)[f"/etc/containerd/certs.d/{registry}/hosts.toml"]
            for spec in both(plain(registryMirrors={registry: mirrors}))
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

    def test_containerd_is_told_and_begins_anew(self) -> None:
        for spec in both(plain(registryMirrors={"quay.io": ["https://a.example.org"]})):
            commands = spec["preKubeadmCommands"]
            self.assertIn("/opt/openstack-cluster/containerd.sh", machines.files(spec))
            self.assertLess(
                commands.index("sh /opt/openstack-cluster/containerd.sh"),
                commands.index(RESTART),
            )

    def test_ones_own_fragment_is_read_too(self) -> None:
        own = [{"path": "/etc/containerd/conf.d/own.toml", "content": "version = 2\n"}]
        for spec in both(plain(additionalFiles=own)):
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
        objects = plain(registryAuth=given)
        for spec in both(objects):
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
        objects = plain(registryAuth={"docker.io": {"username": "a", "password": "b"}})
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
            return names(plain(registryAuth={"a.org": {"username": "u", "password": password}}))

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
        machines.run(CONTAINERD.read_text(), self.root, *arguments)
        once = self.config.read_text()
        machines.run(CONTAINERD.read_text(), self.root, *arguments)
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
        machines.run(CONTAINERD.read_text(), self.root)
        self.check(self.parsed(), 2)
        dropin = self.root / "etc/systemd/system/containerd.service.d/20-config.conf"
        self.assertEqual(
            f"[Service]\nEnvironment=CONTAINERD_CONFIG={self.config}\n", dropin.read_text()
        )
        self.assertEqual("version = 2\n", own.read_text())


class ProxyTest(unittest.TestCase):
    def environment(self, spec: Object) -> dict[str, str]:
        text = machines.files(spec)["/etc/kubernetes/proxy.env"].decode()
        return dict(line.split("=", 1) for line in text.splitlines())

    def test_containerd_and_kubelet_read_one_environment(self) -> None:
        for spec in both(rendered()):
            written = machines.files(spec)
            for unit in ("containerd", "kubelet"):
                self.assertEqual(
                    b"[Service]\nEnvironmentFile=-/etc/kubernetes/proxy.env\n",
                    written[f"/etc/systemd/system/{unit}.service.d/proxy.conf"],
                )
            found = self.environment(spec)
            for name in ("HTTP_PROXY", "HTTPS_PROXY"):
                self.assertEqual("http://proxy.example.org:3128", found[name])
            for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
                self.assertEqual(found[name], found[name.lower()])

    def test_the_clusters_own_is_reached_without_it(self) -> None:
        (found,) = {self.environment(spec)["NO_PROXY"] for spec in both(rendered())}
        self.assertEqual(
            "localhost,127.0.0.1,::1,169.254.169.254,.svc,cluster.local,.cluster.local,"
            "172.16.0.0/13,172.24.0.0/13,192.168.3.0/24,"
            "registry.example.org,.example.org,192.0.2.0/24",
            found,
        )

    def test_the_network_of_machines_is_named_if_the_values_know_it(self) -> None:
        both_subnets = [{"cidr": "10.20.0.0/16"}, {"cidr": "fd00:20::/64"}]
        for network, expected in (
            ({"subnetFilter": {"id": "a"}}, set()),
            ({"networkFilter": {"id": "a"}}, set()),
            ({"subnetFilter": {"cidr": "10.20.0.0/16"}}, {"10.20.0.0/16"}),
            ({"subnetFilters": both_subnets}, {"10.20.0.0/16", "fd00:20::/64"}),
            ({"nodeCidr": "10.30.0.0/16"}, {"10.30.0.0/16"}),
        ):
            with self.subTest(network=network):
                objects = rendered(clusterNetworking={"internalNetwork": network})
                found = self.environment(machines.worker(objects))["NO_PROXY"].split(",")
                known = {"10.20.0.0/16", "fd00:20::/64", "10.30.0.0/16", "192.168.3.0/24"}
                self.assertEqual(expected, known & set(found))
                self.assertNotIn("", found)

    def test_one_proxy_alone_will_do(self) -> None:
        found = self.environment(machines.worker(rendered(proxy__http=None)))
        self.assertEqual({"HTTPS_PROXY", "NO_PROXY"}, {name for name in found if name.isupper()})

    def test_apt_uses_it_but_for_named_hosts(self) -> None:
        objects = rendered(proxy__noProxy=["a.example.org", ".b.org", "10.0.0.0/8", "*.c", "d:1"])
        text = machines.files(machines.worker(objects))["/etc/apt/apt.conf.d/90proxy"].decode()
        self.assertEqual(
            'Acquire::http::Proxy "http://proxy.example.org:3128";\n'
            'Acquire::https::Proxy "http://proxy.example.org:3128";\n'
            'Acquire::http::Proxy::a.example.org "DIRECT";\n'
            'Acquire::https::Proxy::a.example.org "DIRECT";\n',
            text,
        )

    def test_commands_come_in_the_order_that_they_need(self) -> None:
        for spec in both(rendered()):
            commands = [" ".join(one.split(" -o ")[:1]) for one in spec["preKubeadmCommands"]]
            self.assertEqual(
                [
                    "update-ca-certificates",
                    "sh /opt/openstack-cluster/proxy.sh",
                    "systemctl daemon-reload",
                    RESTART,
                    "apt-get",
                    "DEBIAN_FRONTEND=noninteractive apt-get",
                ],
                commands[:6],
            )

    def test_the_machine_adds_the_api_servers_address(self) -> None:
        for path, line, expected in (
            ("run/kubeadm/kubeadm.yaml", "controlPlaneEndpoint: 203.0.113.4:6443", "203.0.113.4"),
            (
                "run/kubeadm/kubeadm-join-config.yaml",
                "    apiServerEndpoint: api.example.org:443",
                "api.example.org",
            ),
            ("etc/kubeadm.yml", '  apiServerEndpoint: "[2001:db8::4]:6443"', "2001:db8::4"),
        ):
            with self.subTest(path=path), tempfile.TemporaryDirectory() as directory:
                root = Path(directory)
                config, environment = root / path, root / "etc/kubernetes/proxy.env"
                for one in (config, environment):
                    one.parent.mkdir(parents=True, exist_ok=True)
                config.write_text(f"kind: X\n{line}\nname: a\n")
                environment.write_text("HTTP_PROXY=http://p\nNO_PROXY=a,b\nno_proxy=a,b\n")
                machines.run(PROXY.read_text(), root)
                self.assertEqual(
                    f"HTTP_PROXY=http://p\nNO_PROXY=a,b,{expected}\nno_proxy=a,b,{expected}\n",
                    environment.read_text(),
                )


class OwnSetupTest(unittest.TestCase):
    def kubelet(self, registration: Object) -> dict[str, str]:
        return machines.flags(registration["kubeletExtraArgs"])

    def test_the_nearer_flag_of_the_kubelet_wins(self) -> None:
        joining = {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": {"d": "4"}}}}
        objects = plain(
            kubelet={"extraArgs": {"a": "1", "b": "1", "c": "1", "d": "1"}},
            nodeGroupDefaults={"kubeletExtraArgs": {"b": "2", "c": "2", "d": "2"}},
            nodeGroups__0__kubeletExtraArgs={"c": "3", "d": "3"},
            nodeGroups__0__kubeadmConfigSpec=joining,
            controlPlane__kubeletExtraArgs={"b": "5"},
        )
        flags = self.kubelet(machines.worker(objects)["joinConfiguration"]["nodeRegistration"])
        self.assertEqual({"a": "1", "b": "2", "c": "3", "d": "4"}, {k: flags[k] for k in "abcd"})
        for phase in ("initConfiguration", "joinConfiguration"):
            flags = self.kubelet(machines.control_plane(objects)[phase]["nodeRegistration"])
            self.assertEqual({"a": "1", "b": "5"}, {key: flags[key] for key in "ab"})

    def test_labels_of_all_places_are_one_flag(self) -> None:
        def own(text: str) -> Object:
            return {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": text}}}

        for flags in ({"node-labels": "d=4"}, [{"name": "node-labels", "value": "d=4"}]):
            objects = plain(
                nodeGroups__0__nodeLabels={"a": "1"},
                kubelet={"extraArgs": {"node-labels": "b=2"}},
                nodeGroups__0__kubeletExtraArgs={"node-labels": "c=3"},
                nodeGroups__0__kubeadmConfigSpec=own(flags),  # type: ignore[arg-type]
            )
            found = self.kubelet(machines.worker(objects)["joinConfiguration"]["nodeRegistration"])
            self.assertEqual(
                "a=1,capi.stackhpc.com/node-group=workers,b=2,c=3,d=4", found["node-labels"]
            )

    def test_labels_of_the_control_plane(self) -> None:
        spec = machines.control_plane(plain(controlPlane__nodeLabels={"example.org/rack": "07"}))
        for phase in ("initConfiguration", "joinConfiguration"):
            flags = self.kubelet(spec[phase]["nodeRegistration"])
            self.assertEqual("example.org/rack=07", flags["node-labels"])

    def test_ones_own_words_win_and_lists_come_after(self) -> None:
        objects = rendered(
            "own-machine-setup",
            trustedCAs=rendering.scenarios(rendering.CLUSTER)["behind-a-proxy"].values[
                "trustedCAs"
            ],
        )
        for spec in both(objects):
            self.assertEqual(
                b"This control plane has its own.\n", machines.files(spec)["/etc/motd"]
            )
            self.assertEqual("update-ca-certificates", spec["preKubeadmCommands"][0])
            self.assertEqual(
                ["modprobe nfs", "echo 'it''s here' > /run/house"], spec["preKubeadmCommands"][-2:]
            )
            self.assertEqual(["rm /run/house"], spec["postKubeadmCommands"])
            joining = spec["joinConfiguration"]
            self.assertEqual({"directory": "/etc/house/patches"}, joining["patches"])
            self.assertEqual("Never", joining["nodeRegistration"]["imagePullPolicy"])
            self.assertEqual(["NumCPU"], joining["nodeRegistration"]["ignorePreflightErrors"])
            self.assertEqual([["LABEL=house", "/var/house"]], spec["mounts"])
        first = machines.control_plane(objects)["initConfiguration"]
        self.assertEqual([], first["nodeRegistration"]["taints"])
        self.assertEqual(["addon/coredns"], first["skipPhases"])

    def test_a_file_in_place_of_the_charts(self) -> None:
        path = "/etc/systemd/system/kubelet.service.d/proxy.conf"
        for change in (
            {"additionalFiles": [{"path": path, "content": "mine\n"}]},
            {
                "controlPlane__kubeadmConfigSpec": {"files": [{"path": path, "content": "mine"}]},
                "nodeGroupDefaults": {
                    "kubeadmConfigSpec": {"files": [{"path": path, "content": "mine"}]}
                },
            },
        ):
            for spec in both(rendered(**change)):
                self.assertEqual(b"mine\n", machines.files(spec)[path])
                self.assertIn("/etc/kubernetes/proxy.env", machines.files(spec))

    def test_a_file_that_is_asked_for_twice_comes_once(self) -> None:
        given = [{"path": "/etc/a", "content": "same"}]
        objects = plain(additionalFiles=given, nodeGroups__0__kubeadmConfigSpec={"files": given})
        self.assertEqual({"/etc/a"}, set(machines.files(machines.worker(objects))))

    def test_null_says_nothing(self) -> None:
        keys = ("nodeLabels", "kubeletExtraArgs", "kubeadmConfigSpec")
        nothing = dict.fromkeys(
            (
                *("proxy", "kubelet", "registryAuth", "registryMirrors", "trustedCAs"),
                *("additionalPackages", "additionalFiles"),
                *(
                    f"{place}__{key}"
                    for key in keys
                    for place in ("nodeGroups__0", "nodeGroupDefaults")
                ),
                *(f"controlPlane__{key}" for key in keys[:2]),
            )
        )
        self.assertEqual(plain(), rendered(**nothing))

    def test_etcds_disk_and_ones_own_stand_beside_each_other(self) -> None:
        own = {
            "diskSetup": {"filesystems": [{"device": "/dev/vdd", "filesystem": "xfs"}]},
            "mounts": [["LABEL=own", "/var/own"]],
            "joinConfiguration": {"nodeRegistration": {"ignorePreflightErrors": ["NumCPU"]}},
        }
        spec = machines.control_plane(
            plain(etcd__blockDevice={"size": 10}, controlPlane__kubeadmConfigSpec=own)
        )
        self.assertEqual(
            ["/dev/disk/openstack/by-tag/etcd", "/dev/vdd"],
            [one["device"] for one in spec["diskSetup"]["filesystems"]],
        )
        self.assertEqual(["LABEL=etcd_disk", "LABEL=own"], [one[0] for one in spec["mounts"]])
        self.assertEqual(
            ["DirAvailable--var-lib-etcd", "NumCPU"],
            spec["joinConfiguration"]["nodeRegistration"]["ignorePreflightErrors"],
        )

    def test_what_is_empty_says_nothing(self) -> None:
        empty = {
            "joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": {}}, "patches": {}},
            **{key: [] for key in ("files", "preKubeadmCommands", "users", "mounts")},
            **{key: {} for key in ("ntp", "diskSetup", "ignition")},
        }
        self.assertEqual(
            plain(),
            plain(
                controlPlane__kubeadmConfigSpec=empty,
                nodeGroupDefaults={"kubeadmConfigSpec": empty},
                nodeGroups__0__kubeadmConfigSpec=empty,
            ),
        )

    def test_maps_and_lists_of_flags_are_the_same(self) -> None:
        def of(flags: object, core: str) -> list[Object]:
            own = {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": flags}}}
            return plain(nodeGroups__0__kubeadmConfigSpec=own, apiVersions={"core": core})

        for core in ("v1beta1", "v1beta2"):
            self.assertEqual(
                of({"v": "4", "a": "b"}, core),
                of([{"name": "v", "value": "4"}, {"name": "a", "value": "b"}], core),
            )

    def test_what_concerns_one_role_leaves_the_other_alone(self) -> None:
        before = names(plain())
        own = {"preKubeadmCommands": ["true"]}
        for change, moved in (
            ({"controlPlane__kubeadmConfigSpec": own}, "control plane"),
            ({"controlPlane__kubeletExtraArgs": {"v": "2"}}, "control plane"),
            ({"nodeGroupDefaults": {"kubeadmConfigSpec": own}}, "workers"),
            ({"nodeGroups__0__kubeletExtraArgs": {"v": "2"}}, "workers"),
        ):
            after = names(plain(**change))
            with self.subTest(change=change):
                self.assertEqual([moved], [role for role in before if before[role] != after[role]])

    def test_what_concerns_machines_of_both_roles_moves_both(self) -> None:
        before = names(plain())
        for change in (
            {"registryMirrors": {"a.org": ["https://b.org"]}},
            {"kubelet": {"extraArgs": {"v": "2"}}},
            {"additionalPackages": ["vim"]},
            {"additionalFiles": [{"path": "/a", "content": "b"}]},
            {"proxy": {"https": "http://p:1"}},
            {"global": {"imageRegistryPrefix": "registry.example.org/mirror"}},
        ):
            after = names(plain(**change))
            with self.subTest(change=change):
                self.assertTrue(all(before[role] != after[role] for role in before))


def as_maps(spec: Any) -> Any:
    """A kubeadm config with its flags as maps, as v1beta1 has them."""
    if isinstance(spec, dict):
        return {
            key: machines.flags(value)
            if key.endswith(("extraArgs", "ExtraArgs"))
            else as_maps(value)
            for key, value in spec.items()
        }
    return [as_maps(one) for one in spec] if isinstance(spec, list) else spec


class VersionsTest(unittest.TestCase):
    def test_both_api_versions_mean_the_same(self) -> None:
        for scenario in ("behind-a-proxy", "private-registries", "flatcar", "own-machine-setup"):
            older, newer = (
                rendered(scenario, apiVersions__core=core) for core in ("v1beta1", "v1beta2")
            )
            with self.subTest(scenario=scenario):
                self.assertEqual(names(older)["workers"], names(newer)["workers"])
                for one, other in zip(both(older), both(newer), strict=True):
                    self.assertIsInstance(
                        one["joinConfiguration"]["nodeRegistration"]["kubeletExtraArgs"], dict
                    )
                    self.assertEqual(one, as_maps(other))


class FlatcarTest(unittest.TestCase):
    def test_ignition_with_the_charts_units(self) -> None:
        for core in ("v1beta1", "v1beta2"):
            objects = plain(osDistro="flatcar", apiVersions={"core": core})
            for spec in both(objects):
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
        for spec in both(rendered("flatcar")):
            paths = [one["path"] for one in spec["files"]]
            self.assertIn("/etc/ssl/certs/example-root.pem", paths)
            self.assertFalse([one for one in paths if "/apt/" in one or "/usr/" in one])
            self.assertIn("update-ca-certificates", spec["preKubeadmCommands"])
            self.assertFalse([one for one in spec["preKubeadmCommands"] if "apt" in one])

    def test_ones_own_units_stand_in_place_of_the_charts(self) -> None:
        own = machines.control_plane(rendered("flatcar"))["ignition"]["containerLinuxConfig"]
        self.assertIs(True, own["strict"])
        self.assertNotIn("kubeadm.service", own["additionalConfig"])

    @unittest.skipUnless(shutil.which("envsubst"), "envsubst is not here")
    def test_the_name_alone_is_filled_in(self) -> None:
        commands = [
            one
            for one in machines.worker(rendered("flatcar"))["preKubeadmCommands"]
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


class ScriptTest(unittest.TestCase):
    def test_scripts_are_clean(self) -> None:
        for script in (CONTAINERD, PROXY):
            subprocess.run(["/bin/sh", "-n", script], check=True)
            self.assertLess(len(script.read_text()), 10240)
