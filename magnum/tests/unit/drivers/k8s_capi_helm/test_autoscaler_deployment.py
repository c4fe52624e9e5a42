# SPDX-License-Identifier: Apache-2.0
"""What of a cluster runs on the management cluster is the operator's, whatever a tenant writes."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import shutil
import types
from typing import Any

import fixtures

from magnum.drivers.k8s_capi_helm import chart_store, errors
from magnum.drivers.k8s_capi_helm.chart_store import archive
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.reconcile.release import autoscaler_deployment
from magnum.drivers.k8s_capi_helm.values.sections import pod_security
from magnum.tests.unit.drivers.k8s_capi_helm import driver_case
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

EVIL = "evil.example.org/x"
HOSTILE = {
    "auto_scaling_enabled": "true",
    "max_node_count": "5",
    "autoscaler_tag": "v6.6.6",
    "container_infra_prefix": EVIL,
}
#: As this project's charts 1.1.0 and 1.2.0 had it.
HOLE = """\
{{- define "openstack-cluster.autoscaler.image" -}}
{{- with (.Values.global | default dict).imageRegistryPrefix -}}
{{ . }}/
{{- end -}}
{{ .Values.autoscaler.image.repository }}:{{ .Values.autoscaler.image.tag }}
{{- end -}}
"""
#: A pod that Kubernetes starts where it enforces ``restricted``.
RESTRICTED: dict[str, Any] = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "one",
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
            },
        }
    ],
}


class Case(DriverCase):
    def live(self) -> Any:
        return self.helm.live(NAMESPACE, RELEASE)

    def autoscaler(self) -> dict[str, Any]:
        found: dict[str, Any] = self.live().values.get("autoscaler", {})
        return found

    def notice(self) -> str:
        self.health_task()
        return str(self.cluster().health_status_reason.get("notice", ""))

    def age(self, **values: Any) -> None:
        """The release as the driver of before made it, whose values a label had reached."""
        live = self.helm.releases[NAMESPACE, RELEASE]
        self.helm.releases[NAMESPACE, RELEASE] = dataclasses.replace(
            live, values={**live.values, **values}
        )


class TestTenant(Case):
    """No label reaches the autoscaler's image."""

    def test_a_label_chooses_neither_registry_nor_tag(self) -> None:
        self.made(labels=HOSTILE)
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)
        self.assertEqual(EVIL, self.live().values["global"]["imageRegistryPrefix"])
        text = json.dumps(self.autoscaler())
        self.assertNotIn("evil", text)
        self.assertNotIn("6.6.6", text)

    def test_it_is_told_which_label_has_no_effect(self) -> None:
        self.made(labels=HOSTILE)
        self.assertIn("Label 'autoscaler_tag' has no effect", self.notice())
        self.assertNotIn("unknown", self.notice())

    def test_a_nodegroup_is_told_as_well(self) -> None:
        self.made()
        self.add_group("more", labels={"autoscaler_tag": "v6.6.6"})
        self.assertIn("'autoscaler_tag' of nodegroup 'more' has no effect", self.notice())


