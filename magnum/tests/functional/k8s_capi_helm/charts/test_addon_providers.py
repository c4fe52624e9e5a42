# SPDX-License-Identifier: Apache-2.0
"""The real addon provider and the played one make the same of an addon.

With a checkout of cluster-api-addon-provider in ADDON_PROVIDER (``tox -e addons``) both are asked;
without one the played one alone, of which the same is expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import hashlib
from typing import Any, NamedTuple
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import addon_operator, addon_worlds, rendering
from magnum.tests.functional.k8s_capi_helm.charts.addon_providers import (
    DONE,
    ERROR,
    FAILED,
    NotGiven,
    Outcome,
    Played,
    Provider,
    Real,
    RETRY,
    World,
)
from magnum.tests.functional.k8s_capi_helm.charts.addon_worlds import (
    cluster,
    config_map,
    helm_release,
    infra_cluster,
    manifests,
    ready,
    secret,
)
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object

CREDENTIAL = addon_operator.credential(
    {"auth": {"auth_url": "https://keystone.example.org:5000/v3/", "user_id": "u"}}
)
PENDING, PREPARING = "Pending", "Preparing"
INSTALLING, UPGRADING = "Installing", "Upgrading"
DEPLOYED, UNINSTALLING = "Deployed", "Uninstalling"
#: Phases of a first installation, and of addons before it.
NEW, WAITS = (PENDING, INSTALLING, DEPLOYED), (PENDING,)
LONG = "s" * 64
LONGEST = "s" * 228
NAMESPACES = "---\n".join(
    f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n" for name in "ab"
)


class Case(NamedTuple):
    """A world, and what is expected of it; chart and values are only where something is made."""

    world: World
    end: str
    phases: tuple[str, ...]
    made: Any = None


def from_secret(*names: str, **more: Any) -> list[Object]:
    """Sources of an addon."""
    return [{"secret": {"name": name, **more}} for name in names]


def status(addon: Object, phase: str, **fields: Any) -> Object:
    """An addon that is in a phase."""
    return {**addon, "status": {"phase": phase, **fields}}


def identified(**reference: Any) -> Object:
    """An OpenStackCluster whose identityRef has these fields, too."""
    return infra_cluster(identityRef={"name": addon_worlds.IDENTITY, **reference})


def built_on(**reference: Any) -> Object:
    """A Cluster that is ready, whose infrastructureRef has these fields, too."""
    found = cluster(*addon_worlds.READY)
    found["spec"] = {
        **found["spec"],
        "infrastructureRef": {**found["spec"]["infrastructureRef"], **reference},
    }
    return found


def elsewhere(found: Object) -> Object:
    """An object in another namespace than the addon's."""
    return {**found, "metadata": {**found["metadata"], "namespace": "shared"}}


def values(text: str, end: str = DONE, made: Any = None) -> Case:
    """A HelmRelease with this template: it is installed, or is an error and waits."""
    return Case(ready(helm_release(values=text)), end, NEW if end == DONE else WAITS, made)


def objects(text: str, end: str = DONE, made: Any = None) -> Case:
    """The same of Manifests; what is made is the names of the files."""
    return Case(ready(manifests(text)), end, NEW if end == DONE else WAITS, made)


