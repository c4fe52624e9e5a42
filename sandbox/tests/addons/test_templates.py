# SPDX-License-Identifier: Apache-2.0
"""Values and manifests as the addon provider renders them."""

from typing import Any
import unittest

import jinja2
import yaml

from sandbox.addons import model, templates
from sandbox.tests.addons.builders import addon, config_map, secret, seen


def rendered(kind: str = "HelmRelease", **different: Any) -> Any:
    """What comes out of sources; other objects are named by kind and name."""
    sources = different.pop("sources", {})
    case = seen(addon(kind, **different), sources=sources)
    return templates.render(case.addon, case.sources, case.context())


class TestValues(unittest.TestCase):
    def test_maps_are_merged_lists_appended_and_null_overrides_nothing(self) -> None:
        first = "a: {b: 1, c: [1]}\nd: 1\ne: [x]\n"
        second = "a: {b: 2, c: [2]}\nd: null\ne: plain\n"
        self.assertEqual(
            {"a": {"b": 2, "c": [1, 2]}, "d": 1, "e": "plain"},
            rendered(valuesSources=[{"template": first}, {"template": second}]),
        )

    def test_no_sources_are_no_values(self) -> None:
        self.assertEqual({}, rendered())

    def test_sources_are_read_with_their_key(self) -> None:
        found = rendered(
            valuesSources=[
                {"secret": {"name": "s"}},
                {"configMap": {"name": "c", "key": "more.yaml"}},
            ],
            sources={
                ("Secret", "s"): secret("s", **{"values.yaml": "a: 1"}),
                ("ConfigMap", "c"): config_map("c", {"more.yaml": "b: 2", "values.yaml": "c: 3"}),
            },
        )
        self.assertEqual({"a": 1, "b": 2}, found)

    def test_the_context_has_addon_cluster_infrastructure_and_identity(self) -> None:
        text = (
            "addon: {{ addon.metadata.name }}\n"
            "cluster: {{ cluster.metadata.name }}\n"
            "identity: {{ infra_cluster.spec.identityRef.name }}\n"
            "clouds: {{ (cloud_identity.data['clouds.yaml'] | b64decode | fromyaml).clouds }}\n"
        )
        self.assertEqual(
            {
                "addon": "rel-ccm",
                "cluster": "rel",
                "identity": "rel-cloud-credentials",
                "clouds": {},
            },
            rendered(valuesSources=[{"template": text}]),
        )

    def test_filters(self) -> None:
        for expression, wanted in (
            ("{{ 'x'.encode() | b64encode }}", "eA=="),
            ("{{ 'eA==' | b64decode }}", "x"),
            ("{{ {'b': 1} | toyaml }}", {"b": 1}),
            ("{{ {'l': [1]} | mergeconcat({'l': [2]}) }}", {"l": [1, 2]}),
        ):
            with self.subTest(expression):
                text = "a:\n  " + expression
                self.assertEqual({"a": wanted}, rendered(valuesSources=[{"template": text}]))

    def test_what_is_broken_is_an_error_as_it_comes(self) -> None:
        for text, error in (
            ("a: {{ b", jinja2.TemplateSyntaxError),
            ("a: {{ b.c }}", jinja2.UndefinedError),
            ("a: {{ addon.spec.clusterName.upper() }}", jinja2.UndefinedError),
            ("a: [", yaml.YAMLError),
            ("a: 1\n---\nb: 2\n", yaml.YAMLError),
            ("a: {{ 1 | b64decode }}", TypeError),
            ("a: {{ 'x' | b64encode }}", TypeError),
        ):
            with self.subTest(text), self.assertRaises(error):
                rendered(valuesSources=[{"template": text}])

    def test_a_list_is_taken(self) -> None:
        self.assertEqual(["a"], rendered(valuesSources=[{"template": "- a"}]))

    def test_a_missing_key_is_named(self) -> None:
        with self.assertRaisesRegex(KeyError, "values.yaml"):
            rendered(
                valuesSources=[{"secret": {"name": "s"}}],
                sources={("Secret", "s"): secret("s", other="a: 1")},
            )