class TestOperator(Case):
    """What the operator has set reaches clusters that are made and that exist."""

    def test_image_and_tags(self) -> None:
        self.config(
            group="capi_helm",
            autoscaler_image="mirror.example.org:5000/autoscaling/cluster-autoscaler",
            autoscaler_image_tags=["1.33=v1.33.9", "1.34=v1.34.3", "v1.30.0"],
        )
        self.made(labels=HOSTILE)
        self.assertEqual(
            {
                "repository": "mirror.example.org:5000/autoscaling/cluster-autoscaler",
                "tag": "v1.34.3",
            },
            self.autoscaler()["image"],
        )
        self.assertNotIn("from what this cloud's operator has set", self.notice())

    def test_a_tag_for_all_others(self) -> None:
        digest = "v1.30.0@sha256:" + "0a" * 32
        self.config(group="capi_helm", autoscaler_image_tags=["1.33=v1.33.9", digest])
        self.made(labels=HOSTILE)
        self.assertEqual({"tag": digest}, self.autoscaler()["image"])

    def test_the_chart_chooses_where_the_operator_does_not(self) -> None:
        self.made(labels=HOSTILE)
        self.assertEqual({}, self.autoscaler())

    def test_an_option_that_cannot_be_used(self) -> None:
        for option, value in (
            ("autoscaler_image", "https://mirror.example.org/autoscaler"),
            ("autoscaler_image", "mirror.example.org/autoscaler:v1"),
            ("autoscaler_image_tags", ["1.34:v1.34.3"]),
            ("autoscaler_image_tags", ["v1.34=v1.34.3"]),
        ):
            options = types.SimpleNamespace(autoscaler_image="", autoscaler_image_tags=[])
            setattr(options, option, value)
            chart = self.ports.charts.for_new_cluster(None)
            error = self.assertRaises(
                errors.InvalidConfiguration,
                autoscaler_deployment.with_operators_settings,
                {"nodeGroups": [{"name": "a", "autoscale": True}]},
                chart,
                types.SimpleNamespace(capi_helm=options),
            )
            self.assertIn("configuration", str(error))
            self.assertIn(f"[capi_helm] {option}", error.detail)


class TestMending(Case):
    """A release that a tenant's label has reached is set right, and says so until then."""

    OLD = {"autoscaler": {"image": {"tag": "v6.6.6"}, "nodeSelector": {"a": "b"}}}

    def setUp(self) -> None:
        super().setUp()
        self.made(labels=HOSTILE)
        self.age(**self.OLD)
        self.runs = len(self.helm.runs)

    def is_mended(self) -> bool:
        self.assertEqual({"a": "b"}, self.autoscaler()["nodeSelector"])
        return "image" not in self.autoscaler()

    def test_health_says_so(self) -> None:
        self.assertIn("autoscaler differs from what this cloud's operator has set", self.notice())
        self.assertEqual(self.runs, len(self.helm.runs))
        self.resize(1)
        self.assertNotIn("from what this cloud's operator has set", self.notice())

    def test_a_resize_to_the_size_that_it_has(self) -> None:
        self.resize(1)
        self.assertTrue(self.is_mended())
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.resize(1)
        self.assertEqual(self.runs + 1, len(self.helm.runs))

    def test_every_verb_that_runs_helm(self) -> None:
        verbs = {
            "resize": lambda: self.resize(2),
            "create nodegroup": lambda: self.add_group("more"),
            "update nodegroup": lambda: self.change_group(node_labels={"a": "b"}),
            "delete nodegroup": lambda: self.drop_group("more"),
        }
        for name, verb in verbs.items():
            self.age(**self.OLD)
            verb()
            self.capi_converges()
            self.status_task(2)
            with self.subTest(verb=name):
                self.assertTrue(self.is_mended())
                self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_nothing_else_of_the_values_moves(self) -> None:
        before = self.live().values
        self.resize(1)
        after = self.live().values
        for values in (before, after):
            values.pop("autoscaler")
        self.assertEqual(before, after)

    def test_at_once_if_the_operator_says_so(self) -> None:
        self.health_task()
        self.assertEqual(self.runs, len(self.helm.runs))
        self.config(group="capi_helm", correct_autoscalers=True)
        self.health_task()
        self.assertTrue(self.is_mended())
        self.assertNotIn("from what this cloud's operator has set", self.notice())
        self.assertEqual(self.runs + 1, len(self.helm.runs))
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)

    def test_another_image_of_the_operators(self) -> None:
        self.resize(1)
        self.config(group="capi_helm", autoscaler_image="mirror.example.org/ca")
        self.assertIn("from what this cloud's operator has set", self.notice())
        self.resize(1)
        self.assertEqual({"repository": "mirror.example.org/ca"}, self.autoscaler()["image"])

    def test_a_refusal_of_helm_is_no_refusal_of_a_nodegroup(self) -> None:
        self.helm.refusal = errors.HelmRefused("no")
        self.resize(1)
        self.helm.refusal = None
        self.assertEqual("v6.6.6", self.autoscaler()["image"]["tag"])
        self.resize(1)
        self.assertTrue(self.is_mended())