#: What templates and sources can be, right and wrong.
TEMPLATES = {
    "values of a map": values("a: {b: 1}", made={"a": {"b": 1}}),
    "values of nothing": values("# none", made={}),
    "values of null": values("null", made={}),
    "no source of values": Case(ready(helm_release()), DONE, NEW, {}),
    "a date among the values": Case(
        ready(helm_release(values="a: 2026-01-01")), ERROR, (PENDING, INSTALLING)
    ),
    "two documents of values": values("a: 1\n---\nb: 2\n", ERROR),
    "values that are no YAML": values("a: [", ERROR),
    "a template that is none": values("a: {{ b", ERROR),
    "a field of something that is not there": values("a: {{ b.c }}", ERROR),
    "the name of the release": values("a: {{ addon.spec.release_name or addon.metadata.name }}"),
    "a field of the addon as the API calls it": values(
        "a: {{ addon.spec.releaseName.upper() }}", ERROR
    ),
    "a field of the addon by its name in brackets": values(
        "a: {{ addon['spec']['cluster_name'] }}", made={"a": "demo"}
    ),
    "a field of the addon that is not set": values(
        "a: [{{ addon.spec.paused }}, {{ addon.spec.release_name }}, {{ addon.status.revision }}]",
        made={"a": [False, "None", 0]},
    ),
    "the spec of the addon as YAML": values("a:\n  {{ addon.spec.chart | toyaml | indent(2) }}"),
    "all of the addon's spec as YAML": values("a:\n  {{ addon.spec | toyaml | indent(2) }}"),
    "a label that the addon has got just now": values(
        "a: {{ addon.metadata.labels['addons.stackhpc.com/cluster'] }}", made={"a": "demo"}
    ),
    "its owner, which it has got just now": values(
        "a: {{ addon.metadata.owner_references[0].name }}", made={"a": "demo"}
    ),
    "toyaml of what is not there": values("a: {{ b | toyaml }}", ERROR),
    "b64encode of text": values("a: {{ 'x' | b64encode }}", ERROR),
    "b64encode of bytes": values("a: {{ 'x'.encode() | b64encode }}", made={"a": "eA=="}),
    "b64decode of text": values("a: {{ 'eA==' | b64decode }}", made={"a": "x"}),
    "b64decode of what is no base64": values("a: {{ 'x' | b64decode }}", ERROR),
    "b64decode of what is no text": values("a: {{ '/w==' | b64decode }}", ERROR),
    "mergeconcat": values(
        "a: {{ {'l': [1], 'm': {'n': 1}} | mergeconcat({'l': [2], 'm': none}) }}",
        made={"a": {"l": [1, 2], "m": {"n": 1}}},
    ),
    "mergeconcat of pairs": values("a: {{ (1, 2) | mergeconcat([3]) }}", made={"a": [1, 2, 3]}),
    "toyaml of a date, bytes and a set": values(
        "a: {{ ('[2026-01-01, !!binary eA==, !!set {b}]' | fromyaml) | toyaml | tojson }}",
        made={"a": "- '2026-01-01'\n- x\n- - b\n"},
    ),
    "toyaml of what a filter gives piece by piece": values(
        "a: {{ [1, 2] | map('string') | toyaml | tojson }}", made={"a": "- '1'\n- '2'\n"}
    ),
    "toyaml of the time when the addon was made": values(
        "a: {{ addon.metadata.creation_timestamp | toyaml }}"
    ),
    "fromyaml": values("a: {{ ('b: 1' | fromyaml).b }}", made={"a": 1}),
    "network and credential": values(
        "a: {{ infra_cluster.status.externalNetwork.id }}\n"
        "b: {{ (cloud_identity.data['clouds.yaml'] | b64decode | fromyaml).clouds }}\n"
        "c: {{ cluster.spec.controlPlaneEndpoint.host }}\n",
        made={"a": "ext-id", "b": {}, "c": "192.0.2.10"},
    ),
    "maps are merged, lists appended, null overrides nothing": Case(
        ready(
            helm_release(
                valuesSources=[
                    {"template": "a: {b: 1, c: [1]}\nd: 1\ne: [x]\nf: null\n"},
                    {"template": "a: {b: 2, c: [2]}\nd: null\ne: plain\nf: {g: null}\nh: null\n"},
                ]
            )
        ),
        DONE,
        NEW,
        {"a": {"b": 2, "c": [1, 2]}, "d": 1, "e": "plain", "f": {"g": None}, "h": None},
    ),
    "sources with their keys": Case(
        ready(
            helm_release(
                valuesSources=[
                    *from_secret("s"),
                    {"configMap": {"name": "c", "key": "more.yaml"}},
                ]
            ),
            secret("s", {"values.yaml": "a: 1"}),
            config_map("c", {"more.yaml": "b: 2", "values.yaml": "c: 3"}),
        ),
        DONE,
        NEW,
        {"a": 1, "b": 2},
    ),
    "a key that a source has not": Case(
        ready(helm_release(valuesSources=from_secret("s")), secret("s", {"other.yaml": "a: 1"})),
        ERROR,
        WAITS,
    ),
    "two objects": objects(NAMESPACES, made=["v1_namespace__a.yaml", "v1_namespace__b.yaml"]),
    "the same object twice": objects(
        "---\n".join(2 * [NAMESPACES]), made=["v1_namespace__a.yaml", "v1_namespace__b.yaml"]
    ),
    "no object": objects("# none", made=[]),
    "an empty document between others": objects(f"{NAMESPACES}---\n---\n{NAMESPACES}", ERROR),
    "no source of manifests": Case(ready(manifests()), DONE, NEW, []),
    "an object without a name": objects("apiVersion: v1\nkind: A\nmetadata: {}\n", ERROR),
    "an object without a kind": objects("apiVersion: v1\nmetadata: {name: a}\n", ERROR),
    "an object whose namespace is null": objects(
        "apiVersion: v1\nkind: A\nmetadata: {name: a, namespace: null}\n", made=["v1_a_None_a.yaml"]
    ),
    "an object that is text": objects("text", ERROR),
    "braces of Helm in an object": objects(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
        "data: {a: \"{{ '{{ b }}{{- c }}' }}\"}\n",
        made=["v1_configmap__a.yaml"],
    ),
    "keys of a source, without the excluded": Case(
        ready(
            manifests(manifestSources=from_secret("s", keys=["b", "a"], excludeKeys=["b"])),
            secret("s", {"a": NAMESPACES, "b": "text", "c": "text"}),
        ),
        DONE,
        NEW,
        ["v1_namespace__a.yaml", "v1_namespace__b.yaml"],
    ),
}
#: What else can be there or not.
SURROUNDINGS = {
    "no cluster": Case(ready(helm_release(), cluster=None), RETRY, WAITS),
    "no infrastructure cluster": Case(ready(helm_release(), infra_cluster=None), RETRY, WAITS),
    "an infrastructure cluster without identityRef": Case(
        ready(helm_release(), infra_cluster=infra_cluster(apiServerFloatingIP="")), ERROR, WAITS
    ),
    "no identity": Case(ready(helm_release(), identity=None), RETRY, WAITS),
    "a control plane that is not initialized": Case(
        ready(helm_release(), cluster=cluster("Available")), RETRY, WAITS
    ),
    "a cluster that is not available": Case(
        ready(helm_release(bootstrap=False), cluster=cluster("ControlPlaneInitialized")),
        RETRY,
        WAITS,
    ),
    "a cluster that is available": Case(ready(helm_release(bootstrap=False)), DONE, NEW, {}),
    "no kubeconfig": Case(ready(helm_release(), has_kubeconfig=False), RETRY, WAITS),
    "a source that is not there": Case(
        ready(helm_release(valuesSources=from_secret("s"))), RETRY, WAITS
    ),
    "a source that is not there, of a cluster that is not ready": Case(
        ready(helm_release(valuesSources=from_secret("s")), cluster=cluster()), RETRY, WAITS
    ),
    "a source whose name is no name of an annotation": Case(
        ready(helm_release(valuesSources=from_secret(LONG)), secret(LONG, {"values.yaml": "a: 1"})),
        DONE,
        NEW,
        {"a": 1},
    ),
    "a source whose name is too long for a label": Case(
        ready(
            helm_release(valuesSources=from_secret(LONGEST)),
            secret(LONGEST, {"values.yaml": "a: 1"}),
        ),
        FAILED,
        (PENDING, "Failed"),
    ),
    "paused": Case(ready(helm_release(paused=True)), DONE, WAITS),
    "paused, and broken": Case(ready(helm_release(paused=True, values="a: [")), DONE, WAITS),
    "paused, of a cluster that is not there": Case(
        ready(helm_release(paused=True), cluster=None), RETRY, WAITS
    ),
    "paused, of a cluster that is not ready": Case(
        ready(helm_release(paused=True), cluster=cluster()), RETRY, WAITS
    ),
    "paused, with a source that is not there": Case(
        ready(helm_release(paused=True, valuesSources=from_secret("s"))), RETRY, WAITS
    ),
    "deployed with other values": Case(
        ready(status(helm_release(values="a: 2"), DEPLOYED, revision=1), release="deployed"),
        DONE,
        (UPGRADING, DEPLOYED),
        {"a": 2},
    ),
    "deployed, and broken by a change": Case(
        ready(status(helm_release(values="a: ["), DEPLOYED, revision=1), release="deployed"),
        ERROR,
        (),
    ),
    "failed, and fixed": Case(
        ready(status(helm_release(values="a: 1"), "Failed", failureMessage="x")),
        DONE,
        (INSTALLING, DEPLOYED),
        {"a": 1},
    ),
    "interrupted while it was installed": Case(
        ready(status(helm_release(values="a: 1"), INSTALLING), release="pending-install"),
        DONE,
        (PREPARING, INSTALLING, DEPLOYED),
        {"a": 1},
    ),
    "interrupted while it was upgraded": Case(
        ready(
            status(helm_release(values="a: 2"), UPGRADING, revision=1), release="pending-upgrade"
        ),
        DONE,
        (PREPARING, UPGRADING, DEPLOYED),
        {"a": 2},
    ),
    "interrupted while it was installed again": Case(
        ready(
            status(helm_release(values="a: 2"), INSTALLING, revision=3), release="pending-install"
        ),
        DONE,
        (PREPARING, INSTALLING, DEPLOYED),
        {"a": 2},
    ),
    "deployed, and left by Helm in the middle of its removal": Case(
        ready(status(helm_release(values="a: 2"), DEPLOYED, revision=2), release="uninstalling"),
        DONE,
        (PREPARING, INSTALLING, DEPLOYED),
        {"a": 2},
    ),
    "interrupted while it was removed to be installed again": Case(
        ready(status(helm_release(values="a: 2"), PREPARING, revision=2), release="uninstalling"),
        DONE,
        (INSTALLING, DEPLOYED),
        {"a": 2},
    ),
    "interrupted while it was rolled back": Case(
        ready(
            status(helm_release(values="a: 2"), PREPARING, revision=2), release="pending-rollback"
        ),
        DONE,
        (UPGRADING, DEPLOYED),
        {"a": 2},
    ),
    "deployed, and failed in Helm": Case(
        ready(status(helm_release(values="a: 2"), "Failed", revision=2), release="failed"),
        DONE,
        (UPGRADING, DEPLOYED),
        {"a": 2},
    ),
}
#: Number of Helm's revision after some of these.
REVISIONS = {
    "failed, and fixed": 1,
    "deployed with other values": 2,
    "deployed, and failed in Helm": 3,
    "interrupted while it was installed": 1,
    "interrupted while it was installed again": 1,
    "deployed, and left by Helm in the middle of its removal": 1,
    "interrupted while it was removed to be installed again": 1,
    # Each rollback is a revision, too: before it is the upgrade that was interrupted.
    "interrupted while it was upgraded": 4,
    "interrupted while it was rolled back": 6,
    "paused": 0,
}
#: What identityRef and infrastructureRef can name.
REFERENCES = {
    "an identity that is a ConfigMap": Case(
        ready(
            helm_release(values="a: {{ cloud_identity.data.b }}"),
            infra_cluster=identified(kind="ConfigMap"),
            identity=config_map(addon_worlds.IDENTITY, {"b": "1"}),
        ),
        DONE,
        NEW,
        {"a": 1},
    ),
    "an identity of the other kind alone": Case(
        ready(helm_release(), infra_cluster=identified(kind="ConfigMap")), RETRY, WAITS
    ),
    "an identity in another namespace": Case(
        ready(
            helm_release(values="a: {{ cloud_identity.metadata.namespace }}"),
            infra_cluster=identified(namespace="shared"),
            identity=elsewhere(addon_worlds.identity()),
        ),
        DONE,
        NEW,
        {"a": "shared"},
    ),
    "an identity in the other namespace alone": Case(
        ready(helm_release(), infra_cluster=identified(namespace="shared")), RETRY, WAITS
    ),
    "an identity of another API": Case(
        ready(
            helm_release(values="a: {{ cloud_identity.kind }}"),
            infra_cluster=identified(
                apiGroup="cluster.x-k8s.io", apiVersion="v1", kind="Cluster", name="demo"
            ),
        ),
        DONE,
        NEW,
        {"a": "Cluster"},
    ),
    "an identity of an API version": Case(
        ready(
            helm_release(values="a: {{ cloud_identity.kind }}"),
            infra_cluster=identified(
                apiVersion="cluster.x-k8s.io/v1beta2", kind="Cluster", name="demo"
            ),
        ),
        DONE,
        NEW,
        {"a": "Cluster"},
    ),
    "an identity of an API that is not there": Case(
        ready(helm_release(), infra_cluster=identified(apiGroup="a.example.org", kind="A")),
        RETRY,
        WAITS,
    ),
    "an identity of a kind that its API has not": Case(
        ready(helm_release(), infra_cluster=identified(kind="Password")), ERROR, WAITS
    ),
    "an infrastructure cluster in another namespace": Case(
        ready(
            helm_release(values="a: {{ infra_cluster.metadata.namespace }}"),
            cluster=built_on(namespace="shared"),
            infra_cluster=elsewhere(infra_cluster()),
        ),
        DONE,
        NEW,
        {"a": "shared"},
    ),
    "an infrastructure cluster of a kind that its API has not": Case(
        ready(helm_release(), cluster=built_on(kind="Cloud")), ERROR, WAITS
    ),
}
LIVE = status(helm_release(), DEPLOYED, revision=1)
DELETED = {
    "of a living cluster": Case(ready(LIVE, release="deployed"), DONE, (UNINSTALLING,)),
    "that was never installed": Case(ready(status(helm_release(), PENDING)), DONE, (UNINSTALLING,)),
    "whose removal was interrupted": Case(
        ready(status(helm_release(), UNINSTALLING, revision=1), release="uninstalling"), DONE, ()
    ),
    "of a cluster that is gone": Case(ready(LIVE, cluster=None), DONE, ()),
    "of a cluster that is being deleted": Case(
        ready(LIVE, cluster=cluster(phase="Deleting")), DONE, ()
    ),
    "of a cluster that Cluster API has not begun to delete": Case(
        ready(
            LIVE,
            cluster={
                **cluster(*addon_worlds.READY),
                "metadata": {
                    **cluster()["metadata"],
                    "deletionTimestamp": "2026-01-01T00:00:00Z",
                    "finalizers": ["cluster.cluster.x-k8s.io"],
                },
            },
            release="deployed",
        ),
        DONE,
        (UNINSTALLING,),
    ),
    "of a cluster without a phase": Case(
        ready(LIVE, cluster={**cluster(), "status": {}}), ERROR, ()
    ),
    "of a cluster without a kubeconfig": Case(ready(LIVE, has_kubeconfig=False), DONE, ()),
    "that is paused": Case(ready({**LIVE, "spec": {**LIVE["spec"], "paused": True}}), DONE, ()),
}


