# SPDX-License-Identifier: Apache-2.0
"""Text of operators, tenants and the cloud is data to both template languages, everywhere."""

from __future__ import annotations

from collections.abc import Iterator
import json
from typing import Any
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import addon_operator, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object, Values
from magnum.tests.functional.k8s_capi_helm.charts.test_addon_laws import at, files, texts
from magnum.tests.functional.k8s_capi_helm.charts.test_schema import resolved, schema_of

#: What Jinja, Go templates or YAML would make something else of.
HOSTILE_VALUE = (
    "{{ 7 * 7 }}{% set a = 1 %}{# gone #}{{- .Values }} "
    "'a' \"b\" \\n: - &c *d !e | > %f @g `h größe 吉 \x7f\x85\x9f\u2028"
)
#: The same with characters that values of a chart cannot have, see addon_operator.values.
HOSTILE = f"{HOSTILE_VALUE} 𠮷 🚀"
#: What says that one of them did.
EVALUATED = ("49", "map[")
CLOUD: Object = {
    "auth_type": "v3applicationcredential",
    "region_name": HOSTILE,
    "auth": {
        "auth_url": f"https://{HOSTILE_VALUE}/v3",
        "application_credential_id": "0123",
        "application_credential_secret": HOSTILE,
    },
}
INFRA: Object = {
    "status": {"network": {"name": HOSTILE}, "externalNetwork": {"id": HOSTILE}},
}


#: Patterns of the schema that any text fits, or any but a blank one.
_ANY = (None, r"\S", r"^$|\S")


def open_leaves(schema: dict[str, Any], root: dict[str, Any], path: str = "") -> Iterator[str]:
    """Paths where the schema takes any text but a blank one."""
    for key, inner in schema.get("properties", {}).items():
        found = resolved(inner, root)
        here = f"{path}.{key}" if path else key
        kinds = found.get("type")
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if "string" in kinds and found.get("pattern") in _ANY:
            yield here
        yield from open_leaves(found, root, here)


class HostileTextTest(unittest.TestCase):
    """Every addon, with hostile text in every place that takes text."""

    def setUp(self) -> None:
        super().setUp()
        given = rendering.scenarios(rendering.ADDONS)["air-gapped"].values
        self.values: Values = json.loads(json.dumps(given))
        self.own: Values = {
            "text": HOSTILE_VALUE,
            HOSTILE_VALUE: [HOSTILE_VALUE, {"a": HOSTILE_VALUE}],
            "number": "0123",
            "gone": None,
        }
        change: dict[str, Any] = {
            "etcdDefrag.enabled": True,
            "openstack.cloudConfig": {"Networking": {"a": HOSTILE}, 'Class "x"': {"b": HOSTILE}},
            "openstack.csiManila.defaultStorageClass.parameters": {"type": HOSTILE, "b": HOSTILE},
            "openstack.csiManila.additionalStorageClasses": [
                {"name": "a", "parameters": {"c": HOSTILE}}
            ],
            "openstack.csiCinder.additionalStorageClasses": [
                {"name": "b", "volumeType": HOSTILE, "allowedTopologies": [{HOSTILE: HOSTILE}]}
            ],
            "mellanoxNetworkOperator.nicClusterPolicy": {"a": {"b": HOSTILE}, "c": HOSTILE},
            "custom": {
                "own": {
                    "kind": "HelmRelease",
                    "spec": {
                        "namespace": "own",
                        "chart": {"repo": "https://a", "name": "a", "version": "1.0.0"},
                        "values": self.own,
                    },
                },
                "objects": {
                    "kind": "Manifests",
                    "spec": {
                        "namespace": "own",
                        "manifests": {
                            "a.yaml": yaml.safe_dump(self.config_map("a"), allow_unicode=True)
                        },
                    },
                },
            },
        }
        root = schema_of(rendering.ADDONS)
        self.leaves = [
            path
            for path in open_leaves(root, root)
            if not path.startswith(("clusterName", "custom", "etcdDefrag.chart"))
        ]
        change |= dict.fromkeys(self.leaves, HOSTILE)
        for file in files().values():
            if "values" in file and file["values"] is not None:
                change[file["values"]] = {**(at(self.values, file["values"]) or {}), **self.own}
        self.values = rendering.changed(self.values, change)

    @staticmethod
    def config_map(name: str) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name},
            "data": {"text": HOSTILE},
        }

    def objects(self, change: Values | None = None) -> list[Object]:
        return rendering.render(rendering.ADDONS, rendering.changed(self.values, change or {}))

    def releases(self) -> list[list[Object]]:
        """With either network."""
        return [
            self.objects(),
            self.objects({"cni.type": "calico", "cni.calico.release.values": self.own}),
        ]

    def test_there_are_places_for_text(self) -> None:
        for path in (
            "cni.calico.globalNetworkPolicy.denyNamespaceSelector",
            "openstack.csiCinder.defaultStorageClass.volumeType",
            "etcdDefrag.release.values.schedule",
        ):
            self.assertIn(path, self.leaves)

    def test_values_of_every_chart_arrive_unchanged(self) -> None:
        seen = set()
        for objects in self.releases():
            for addon in addon_operator.addons(objects):
                if addon["kind"] != "HelmRelease":
                    continue
                name = addon_operator.component(addon)
                seen.add(name)
                identity = addon_operator.credential(CLOUD, cacert=HOSTILE)
                values = addon_operator.values(objects, name, identity=identity)
                with self.subTest(addon=name):
                    self.assertEqual(self.own, {key: values.get(key) for key in self.own})
        wanted = {name for name, file in files().items() if file["kind"] == "HelmRelease"}
        self.assertEqual(wanted - {"traefik"} | {"own"}, seen)

    def test_nothing_in_objects_was_evaluated(self) -> None:
        identity = addon_operator.credential(CLOUD, cacert=HOSTILE)
        hostile = set()
        for objects in self.releases():
            for addon in addon_operator.addons(objects):
                name = addon_operator.component(addon)
                if addon["kind"] != "Manifests":
                    continue
                made = addon_operator.manifests(objects, name, infra=INFRA, identity=identity)
                for text in texts(made):
                    if "7 * 7" in text:
                        hostile.add(name)
                    for trace in EVALUATED:
                        with self.subTest(addon=name, text=text):
                            self.assertNotIn(trace, text)
        self.assertEqual(
            {
                "cloud-config",
                "cni-calico-globalnetpolicy",
                "csi-cinder-storageclass",
                "csi-manila-storageclass",
                "etcd-defrag",
                "etcd-snapshot",
                "mellanox-network-operator-policy",
                "objects",
            },
            hostile,
        )

    def test_some_of_the_places(self) -> None:
        objects = self.objects({"cni.type": "calico"})
        identity = addon_operator.credential(CLOUD, cacert=HOSTILE)
        first, *_ = addon_operator.manifests(objects, "cni-calico-globalnetpolicy")
        self.assertEqual(HOSTILE, first["spec"]["namespaceSelector"])
        (own,) = addon_operator.manifests(objects, "objects")
        self.assertEqual(self.config_map("a"), own)
        (job,) = addon_operator.manifests(objects, "etcd-defrag")
        self.assertEqual(HOSTILE, job["spec"]["schedule"])
        secret, shared, more = addon_operator.manifests(
            objects, "csi-manila-storageclass", identity=identity
        )
        self.assertEqual(
            {
                "os-authURL": f"https://{HOSTILE_VALUE}/v3",
                "os-region": HOSTILE,
                "os-applicationCredentialID": "0123",
                "os-applicationCredentialSecret": HOSTILE,
                "os-TLSInsecure": "false",
                "os-certAuthority": HOSTILE,
            },
            secret["stringData"],
        )
        self.assertEqual(
            (HOSTILE, HOSTILE), (shared["parameters"]["type"], more["parameters"]["c"])
        )
        values = addon_operator.values(objects, "blackbox-exporter", identity=identity)
        self.assertEqual(
            [{"name": "openstack-auth-url", "url": f"https://{HOSTILE_VALUE}/v3"}],
            values["serviceMonitor"]["targets"],
        )
        lines = addon_operator.manifests(objects, "cloud-config", infra=INFRA, identity=identity)
        quoted = HOSTILE.replace("\\", "\\\\").replace('"', '\\"')
        self.assertIn(
            f'internal-network-name = "{quoted}"',
            lines[0]["stringData"]["cloud.conf"].split("\n"),
        )