class TestCharts(Case):
    """Charts that put a tenant's registry before the autoscaler's image."""

    def setUp(self) -> None:
        super().setUp()
        self.place = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.charts = self.place / "charts"
        shutil.copytree(chart_store.__path__[0] + "/../charts", self.charts)
        self.template_file = self.charts / names.CLUSTER_CHART / "templates/autoscaler/_wanted.tpl"

    def conductor(self, version: str, text: str = HOLE) -> None:
        """A conductor with a chart of a version that has this template."""
        self.template_file.write_text(text)
        metadata = self.charts / names.CLUSTER_CHART / "Chart.yaml"
        lines = [
            f"version: {version}" if line.startswith("version:") else line
            for line in metadata.read_text().splitlines()
        ]
        metadata.write_text("\n".join(lines))
        charts = chart_store.ChartStore(
            bundled_charts=self.charts,
            directory=self.place / f"store-{version}",
            copies=chart_store.ChartConfigMaps(self.kube),  # type: ignore[arg-type]
        )
        self.ports = dataclasses.replace(self.ports, charts=charts)

    def test_helm_is_never_given_the_hole(self) -> None:
        for version in ("1.1.0", "1.2.0"):
            self.conductor(version)
            chart = self.ports.charts.for_new_cluster(None)
            self.assertEqual(version, chart.version)
            self.assertFalse(chart_store.uses_tenant_registry(chart))
            text = (pathlib.Path(chart.path) / "templates/autoscaler/_wanted.tpl").read_text()
            lines = [line for line in HOLE.splitlines() if line not in text.splitlines()]
            self.assertEqual(3, len(HOLE.splitlines()) - len(text.splitlines()))
            self.assertEqual(2, len(lines))

    def test_a_chart_of_before_is_given_limits_and_rights_by_its_values(self) -> None:
        self.conductor("1.2.0")
        self.made(labels=HOSTILE)
        found = self.autoscaler()
        self.assertEqual("1Gi", found["resources"]["limits"]["memory"])
        self.assertEqual({"type": "RuntimeDefault"}, found["podSecurityContext"]["seccompProfile"])
        self.assertNotIn("image", found)

    def unmend(self) -> str:
        """The release as a driver of before made it; the digest of its chart."""
        store = self.place / "old"
        original = archive.store_chart(self.charts / names.CLUSTER_CHART, store)
        self.ports.charts.secure(NAMESPACE, original)
        live = self.helm.releases[NAMESPACE, RELEASE]
        values = {key: one for key, one in live.values.items() if key != "autoscaler"}
        old = dataclasses.replace(live, values=values, takes_prefix=True)
        self.helm.releases[NAMESPACE, RELEASE] = old
        self.ports.leases.remember(NAMESPACE, RELEASE, chart_digest=original.digest)
        return original.digest

    def test_a_live_release_keeps_its_chart_but_for_the_hole(self) -> None:
        self.conductor("1.2.0")
        self.made(labels=HOSTILE)
        digest = self.unmend()
        self.conductor("1.2.1", without_hole(HOLE))  # newer driver, empty store
        self.assertIn("from what this cloud's operator has set", self.notice())
        self.resize(1)
        live = self.live()
        self.assertEqual(("1.2.0", False), (live.chart_version, live.takes_prefix))
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        self.assertNotEqual(digest, record.chart_digest)
        self.assertNotIn("from what this cloud's operator has set", self.notice())
        runs = len(self.helm.runs)
        self.capi_converges()
        self.status_task(2)
        self.resize(1)
        self.assertEqual(runs, len(self.helm.runs))
        self.add_group("more")
        self.assertEqual(runs + 1, len(self.helm.runs))
        self.assertEqual("1.2.0", self.live().chart_version)

    def test_its_source_has_it_with_the_hole(self) -> None:
        self.conductor("1.2.0")
        self.made(labels=HOSTILE)
        live, record = self.live(), self.ports.leases.read(NAMESPACE, RELEASE)
        for one in self.kube.list(names.CONFIG_MAP, NAMESPACE):
            self.kube.remove(names.CONFIG_MAP, NAMESPACE, one["metadata"]["name"])
        shutil.rmtree(self.place / "store-1.2.0")
        found = self.ports.charts.of_release(live, record.chart_digest)
        self.assertEqual(record.chart_digest, found.digest)

    def test_an_unknown_chart_with_a_hole_is_refused(self) -> None:
        self.conductor("1.2.0", HOLE.replace("{{ . }}/", '{{ printf "%s/" . }}'))
        self.create(labels=HOSTILE)
        self.assertEqual("CREATE_FAILED", self.cluster().status)
        self.assertIn("'container_infra_prefix'", self.cluster().status_reason)
        self.assertEqual([], self.helm.runs)

    def test_and_works_where_nobody_can_use_it(self) -> None:
        self.conductor("1.2.0", HOLE.replace("{{ . }}/", '{{ printf "%s/" . }}'))
        self.made(labels={key: HOSTILE[key] for key in ("auto_scaling_enabled", "max_node_count")})
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)
        self.assertFalse(self.outdated())

    def test_it_is_not_corrected_again_and_again(self) -> None:
        """A tag of the driver of before, in a cluster that has nothing to correct."""
        self.conductor("1.2.0", HOLE.replace("{{ . }}/", '{{ printf "%s/" . }}'))
        self.made(labels={"container_infra_prefix": HOSTILE["container_infra_prefix"]})
        live, runs = self.live(), len(self.helm.runs)
        values = {**live.values, "autoscaler": {"image": {"tag": "v1.31.0"}}}
        old = dataclasses.replace(live, values=values, takes_prefix=True)
        self.helm.releases[NAMESPACE, RELEASE] = old
        self.config(group="capi_helm", correct_autoscalers=True)
        self.assertFalse(self.outdated())
        self.assertEqual(runs, len(self.helm.runs))

    def test_a_foreign_chart_with_a_hole_needs_no_nodegroup_for_it(self) -> None:
        """Charts of other families make an autoscaler for every cluster."""
        self.conductor("1.2.0", HOLE.replace("{{ . }}/", '{{ printf "%s/" . }}'))
        self.made(labels={"container_infra_prefix": HOSTILE["container_infra_prefix"]})
        foreign = dataclasses.replace(self.ports.charts.for_new_cluster(None), family="")
        values = self.live().values
        self.assertRaises(
            errors.InvalidConfiguration,
            autoscaler_deployment.with_operators_settings,
            values,
            foreign,
            driver_case.CONF,
        )
        live = dataclasses.replace(self.live(), chart_family="", takes_prefix=True)
        self.helm.releases[NAMESPACE, RELEASE] = live
        self.assertTrue(self.outdated())

    def made_by_another_driver(self) -> Any:
        """A release as magnum-capi-helm makes it, without limits for an unused autoscaler."""
        metadata = self.charts / names.CLUSTER_CHART / "Chart.yaml"
        metadata.write_text(metadata.read_text().replace(names.CHART_FAMILY_ANNOTATION, "other"))
        self.conductor("0.9.0", "")
        self.made()
        live = self.helm.releases[NAMESPACE, RELEASE]
        self.assertEqual("", live.chart_family)
        values = {key: value for key, value in live.values.items() if key != "autoscaler"}
        self.helm.releases[NAMESPACE, RELEASE] = dataclasses.replace(live, values=values)
        return live

    def test_a_resize_of_a_foreign_release_is_one_revision(self) -> None:
        self.made_by_another_driver()
        self.helm.runs.clear()
        self.resize(3)
        self.status_task()
        self.assertEqual(["apply"], [verb for verb, _, _ in self.helm.runs])
        self.assertIn("autoscaler", self.live().values)

    def test_a_refused_change_of_a_foreign_release_is_one_revision_too(self) -> None:
        """What is asked for besides is applied without it, and not again as what is accepted."""
        live = self.made_by_another_driver()
        self.helm.refuses = lambda values: (
            errors.HelmRefused("Helm refused it.", "three")
            if any(group["machineCount"] == 3 for group in values["nodeGroups"])
            else None
        )
        self.resize(3)
        self.assertEqual(live.revision + 1, self.live().revision)

    def outdated(self) -> bool:
        return "from what this cloud's operator has set" in self.notice()

    def test_a_foreign_chart_is_given_limits_and_rights(self) -> None:
        self.made(labels=HOSTILE)
        live = self.helm.releases[NAMESPACE, RELEASE]
        self.helm.releases[NAMESPACE, RELEASE] = dataclasses.replace(live, chart_family="")
        self.assertTrue(self.outdated())