def of_charts() -> Iterator[tuple[str, str, World]]:
    """Scenario, component and world of every addon that the charts render."""
    for scenario in rendering.every_scenario():
        for addon in addon_operator.addons(scenario.objects):
            world = addon_worlds.of_chart(addon, scenario.objects, CREDENTIAL)
            yield scenario.name, addon_operator.component(addon), world


class ProviderCase(unittest.TestCase):
    """Tests of both providers."""

    played: Provider
    real: Provider | None = None

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.played = Played()
        cls.addClassCleanup(cls.played.close)
        try:
            cls.real = Real()
        except NotGiven:
            return
        cls.addClassCleanup(cls.real.close)

    def outcome(self, ask: Callable[[Provider], Outcome], **about: str) -> Outcome:
        """What the played one makes of something; the real one makes the same, if it is there."""
        played = ask(self.played)
        if self.real is not None:
            real = ask(self.real)
            with self.subTest("both", **about, real=real.message, played=played.message):
                self.assertEqual(real, played)
        return played


class RealTest(unittest.TestCase):
    def test_the_real_one_is_asked(self) -> None:
        try:
            real = Real()
        except NotGiven as error:
            self.skipTest(str(error))
        self.addCleanup(real.close)
        self.assertIsInstance(real, Real)


class ChartTest(ProviderCase):
    """Every addon of every scenario."""

    def test_every_addon_is_computed(self) -> None:
        components = set()
        for scenario, component, world in of_charts():
            outcome = self.outcome(
                lambda one, world=world: one.updated(world), scenario=scenario, addon=component
            )
            with self.subTest(scenario=scenario, addon=component):
                self.assertEqual((DONE, NEW), (outcome.end, outcome.phases), outcome.message)
            components.add(component)
        self.assertGreater(len(components), 40)