class CustomAddonTest(unittest.TestCase):
    """Addons of the operator's own."""

    def setUp(self) -> None:
        super().setUp()
        self.objects = rendering.scenarios(rendering.ADDONS)["custom-addons"].objects

    def test_a_chart(self) -> None:
        spec = addon_operator.addon(self.objects, "a-chart", "HelmRelease")["spec"]
        self.assertEqual(
            ("demo", False, "own", "a-chart"),
            (
                spec["clusterName"],
                spec["bootstrap"],
                spec["targetNamespace"],
                spec["releaseName"],
            ),
        )
        self.assertEqual(
            {"repo": "https://charts.example.org", "name": "demo", "version": "1.2.3-rc.1+build"},
            spec["chart"],
        )
        self.assertEqual(
            {"text": "{{ 7 * 7 }}{% raw %}{# größe #}", "list": [1, "1", True, "yes", None]},
            addon_operator.values(self.objects, "a-chart"),
        )

    def test_a_chart_without_values_comes_early(self) -> None:
        spec = addon_operator.addon(self.objects, "123", "HelmRelease")["spec"]
        self.assertIs(True, spec["bootstrap"])
        self.assertEqual("123", spec["releaseName"])
        self.assertEqual({}, addon_operator.values(self.objects, "123"))

    def test_a_release_of_the_charts_own_is_in_the_way_only_where_it_is(self) -> None:
        own = {"kind": "Manifests", "spec": {"namespace": "own", "manifests": {"a": "kind: A\n"}}}
        for name, enabled in (
            ("prometheus-blackbox-exporter", "monitoring.enabled"),
            ("etcd-defragmentation", "etcdDefrag.enabled"),
        ):
            for on in (False, True):
                values = rendering.scenarios(rendering.ADDONS)["bare"].values
                change = {f"custom.{name}": own, enabled: on}
                objects = rendering.render(rendering.ADDONS, rendering.changed(values, change))
                found = [one["spec"] for one in rendering.by_kind(objects, "Manifests")]
                with self.subTest(name=name, on=on):
                    self.assertIn(
                        (name, "own"),
                        [(spec["releaseName"], spec["targetNamespace"]) for spec in found],
                    )

    def test_objects(self) -> None:
        made = addon_operator.manifests(self.objects, "some-objects")
        self.assertCountEqual(["one", "two", "three"], [one["metadata"]["name"] for one in made])
        found = {one["metadata"]["name"]: one for one in made}
        self.assertEqual({"text": "{% endraw %}{{ cloud_identity }}"}, found["one"]["data"])
        self.assertEqual({"größe": "0123"}, found["three"]["stringData"])

    def test_what_is_in_objects_stands_in_a_secret_alone(self) -> None:
        found = addon_operator.addon(self.objects, "some-objects", "Manifests")
        self.assertEqual(
            [{"secret": {"name": "demo-some-objects-config"}}], found["spec"]["manifestSources"]
        )