class TestModel(unittest.TestCase):
    """The addon as templates find it."""

    def of(self, **spec: Any) -> model.Model:
        return model.of(addon(**spec))

    def test_fields_are_in_snake_case_and_have_defaults(self) -> None:
        spec = self.of(releaseTimeout=5).spec
        found = (spec.cluster_name, spec.release_name, spec.release_timeout, spec.paused)
        self.assertEqual(("rel", None, "5", False), found)
        self.assertFalse(hasattr(spec, "clusterName"))

    def test_a_source_has_only_its_own_field(self) -> None:
        first, second = self.of(
            valuesSources=[{"template": "a"}, {"configMap": {"name": "c"}}]
        ).spec.values_sources
        self.assertEqual({"template": "a"}, first.dump())
        self.assertEqual({"configMap": {"name": "c", "key": "values.yaml"}}, second.dump())

    def test_a_hook_has_all_fields(self) -> None:
        hook = {"apiVersion": "v1", "kind": "Pod", "action": "delete", "name": "x"}
        (found,) = self.of(lifecycleHooks={"preUpgrade": [hook]}).spec.lifecycle_hooks.pre_upgrade
        self.assertEqual({**hook, "selector": {}, "options": {}}, found.dump())

    def test_an_empty_url_path_is_the_root(self) -> None:
        for given, wanted in (
            ("https://charts.example.org", "https://charts.example.org/"),
            ("https://charts.example.org/a", "https://charts.example.org/a"),
        ):
            chart = {"repo": given, "name": "a", "version": "1.0.0"}
            self.assertEqual(wanted, self.of(chart=chart).spec.chart.repo)


class TestManifests(unittest.TestCase):
    def test_every_key_but_the_excluded_makes_objects(self) -> None:
        data = {"a": "kind: A\n---\nkind: B\n", "b": "kind: C\n", "c": "kind: D\n"}
        source = {"configMap": {"name": "m", "excludeKeys": ["b"]}}
        found = rendered(
            "Manifests",
            manifestSources=[source],
            sources={("ConfigMap", "m"): config_map("m", data)},
        )
        self.assertEqual(["A", "B", "D"], [document["kind"] for document in found])

    def test_only_named_keys_make_objects(self) -> None:
        data = {"a": "kind: A", "b": "kind: B"}
        found = rendered(
            "Manifests",
            manifestSources=[{"configMap": {"name": "m", "keys": ["b"]}}],
            sources={("ConfigMap", "m"): config_map("m", data)},
        )
        self.assertEqual([{"kind": "B"}], found)

    def test_objects_become_files_and_an_empty_document_is_an_error(self) -> None:
        one = {"apiVersion": "apps/v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}}
        self.assertEqual({"apps_v1_pod_b_a.yaml": one}, templates.files([one, one]))
        with self.assertRaises(TypeError):
            templates.files([one, None])

    def test_resources_name_each_object(self) -> None:
        documents = [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}},
        ]
        self.assertEqual(
            [
                {"apiVersion": "v1", "kind": "Namespace", "name": "n"},
                {"apiVersion": "v1", "kind": "Secret", "name": "s", "namespace": "n"},
            ],
            templates.resources(documents),
        )


class TestFaultsAndChecksums(unittest.TestCase):
    def test_a_fault_hits_by_regular_expression_and_a_broken_one_never(self) -> None:
        self.assertTrue(templates.matches("ccm$", "rel-ccm"))
        for pattern in ("^ccm", "", None, "["):
            self.assertFalse(templates.matches(pattern, "rel-ccm"), pattern)

    def test_a_checksum_follows_the_content_only(self) -> None:
        one = secret("s", a="1")
        relabelled = {**one, "metadata": {"name": "s", "labels": {"x": "y"}}}
        self.assertEqual(templates.checksum(one), templates.checksum(relabelled))
        self.assertNotEqual(templates.checksum(one), templates.checksum(secret("s", a="2")))
