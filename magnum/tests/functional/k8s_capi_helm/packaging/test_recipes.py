# SPDX-License-Identifier: Apache-2.0
"""What the recipes for deployment tools set is read by these tools, by Magnum and by the driver.

The tools themselves, as far as they can be run here: ``test_recipe_programs``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import configparser
import io
import json
from pathlib import Path
import re
import subprocess
from typing import Any, ClassVar
import unittest

from test_installation import (
    CHECKOUT,
    run,
    Target,
    wheel,
    workshop,
)
import yaml

RECIPES = CHECKOUT / "recipes"
TOOLS = {"kolla-ansible", "openstack-ansible", "openstack-helm"}
NAMES = Path(__file__).with_name("deployment_names.yaml")
HELM = '#!/bin/sh\necho "v3.19.0"\n'
KUBECONFIG = """\
current-context: a
clusters: [{name: a, cluster: {server: "https://127.0.0.1:6443"}}]
contexts: [{name: a, context: {cluster: a, user: b}}]
users: [{name: b, user: {token: t}}]
"""
#: Prints all options by their groups, those of Magnum and of the driver.
OPTIONS = """
import json
import magnum.conf
from magnum_k8s_capi_helm import list_opts
found = {group or "DEFAULT": [] for group in [None, *magnum.conf.CONF._groups]}
for name in magnum.conf.CONF._opts:
    found["DEFAULT"].append(name)
for group, entry in magnum.conf.CONF._groups.items():
    found[group] += list(entry._opts)
for group, options in list_opts():
    found.setdefault(str(group), []).extend(option.dest for option in options)