class TableTest(ProviderCase):
    """Right and wrong addons."""

    def test_templates_and_surroundings(self) -> None:
        for name, case in {**TEMPLATES, **SURROUNDINGS, **REFERENCES}.items():
            outcome = self.outcome(lambda one, case=case: one.updated(case.world), case=name)
            with self.subTest(name):
                self.assertEqual(
                    (case.end, case.phases),
                    (outcome.end, outcome.phases),
                    f"{outcome.error} {outcome.message}",
                )
                if case.made is not None:
                    found = outcome.values
                    if case.world.addon["kind"] == "Manifests":
                        found = sorted(outcome.chart)
                    self.assertEqual(case.made, found)

    def test_a_list_of_values_is_refused_by_helm_itself(self) -> None:
        world = ready(helm_release(values="[a]"))
        outcome = self.outcome(lambda one: one.updated(world))
        self.assertEqual((ERROR, (PENDING, INSTALLING)), (outcome.end, outcome.phases))

    def test_revisions_are_those_of_helm(self) -> None:
        for name, revision in REVISIONS.items():
            with self.subTest(name):
                world = SURROUNDINGS[name].world
                outcome = self.outcome(lambda one, world=world: one.updated(world), case=name)
                self.assertEqual(revision, outcome.revision)

    def test_deletions(self) -> None:
        for name, case in DELETED.items():
            outcome = self.outcome(lambda one, case=case: one.deleted(case.world), case=name)
            with self.subTest(name):
                self.assertEqual((case.end, case.phases), (outcome.end, outcome.phases))

    def test_labels_owner_and_watched_sources(self) -> None:
        sources = [*from_secret("s"), {"configMap": {"name": "c"}}]
        there = (secret("s", {"values.yaml": ""}), config_map("c", {"values.yaml": ""}))
        world = ready(
            helm_release(releaseName="ccm", valuesSources=sources), *there, cluster=cluster()
        )
        outcome = self.outcome(lambda one: one.updated(world))
        self.assertEqual(
            {
                "addons.stackhpc.com/cluster": "demo",
                "addons.stackhpc.com/release-namespace": "kube-system",
                "addons.stackhpc.com/release-name": "ccm",
                "s.secret.addons.stackhpc.com/uses": "",
                "c.configmap.addons.stackhpc.com/uses": "",
                f"{addon_worlds.IDENTITY}.secret.addons.stackhpc.com/uses": "",
            },
            dict(outcome.labels),
        )
        self.assertTrue(outcome.owned)
        self.assertEqual(
            {("secrets", "s"), ("configmaps", "c"), ("secrets", addon_worlds.IDENTITY)},
            set(outcome.watched),
        )

    def test_only_an_identity_beside_the_addon_is_watched(self) -> None:
        for name, watched in (
            ("an identity that is a ConfigMap", {("configmaps", addon_worlds.IDENTITY)}),
            ("an identity in another namespace", set()),
            ("an identity of another API", set()),
        ):
            with self.subTest(name):
                world = REFERENCES[name].world
                outcome = self.outcome(lambda one, world=world: one.updated(world))
                labels = {key for key, _ in outcome.labels if key.endswith("/uses")}
                self.assertEqual(
                    {f"{one}.{kind[:-1]}.addons.stackhpc.com/uses" for kind, one in watched},
                    labels,
                )
                self.assertEqual(watched, set(outcome.watched))

    def test_what_is_looked_for_in_vain_leaves_no_label(self) -> None:
        world = ready(helm_release(), identity=None)
        outcome = self.outcome(lambda one: one.updated(world))
        self.assertEqual(((), (), False), (outcome.labels, outcome.watched, outcome.owned))