def without_hole(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if "global" not in line)


class TestNamespace(Case):
    """Kubernetes refuses other pods in the namespaces of projects."""

    def level(self) -> str | None:
        found = self.kube.get(names.NAMESPACE, None, NAMESPACE)
        level: str | None = found["metadata"]["labels"].get(pod_security.ENFORCE)
        return level

    def deployment(self, name: str, **pod: Any) -> None:
        about = {"name": name, "namespace": NAMESPACE}
        self.kube.put(
            names.DEPLOYMENT,
            {"kind": "Deployment", "metadata": about, "spec": {"template": {"spec": pod}}},
        )

    def older(self, **labels: str) -> None:
        """The namespace as a driver of before made it."""
        labels = {names.LABEL_PROJECT: "p1", **labels}
        self.kube.put(names.NAMESPACE, {"metadata": {"name": NAMESPACE, "labels": labels}})

    def test_a_new_one(self) -> None:
        self.made()
        self.assertEqual("restricted", self.level())
        labels = self.kube.get(names.NAMESPACE, None, NAMESPACE)["metadata"]["labels"]
        self.assertEqual(7, len(labels))
        self.assertEqual("latest", labels[f"{pod_security.ENFORCE}-version"])

    def test_the_level_is_the_operators(self) -> None:
        self.config(group="capi_helm", pod_security_level="baseline")
        self.made()
        self.assertEqual("baseline", self.level())

    def test_one_that_was_there(self) -> None:
        self.made()
        self.older()
        self.deployment("other", **RESTRICTED)
        self.resize(2)
        self.assertEqual("restricted", self.level())

    def test_one_with_a_level_keeps_it(self) -> None:
        self.made()
        self.older(**{pod_security.ENFORCE: "privileged"})
        self.resize(2)
        self.assertEqual("privileged", self.level())

    def test_one_in_which_a_pod_could_not_start_again(self) -> None:
        self.made()
        self.older()
        self.deployment("other", **{**RESTRICTED, "securityContext": {"runAsNonRoot": True}})
        self.resize(2)
        self.assertIsNone(self.level())
        self.deployment("other", **RESTRICTED)
        self.resize(3)
        self.assertEqual("restricted", self.level())

    def test_a_role_of_before_does_not_hold_anything_up(self) -> None:
        self.made()
        self.older()

        def refuse(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("patch", names.NAMESPACE):
                raise errors.ManagementRefused("no", "forbidden")

        self.kube.before = refuse
        self.resize(2)
        self.assertEqual(2, self.live().values["nodeGroups"][0]["machineCount"])
        self.assertIsNone(self.level())