print(json.dumps(found))
"""


def settings(path: str) -> Any:
    """What a YAML file of a recipe sets."""
    return yaml.safe_load((RECIPES / path).read_text())


def options_of_kolla() -> dict[str, dict[str, str]]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(RECIPES / "kolla" / "config" / "magnum.conf")
    return {group: dict(parser[group]) for group in parser.sections()}


def configurations() -> dict[str, dict[str, dict[str, str]]]:
    """Options by group of each tool; a group that a recipe takes away is left out."""
    found = {
        "kolla-ansible": options_of_kolla(),
        "openstack-ansible": settings("openstack-ansible/user_variables_magnum.yml")[
            "magnum_config_overrides"
        ],
        "openstack-helm": settings("openstack-helm/values.yaml")["conf"]["magnum"],
    }
    return {
        tool: {group: options for group, options in groups.items() if options}
        for tool, groups in found.items()
    }


def paths(tree: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Dotted names of all leaves."""
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from paths(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


class TestConfiguration(unittest.TestCase):
    target: ClassVar[Target]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.target = Target("recipes-target")
        cls.target.pip("install", "--no-index", wheel())

    def test_every_option_exists(self) -> None:
        out = run(self.target.python, "-W", "ignore", "-c", OPTIONS, cwd=self.target.root)
        known = json.loads(out.splitlines()[-1])
        self.assertEqual(TOOLS, set(configurations()))
        for tool, groups in configurations().items():
            for group, options in groups.items():
                with self.subTest(tool, group=group):
                    self.assertEqual(set(), set(options) - set(known[group]))

    def test_the_check_of_an_installation_finds_nothing(self) -> None:
        self.assertEqual(TOOLS, set(configurations()))
        for tool, groups in configurations().items():
            with self.subTest(tool):
                place = workshop() / f"conf-{tool}"
                place.mkdir()
                kubeconfig = place / "kubeconfig"
                kubeconfig.write_text(KUBECONFIG)
                kubeconfig.chmod(0o600)
                (place / "helm").write_text(HELM)
                (place / "helm").chmod(0o755)
                parser = configparser.ConfigParser(interpolation=None)
                parser.read_dict(groups)
                parser["capi_helm"]["kubeconfig_file"] = str(kubeconfig)
                text = io.StringIO()
                parser.write(text)
                self.assertEqual({}, self.findings(place, text.getvalue()))

    def findings(self, place: Path, text: str) -> dict[str, str]:
        conf = place / "magnum.conf"
        conf.write_text(text)
        program = self.target.root / "bin" / "magnum-k8s-capi-helm-status"
        done = subprocess.run(
            [str(program), "--config-file", str(conf), "upgrade", "check", "--json"],
            capture_output=True,
            check=False,
            text=True,
            timeout=120,
            env={"PATH": str(place), "HOME": str(place), "PYTHONWARNINGS": "ignore"},
        )
        found = json.loads(done.stdout.splitlines()[-1])["checks"]
        return {one["check"]: one["details"] for one in found if one["result"]}

    def test_clusters_get_a_network_driver_that_the_driver_has(self) -> None:
        self.assertEqual(TOOLS, set(configurations()))
        for tool, groups in configurations().items():
            with self.subTest(tool):
                allowed = groups["cluster_template"]["kubernetes_allowed_network_drivers"]
                self.assertEqual("calico,cilium", allowed)


class TestNames(unittest.TestCase):
    """Names of deployment tools, in a list with their sources."""

    def assert_known(self, tool: str, tree: Mapping[str, Any]) -> None:
        known = yaml.safe_load(NAMES.read_text())[tool]["names"]
        used = list(paths(tree))
        unknown = [
            path for path in used if not any(f"{path}.".startswith(f"{name}.") for name in known)
        ]
        self.assertEqual([], unknown)
        unused = [
            name for name in known if not any(f"{path}.".startswith(f"{name}.") for path in used)
        ]
        self.assertEqual([], unused)

    def test_kolla_ansible(self) -> None:
        self.assert_known("kolla-ansible", settings("kolla/globals.yml"))

    def test_openstack_ansible(self) -> None:
        variables = settings("openstack-ansible/user_variables_magnum.yml")
        self.assert_known("openstack-ansible", variables)

    def test_openstack_helm(self) -> None:
        self.assert_known("openstack-helm", settings("openstack-helm/values.yaml"))

    def test_every_list_has_its_source(self) -> None:
        entries = yaml.safe_load(NAMES.read_text())
        self.assertEqual(TOOLS, set(entries))
        for tool, entry in entries.items():
            with self.subTest(tool):
                self.assertRegex(
                    entry["sources"][0], r"^https://opendev\.org/.*/commit/[0-9a-f]{40}/"
                )


class TestAgreement(unittest.TestCase):
    """Files of one recipe name the same places, and all recipes the same versions."""

    def test_both_services_get_the_driver(self) -> None:
        images = settings("kolla/globals.yml")
        self.assertEqual(
            {"magnum_api_image_full", "magnum_conductor_image_full"},
            {name for name, value in images.items() if str(value).endswith("-capi-helm")},
        )
        tags = settings("openstack-helm/values.yaml")["images"]["tags"]
        self.assertEqual({"magnum_api", "magnum_conductor", "magnum_db_sync"}, set(tags))
        self.assertEqual(1, len(set(tags.values())))

    def test_openstack_ansible_puts_the_kubeconfig_where_the_option_says(self) -> None:
        [play] = settings("openstack-ansible/magnum-management-cluster.yml")
        groups = configurations()["openstack-ansible"]
        self.assertEqual(
            play["vars"]["capi_helm_kubeconfig_dest"], groups["capi_helm"]["kubeconfig_file"]
        )

    def test_openstack_helm_mounts_the_kubeconfig_where_the_option_says(self) -> None:
        values = settings("openstack-helm/values.yaml")
        mounts = values["pod"]["mounts"]["magnum_conductor"]["magnum_conductor"]
        [mount], [volume] = mounts["volumeMounts"], mounts["volumes"]
        self.assertEqual(mount["name"], volume["name"])
        self.assertNotIn("subPath", mount)
        option = configurations()["openstack-helm"]["capi_helm"]["kubeconfig_file"]
        self.assertEqual(f"{mount['mountPath']}/config", option)
        command = (RECIPES / "openstack-helm" / "values.yaml").read_text()
        secret = volume["secret"]["secretName"]
        self.assertIn(f"secret generic {secret} --from-file=config=", command)

    def test_the_driver_is_of_this_version(self) -> None:
        version = wheel().name.split("-")[1]
        found = {}
        for path in sorted(RECIPES.rglob("*")):
            if path.is_file():
                for one in re.findall(r"magnum-k8s-capi-helm==([\w.]+)", path.read_text()):
                    found[path.name] = one
        self.assertEqual({version}, set(found.values()))
        self.assertEqual(
            ["Dockerfile", "template-overrides.j2", "user_variables_magnum.yml"], sorted(found)
        )

    def test_all_install_the_same_helm(self) -> None:
        texts = [path.read_text() for path in RECIPES.rglob("*") if path.is_file()]
        texts.append((CHECKOUT / "devstack" / "settings").read_text())
        helm = [text for text in texts if "get.helm.sh" in text or "plugin-helm" in text]
        self.assertEqual(4, len(helm))
        self.assertEqual(
            {"v3.19.0"}, {v for text in helm for v in re.findall(r"v3\.\d+\.\d+", text)}
        )
        digests = [set(re.findall(r"\b[0-9a-f]{64}\b", text)) for text in helm]
        self.assertEqual(1, len(set.intersection(*digests)))