class SourceTest(ProviderCase):
    """Changes of Secrets and ConfigMaps."""

    def changed(self, name: str, event: str, kind: str = "Secret") -> Outcome:
        texts = {"b": "2", "a": "1"}
        return self.told(
            secret(name, texts) if kind == "Secret" else config_map(name, texts), event
        )

    def told(self, made: Object, event: str) -> Outcome:
        name = made["metadata"]["name"]
        addon = helm_release(valuesSources=from_secret(name))
        label = f"{name}.{made['kind'].lower()}.addons.stackhpc.com/uses"
        addon["metadata"] = {**addon["metadata"], "labels": {label: ""}}
        world = ready(addon)
        return self.outcome(lambda one: one.source_changed(world, made, event), case=event)

    def test_a_change_is_told_to_the_addons_that_use_it(self) -> None:
        now = hashlib.sha256(b"a=MQ==;b=Mg==").hexdigest()
        for event, value in (("ADDED", now), ("MODIFIED", now), ("DELETED", "deleted")):
            with self.subTest(event):
                outcome = self.changed("s", event)
                self.assertEqual({"secret.addons.stackhpc.com/s": value}, dict(outcome.annotations))

    def test_the_same_of_a_config_map(self) -> None:
        outcome = self.changed("c", "MODIFIED", "ConfigMap")
        value = hashlib.sha256(b"a=1;b=2").hexdigest()
        self.assertEqual({"configmap.addons.stackhpc.com/c": value}, dict(outcome.annotations))

    def test_a_source_without_data_has_a_checksum_too(self) -> None:
        bare = {key: value for key, value in secret("s").items() if key != "data"}
        outcome = self.told(bare, "MODIFIED")
        value = hashlib.sha256(b"").hexdigest()
        self.assertEqual({"secret.addons.stackhpc.com/s": value}, dict(outcome.annotations))

    def test_a_name_that_is_too_long_for_an_annotation_is_never_told(self) -> None:
        outcome = self.changed(LONG, "MODIFIED")
        self.assertEqual((ERROR, ()), (outcome.end, outcome.annotations))
