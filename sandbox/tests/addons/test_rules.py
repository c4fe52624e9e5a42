# SPDX-License-Identifier: Apache-2.0
"""Each line of the addon provider's tables has a case that only this line answers."""

import unittest

from sandbox.addons import rules
from sandbox.addons.rules import Act
from sandbox.tests.addons.builders import addon, cluster, infra_cluster, secret, seen

FROM_SECRET = [{"secret": {"name": "rel-values"}}]
LONG = "x" * 228

# Rule, what is different from an addon that is installed, and what follows.
IDENTIFY = {
    "cluster missing": (seen(cluster=None), Act.RETRY, "cluster 'rel' not found"),
    "kind of a reference unknown": (
        seen(unknown_kind="API 'v1' has no resource 'Password'", infra_cluster=None),
        Act.CRASH,
        "ValueError",
    ),
    "infrastructure cluster missing": (seen(infra_cluster=None), Act.RETRY, "infrastructure"),
    "infrastructure cluster without identityRef": (
        seen(infra_cluster=infra_cluster({})),
        Act.CRASH,
        "identityRef",
    ),
    "identity missing": (seen(identity=None), Act.RETRY, "identityRef"),
    "source name too long for a label": (
        seen(addon(valuesSources=[{"secret": {"name": LONG}}])),
        Act.FAIL,
        f"{LONG}.secret.addons.stackhpc.com/uses",
    ),
}
WATCH = {
    "source missing": (
        seen(addon(valuesSources=FROM_SECRET)),
        Act.RETRY,
        "Secret 'rel-values' not found",
    ),
}
ADMIT = {
    "cluster not ready": (seen(cluster=cluster()), Act.RETRY, "cluster 'rel' is not ready"),
    "paused": (seen(addon(paused=True)), Act.SKIP, "paused"),
    "no kubeconfig": (seen(has_kubeconfig=False), Act.RETRY, "rel-kubeconfig"),
    "fault fail": (seen(faults={"fail": "^rel-"}), Act.FAIL, "fault"),
}
DELETE = {
    "cluster gone": (seen(cluster=None), Act.RELEASE, "gone"),
    "cluster without phase": (seen(cluster={**cluster(), "status": {}}), Act.CRASH, "phase"),
    "cluster deleting": (seen(cluster=cluster(phase="Deleting")), Act.RELEASE, "being deleted"),
    "no kubeconfig": (seen(has_kubeconfig=False), Act.RELEASE, "kubeconfig"),
    "paused": (seen(addon(paused=True)), Act.RELEASE, "paused"),
}


class TestTables(unittest.TestCase):
    tables = (
        (rules.IDENTIFY, IDENTIFY, Act.INSTALL),
        (rules.WATCH, WATCH, Act.INSTALL),
        (rules.ADMIT, ADMIT, Act.INSTALL),
        (rules.DELETE, DELETE, Act.UNINSTALL),
    )

    def test_every_line_has_a_case_and_every_case_a_line(self) -> None:
        for table, cases, _ in self.tables:
            self.assertEqual([rule.name for rule in table], list(cases))

    def test_a_line_answers_its_own_case(self) -> None:
        for table, cases, otherwise in self.tables:
            for rule in table:
                case, act, words = cases[rule.name]
                with self.subTest(rule.name):
                    answer = rules.decide((rule,), case, otherwise)
                    self.assertEqual(act, answer.act)
                    self.assertIn(words, answer.message)

    def test_no_line_above_answers_a_case(self) -> None:
        for table, cases, otherwise in self.tables:
            for index, rule in enumerate(table):
                with self.subTest(rule.name):
                    case = cases[rule.name][0]
                    self.assertEqual(otherwise, rules.decide(table[:index], case, otherwise).act)

    def test_what_is_in_order_is_installed_and_uninstalled(self) -> None:
        for table, _, otherwise in self.tables:
            self.assertEqual(otherwise, rules.decide(table, seen(), otherwise).act)


class TestGate(unittest.TestCase):
    def test_a_bootstrap_addon_waits_for_the_control_plane_only(self) -> None:
        self.assertEqual(("ControlPlaneInitialized",), rules.gate({"bootstrap": True}))

    def test_any_other_waits_for_the_cluster_by_either_name_of_the_condition(self) -> None:
        late = addon(bootstrap=False)
        for condition, act in (
            ("ControlPlaneInitialized", Act.RETRY),
            ("Ready", Act.INSTALL),
            ("Available", Act.INSTALL),
        ):
            with self.subTest(condition):
                case = seen(late, cluster=cluster(condition))
                self.assertEqual(act, rules.decide(rules.ADMIT, case, Act.INSTALL).act)


class TestDeletion(unittest.TestCase):
    def test_a_deletion_timestamp_alone_does_not_count_as_deleting(self) -> None:
        dying = cluster("ControlPlaneInitialized")
        dying["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        answer = rules.decide(rules.DELETE, seen(cluster=dying), Act.UNINSTALL)
        self.assertEqual(Act.UNINSTALL, answer.act)


class TestMetadata(unittest.TestCase):
    def test_labels_name_cluster_release_and_sources(self) -> None:
        document = addon(releaseName="ccm", valuesSources=FROM_SECRET)
        self.assertEqual(
            {
                "addons.stackhpc.com/cluster": "rel",
                "addons.stackhpc.com/release-namespace": "kube-system",
                "addons.stackhpc.com/release-name": "ccm",
                "rel-values.secret.addons.stackhpc.com/uses": "",
                "rel-cloud-credentials.secret.addons.stackhpc.com/uses": "",
            },
            rules.labels(seen(document)),
        )

    def test_a_release_is_named_like_the_addon_by_default(self) -> None:
        self.assertEqual("rel-ccm", rules.labels(seen())["addons.stackhpc.com/release-name"])

    def test_the_cluster_owns_the_addon_and_blocks_until_it_is_gone(self) -> None:
        reference = rules.owner(cluster())
        named = tuple(reference[key] for key in ("kind", "name", "uid"))
        self.assertEqual(("Cluster", "rel", "uid-of-cluster"), named)
        self.assertTrue(reference["blockOwnerDeletion"])

    def test_sources_of_both_kinds_are_found(self) -> None:
        sources = [{"configMap": {"name": "a"}}, {"template": "x: 1"}, {"secret": {"name": "b"}}]
        wanted = [("ConfigMap", "a"), ("Secret", "b")]
        self.assertEqual(wanted, rules.source_names(addon(valuesSources=sources)))
        self.assertEqual(wanted, rules.source_names(addon("Manifests", manifestSources=sources)))


class TestPhase(unittest.TestCase):
    def test_a_release_that_is_there_is_upgraded(self) -> None:
        self.assertEqual("Installing", rules.helm_phase(is_there=False))
        self.assertEqual("Upgrading", rules.helm_phase(is_there=True))

    def test_a_rendered_source_is_no_hindrance(self) -> None:
        document = addon(valuesSources=FROM_SECRET)
        sources = {("Secret", "rel-values"): secret("rel-values", **{"values.yaml": "a: 1"})}
        case = seen(document, sources=sources)
        self.assertEqual(Act.INSTALL, rules.decide(rules.ADMIT, case, Act.INSTALL).act)
