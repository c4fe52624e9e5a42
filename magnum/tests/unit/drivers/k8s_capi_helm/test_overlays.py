# SPDX-License-Identifier: Apache-2.0
"""Overlays: by name from one directory, as data, and below what tenants ask for."""

from __future__ import annotations

import contextlib
import functools
import pathlib
from typing import Any

import fixtures
import hypothesis
from hypothesis import strategies as st
import testtools
import yaml

from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.conf import overlay_files, overlay_template
from magnum.drivers.k8s_capi_helm.model import Json
from magnum.drivers.k8s_capi_helm.reconcile.release import render
from magnum.drivers.k8s_capi_helm.values.tree import merge
from magnum.drivers.k8s_capi_helm.values.tree.reserved_keys import is_owned, OWNED
from magnum.tests.unit.drivers.k8s_capi_helm import (
    driver_case,
    test_helm_values,
    test_magnum_objects,
)
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

CONTEXT = overlay_template.Context(
    cluster_name="demo",
    cluster_uuid="u-1",
    project_id="p-1",
    template_name="kube",
    kubernetes_version="1.34.4",
    labels={"boot_volume_size": 40, "availability_zone": None, "monitoring_enabled": True},
)


class Case(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def write(self, name: str, text: str) -> pathlib.Path:
        path = self.directory / f"{name}.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, text: str, context: overlay_template.Context = CONTEXT) -> Json:
        self.write("one", text)
        [found] = overlay_files.read_overlays(str(self.directory), "one", context)
        return found.values

    def unusable(self, text: str, context: overlay_template.Context = CONTEXT) -> str:
        error = self.assertRaises(errors.InvalidConfiguration, self.read, text, context)
        self.assertIn("overlay 'one'", str(error))
        self.assertNotIn(str(self.directory), str(error))
        self.assertIn(str(self.directory), error.detail)
        return error.detail


class TestFiles(Case):
    def test_the_sites_comes_first_and_may_be_missing(self) -> None:
        self.write("gpu", "a: 2")
        directory = str(self.directory)
        self.assertEqual(
            [{"a": 2}],
            [one.values for one in overlay_files.read_overlays(directory, "gpu", CONTEXT)],
        )
        self.write("site", "a: 1")
        found = [one.values for one in overlay_files.read_overlays(directory, "gpu", CONTEXT)]
        self.assertEqual([{"a": 1}, {"a": 2}], found)
        self.assertEqual(1, len(overlay_files.read_overlays(directory, None, CONTEXT)))
        self.assertEqual(1, len(overlay_files.read_overlays(directory, "site", CONTEXT)))
        self.assertEqual((), overlay_files.read_overlays("", None, CONTEXT))

    def test_a_name_that_is_not_there(self) -> None:
        for directory in ("", str(self.directory)):
            error = self.assertRaises(
                errors.InvalidLabel, overlay_files.read_overlays, directory, "gpu", CONTEXT
            )
            self.assertIn(
                "'capi_helm_overlay' has an invalid value. The value is 'gpu'", str(error)
            )

    def test_a_link_out_of_the_directory(self) -> None:
        outside = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "secret.yaml"
        outside.write_text("a: 1")
        (self.directory / "one.yaml").symlink_to(outside)
        error = self.assertRaises(
            errors.InvalidConfiguration,
            overlay_files.read_overlays,
            str(self.directory),
            "one",
            CONTEXT,
        )
        self.assertIn("link", error.detail)

    def test_a_directory_that_is_not_there_or_cannot_be_read(self) -> None:
        absent = self.directory / "ovrlays"
        file = self.write("one", "a: 1")
        circle = self.directory / "circle"
        circle.symlink_to(circle)
        for place in (absent, file, circle):
            for name in (None, "gpu"):
                error = self.assertRaises(
                    errors.InvalidConfiguration,
                    overlay_files.read_overlays,
                    str(place),
                    name,
                    CONTEXT,
                )
                self.assertNotIn(str(place), str(error))
                self.assertIn(f"{place}/site.yaml", error.detail)
                self.assertIn("overlay_directory", error.detail)

    def test_a_link_that_leads_nowhere_and_what_is_no_file(self) -> None:
        (self.directory / "one.yaml").symlink_to(self.directory / "gone.yaml")
        (self.directory / "two.yaml").mkdir()
        for name in ("one", "two"):
            error = self.assertRaises(
                errors.InvalidConfiguration,
                overlay_files.read_overlays,
                str(self.directory),
                name,
                CONTEXT,
            )
            self.assertIn(f"overlay '{name}'", str(error))
            self.assertIn(f"{name}.yaml", error.detail)

    def test_a_link_within_it_as_of_a_config_map(self) -> None:
        (self.directory / "..data").mkdir()
        (self.directory / "..data" / "one.yaml").write_text("a: 1")
        (self.directory / "one.yaml").symlink_to("..data/one.yaml")
        [found] = overlay_files.read_overlays(str(self.directory), "one", CONTEXT)
        self.assertEqual({"a": 1}, found.values)

    def test_names_of_labels_cannot_leave_the_directory(self) -> None:
        for text in ("../site", "a/b", "/etc/passwd", "..", "a.b", "a\x00b", "ä", "a" * 64, "a b"):
            error = self.assertRaises(
                errors.InvalidLabel,
                labels.parse,
                {"capi_helm_overlay": text},
                {},
                {"capi_helm_overlay": text},
            )
            self.assertIn("capi_helm_overlay", str(error))

    def test_only_a_template_names_one(self) -> None:
        self.assertRaises(errors.InvalidLabel, labels.parse, {"capi_helm_overlay": "gpu"}, {}, {})

    def test_what_is_no_text(self) -> None:
        (self.directory / "one.yaml").write_bytes(b"a: \xff")
        self.assertRaises(
            errors.InvalidConfiguration,
            overlay_files.read_overlays,
            str(self.directory),
            "one",
            CONTEXT,
        )


class TestTrees(Case):
    def test_values_are_those_of_yaml(self) -> None:
        self.assertEqual(
            {"a": {"b": [1, True, None, "x"]}, "c": "2026-01-01"},
            self.read("a: {b: [1, true, null, x]}\nc: 2026-01-01\n"),
        )
        self.assertEqual({}, self.read("# nothing\n"))

    def test_where_it_is_wrong(self) -> None:
        for text, words in (
            ("a: 1\nb: [", "line 2"),
            ("a: 1\nb:\n  c: 1\n  c: 2\n", "line 4, key b.c: duplicate key"),
            ("- a", "line 1: expected keys"),
            ("a: 1\n2: 3", "line 2: the key 2 is not a string"),
            ("a: {{ cluster.name }}", "line 1, key a: a template must be quoted"),
            ("a: &x {b: 1}\nc:\n  <<: *x\n", "line 3, key c: '<<'"),
            ("'{{ cluster.name }}': 1", "'{{ cluster.name }}' cannot be a key"),
            ("a: &x\n  b: *x\n", "contains itself"),
            ("a: !!python/name:os.system x", "line 1, key a"),
            ("a: .nan", "line 1, key a: nan"),
        ):
            self.assertIn(words, self.unusable(text), text)

    def test_the_line_of_a_key(self) -> None:
        path = self.write("one", "a:\n  b:\n    - c: 1\n")
        [found] = overlay_files.read_overlays(str(self.directory), "one", CONTEXT)
        self.assertEqual(f"{path}, line 2, key a.b", found.location(("a", "b")))
        self.assertEqual(("a", "b"), found.setting(("a", "b", "0", "d")))
        self.assertIsNone(found.setting(("a", "c")))


class TestScalars(Case):
    def one(self, text: str, context: overlay_template.Context = CONTEXT) -> Any:
        return self.read(yaml.safe_dump({"a": text}), context).get("a", "left out")

    def test_texts_and_types(self) -> None:
        for text, value in (
            ("plain", "plain"),
            ("x-{{ cluster.name }}-{{ cluster.uuid }}", "x-demo-u-1"),
            ("{{ kubernetes_version }}", "1.34.4"),
            ("{{ labels.boot_volume_size }}", 40),
            ("{{ labels.monitoring_enabled }}", True),
            ("{{ labels.availability_zone }}", None),
            ("{{ [project, 1] if false else 2 }}", 2),
            ("{{ 1 if labels.monitoring_enabled else omit }}", 1),
            ("{{ omit if labels.monitoring_enabled else 1 }}", "left out"),
            ("{% if template.name == 'kube' %}yes{% endif %}", "yes"),
            ("{% raw %}{{ local_hostname }}{% endraw %}", "{{ local_hostname }}"),
        ):
            self.assertEqual(value, self.one(text), text)

    def test_what_cannot_be_rendered(self) -> None:
        for text in (
            "{{ nothing }}",
            "x{{ cluster.nothing }}",
            "{{ labels.no_such_label }}",
            "{{ 1 / 0 }}",
            "{{ cluster",
            "{{ cluster.name.__class__ }}",
            "x{{ ''.__class__.__mro__[1].__subclasses__() }}",
            "{{ cluster.update({'name': 'x'}) }}",
            "{{ range(3) }}",
            "x{{ [1] | random }}",
            "{% include '/etc/passwd' %}",
            "{{ cluster.name.upper }}",
        ):
            self.assertIn("line 1, key a", self.unusable(yaml.safe_dump({"a": text})), text)

    @hypothesis.settings(max_examples=40)
    @hypothesis.given(st.text(max_size=40), st.text(max_size=40))
    def test_a_tenants_text_is_data(self, cluster: str, zone: str) -> None:
        context = overlay_template.Context(cluster, "u", "p", "t", "1.34.4", {"zone": zone})
        text = "a: '{{ cluster.name }}'\nb: \"x{{ labels.zone }}x\"\nc: 1\n"
        marks = ("{{", "{%", "{#")
        if any(mark in one for mark in marks for one in (cluster, zone)):
            self.unusable(text, context)
        else:
            wanted = {"a": cluster, "b": f"x{zone}x", "c": 1}
            self.assertEqual(wanted, self.read(text, context))


class TestMerging(testtools.TestCase):
    def test_maps_go_key_by_key_and_lists_as_a_whole(self) -> None:
        below = {"a": {"b": 1, "c": [1, 2]}, "d": 1}
        self.assertEqual(
            {"a": {"b": 1, "c": [3]}, "d": 1, "e": None},
            merge.merge(below, {"a": {"c": [3]}, "e": None}),
        )

    def test_what_was_asked_for_wins_also_by_being_absent(self) -> None:
        full: Json = {"a": 1, "nodeGroups": [{"name": "x"}]}
        other: Json = {"a": 1, "volume": {"size": 5}}
        overlay = {"a": 2, "volume": {"size": 9}, "b": 3}
        self.assertEqual(
            {"a": 2, "b": 3, "nodeGroups": [{"name": "x"}]},
            merge.merge_layers(full, {"a": 1}, [other], [overlay]),
        )


#: Texts of labels: as examples have them, and as the defaults are.
_TEXTS = {
    label.name: [
        label.example,
        *([str(label.default)] if label.default not in (None, (), "") else []),
    ]
    for label in labels.REGISTRY
    if label.name not in ("kube_tag", "octavia_lb_algorithm", "capi_helm_overlay")
}
_LEAVES = st.one_of(st.integers(0, 9), st.booleans(), st.sampled_from(["x", "Delete"]), st.none())


@st.composite
def asked(draw: Any) -> dict[str, str]:
    names = draw(st.sets(st.sampled_from(sorted(_TEXTS)), max_size=6))
    texts = {name: draw(st.sampled_from(_TEXTS[name])) for name in sorted(names)}
    if {"min_node_count", "max_node_count"} <= set(texts):
        del texts["min_node_count"]
    return texts


def spread(paths: dict[tuple[str, ...], Any]) -> Json:
    """Values out of leaves by path."""
    found: Json = {}
    for path, leaf in paths.items():
        place = found
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place[path[-1]] = leaf
    return found


def leaves(values: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    if not isinstance(values, dict):
        return {path: values}
    return {at: leaf for key in values for at, leaf in leaves(values[key], (*path, key)).items()}


class TestBelowLabels(Case):
    """The promise: an overlay never changes what a label has set."""

    def rendered(self, texts: dict[str, str], site: Json | None = None) -> Json:
        if site is not None:
            self.write("site", yaml.safe_dump(site))
        directory = str(self.directory) if site is not None else ""
        request = test_helm_values.request(texts, given_labels=labels.given_names(texts))
        conf = test_magnum_objects.config(overlay_directory=directory)
        return render.render_values(request, test_helm_values.FACTS, conf)

    @functools.cached_property
    def everything(self) -> list[tuple[str, ...]]:
        found: set[tuple[str, ...]] = set()
        for name, choices in _TEXTS.items():
            beside = test_helm_values.COMPANIONS.get(name, {})
            with contextlib.suppress(errors.InvalidRequest):
                found.update(leaves(self.rendered({**beside, name: choices[0]})))
        return sorted(path for path in found if not is_owned(path))

    @hypothesis.settings(max_examples=25)
    @hypothesis.given(asked(), st.data())
    def test_over_all_labels_and_keys(self, texts: dict[str, str], data: Any) -> None:
        hypothesis.assume(texts)
        chosen = data.draw(st.sets(st.sampled_from(self.everything), max_size=8))
        site = spread({path: data.draw(_LEAVES) for path in sorted(chosen)})
        try:
            full = self.rendered(texts)
        except errors.InvalidRequest:
            hypothesis.assume(False)
        result = leaves(self.rendered(texts, site))
        for name in at_least_one(texts):
            for other in ({}, *({name: one} for one in _TEXTS[name])):
                rest = {**{k: v for k, v in texts.items() if k != name}, **other}
                try:
                    before = leaves(self.rendered(rest))
                except errors.InvalidRequest:
                    continue
                after = leaves(full)
                for path in {*before, *after}:
                    if before.get(path, "none") != after.get(path, "none"):
                        self.assertEqual(
                            after.get(path, "none"), result.get(path, "none"), (name, path)
                        )

    def test_over_the_drivers_defaults_it_wins(self) -> None:
        site = {"addons": {"metricsServer": {"enabled": False}}, "etcd": {"dataDir": "/x"}}
        found = self.rendered({}, site)
        self.assertIs(False, found["addons"]["metricsServer"]["enabled"])
        self.assertEqual({"dataDir": "/x"}, found["etcd"])
        plain = self.rendered({})
        self.assertEqual(plain["nodeGroups"], found["nodeGroups"])

    def test_a_label_that_asks_for_the_default_asks(self) -> None:
        site = {
            "addons": {"monitoring": {"enabled": True}},
            "controlPlane": {"machineRootVolume": {"diskSize": 50}},
        }
        found = self.rendered({"monitoring_enabled": "false", "boot_volume_size": "0"}, site)
        self.assertIs(False, found["addons"]["monitoring"]["enabled"])
        self.assertNotIn("machineRootVolume", found["controlPlane"])
        found = self.rendered({}, site)
        self.assertIs(True, found["addons"]["monitoring"]["enabled"])
        self.assertEqual({"diskSize": 50}, found["controlPlane"]["machineRootVolume"])

    def test_keys_of_the_driver_are_refused(self) -> None:
        for site, words in (
            ({"nodeGroups": []}, "line 1, key nodeGroups"),
            ({"controlPlane": {"machineCount": 5}}, "line 2, key controlPlane.machineCount"),
            ({"cloudCredentialsSecretName": "x"}, "cloudCredentialsSecretName"),
            ({"addons": {"cni": {"type": "cilium"}}}, "addons.cni.type"),
            ({"autoscaler": {"image": {"tag": "v1"}}}, "autoscaler_image_tags in [capi_helm]"),
            ({"controlPlane": None}, "controlPlane: it has keys of its own"),
            ({"addons": {"openstack": [1]}}, "addons.openstack"),
        ):
            error = self.assertRaises(errors.InvalidConfiguration, self.rendered, {}, site)
            self.assertIn(words, error.detail)
            self.assertIn("overlay 'site'", str(error))

    def test_the_schema_has_every_key_that_is_the_drivers(self) -> None:
        schema = test_helm_values.schema("openstack-cluster")
        for path in OWNED:
            place = schema if path[0] != "addons" else test_helm_values.schema("cluster-addons")
            for key in at_least_one(path[1:] if path[0] == "addons" else path):
                self.assertIn(key, place["properties"], path)
                place = place["properties"][key]


class TestWorld(driver_case.DriverCase):
    """Through Magnum's conductor: what overlays take part in, and what they never reach."""

    def setUp(self) -> None:
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.config(group="capi_helm", overlay_directory=str(self.directory))

    @property
    def values(self) -> Json:
        found: Json = self.helm.live(driver_case.NAMESPACE, driver_case.RELEASE).values
        return found

    def write(self, name: str, text: str) -> pathlib.Path:
        path = self.directory / f"{name}.yaml"
        path.write_text(text)
        return path

    def newer(self, **changes: Any) -> Any:
        return self._template(uuid="22222222-2222-4333-8444-555555555555", name="new", **changes)

    def test_a_resize_knows_nothing_of_overlays(self) -> None:
        self.write("site", "apiServer: {logLevel: 4}\n")
        self.made()
        before = self.values
        self.assertEqual(4, before["apiServer"]["logLevel"])
        self.write("site", "apiServer: {logLevel: 9}\nnonsense: [\n")
        self.resize(3)
        before["nodeGroups"][0]["machineCount"] = 3
        self.assertEqual(before, self.values)

    def test_an_upgrade_leaves_what_changed_in_the_site(self) -> None:
        self.write("site", "apiServer: {logLevel: 4}\n")
        self.made()
        self.write("site", "apiServer: {logLevel: 9}\netcd: {dataDir: /x}\n")
        self.cloud.images["newer"] = ("image-2", "1.35.1")
        self.assertEqual("", self.upgrade(self.newer(image_id="newer")))
        self.assertEqual(4, self.values["apiServer"]["logLevel"])
        self.assertNotIn("etcd", self.values)

    def test_an_upgrade_takes_its_templates_overlay(self) -> None:
        self.write("big", "apiServer: {logLevel: 6}\netcd: {dataDir: /{{ template.name }}}\n")
        self.write("big", "apiServer: {logLevel: 6}\nclusterTags: ['{{ template.name }}']\n")
        self.made()
        self.assertEqual("", self.upgrade(self.newer(labels={"capi_helm_overlay": "big"})))
        self.assertEqual(6, self.values["apiServer"]["logLevel"])
        self.assertEqual(["new"], self.values["clusterTags"])
        self.assertEqual("big", self.cluster().labels["capi_helm_overlay"])

    def test_an_upgrade_takes_what_depends_on_the_version(self) -> None:
        self.write("site", "machineMetadata: {kube: '{{ kubernetes_version }}'}\n")
        self.made()
        before = self.values["machineMetadata"]["kube"]
        self.cloud.images["newer"] = ("image-2", "1.35.1")
        self.assertEqual("", self.upgrade(self.newer(image_id="newer")))
        self.assertEqual({"kube": before}, self.values["machineMetadata"])
        self.capi_converges()
        self.status_task()
        self.assertEqual({"kube": "1.35.1"}, self.values["machineMetadata"])
        self.assertNotEqual("1.35.1", before)

    def test_a_wrong_overlay_is_refused_before_anything_is_made(self) -> None:
        log = self.useFixture(fixtures.FakeLogger())
        path = self.write("site", "apiServer:\n  logLevel: '{{ nothing }}'\n")
        made = self.create()
        self.assertEqual("CREATE_FAILED", made.status)
        self.assertIn("overlay 'site'", made.status_reason)
        self.assertNotIn(str(path), made.status_reason)
        self.assertIn(f"{path}, line 2, key apiServer.logLevel", log.output)
        self.assertEqual([], self.left())

    def test_what_the_charts_schema_refuses_is_found_in_the_overlay(self) -> None:
        log = self.useFixture(fixtures.FakeLogger())
        path = self.write("site", "etcd:\n  dataDri: /x\n")
        self.helm.refusal = errors.ValuesRefused(
            "The chart does not accept the values of this cluster. It reports: etcd: additional "
            "properties "
            "'dataDri' not allowed",
            "helm upgrade: exit status 1",
            (("etcd", "dataDri"),),
        )
        made = self.create()
        self.assertEqual("CREATE_FAILED", made.status)
        self.assertIn("overlay 'site'", made.status_reason)
        self.assertIn(f"{path}, line 2, key etcd.dataDri", log.output)
        self.assertIn("additional properties", log.output)

    def test_what_no_overlay_has_set_is_said_as_the_chart_said_it(self) -> None:
        self.write("site", "etcd: {dataDir: /x}\n")
        self.helm.refusal = errors.ValuesRefused("The chart says no.", "", (("apiServer",),))
        self.assertIn("The chart says no.", self.create().status_reason)
