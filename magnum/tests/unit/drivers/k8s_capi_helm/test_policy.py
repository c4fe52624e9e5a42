# SPDX-License-Identifier: Apache-2.0
"""The provider's policy: what a file may say, and what each request is refused for."""

from __future__ import annotations

import pathlib
from typing import Any

import fixtures
import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.conf import policy_file
from magnum.drivers.k8s_capi_helm.handlers.tasks import status_task
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.values import provider_policy
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import CommandCase, CRITICAL, OK
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import CONF, NAMESPACE
from magnum.tests.unit.drivers.k8s_capi_helm.rendered_case import RenderedCase

RULES = """\
rules:
  - name: sizes
    message: Ask the cloud team for more.
    excluded_projects: [big]
    max_control_plane_nodes: 3
    max_nodes: 4
    max_nodegroups: 2
    max_nodes_per_nodegroup: 3
  - name: versions
    kubernetes: ">=1.34,<1.36"
  - name: disks
    labels:
      boot_volume_size: {minimum: 20, maximum: 50}
      boot_volume_type: {allowed: [ssd, ""]}
      audit_log_enabled: {refused: true}
"""


class TestFile(testtools.TestCase):
    def written(self, text: str) -> str:
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "policy.yaml"
        path.write_text(text)
        return str(path)

    def test_none(self) -> None:
        self.assertEqual((), policy_file.read_policy(""))
        self.assertEqual((), policy_file.read_policy(self.written("rules: []")))

    def test_rules(self) -> None:
        sizes, versions, disks = policy_file.read_policy(self.written(RULES))
        self.assertEqual(
            ("sizes", ("big",), 4), (sizes.name, sizes.excluded_projects, sizes.limits["max_nodes"])
        )
        self.assertEqual([False, True], [sizes.is_for("big"), sizes.is_for("p1")])
        self.assertIsNotNone(versions.kubernetes)
        self.assertEqual(
            (20, 50),
            (disks.labels["boot_volume_size"].minimum, disks.labels["boot_volume_size"].maximum),
        )
        self.assertTrue(disks.labels["audit_log_enabled"].is_refused)

    def test_what_is_none_is_named(self) -> None:
        for text, words in (
            ("", "None is not of type 'object'"),
            ("rules: {}", "$.rules"),
            ("rule: []", "'rule' was unexpected"),
            ("rules: [{max_nodes: 3}]", "'name' is a required property"),
            ("rules: [{name: a, max_node: 3}]", "'max_node' was unexpected"),
            ("rules: [{name: a, max_nodes: many}]", "$.rules[0].max_nodes"),
            ("rules: [{name: a, max_nodes: -1}]", "$.rules[0].max_nodes"),
            ("rules: [{name: a b}]", "$.rules[0].name"),
            ("rules: [{name: a, public_api: true}]", "$.rules[0].public_api"),
            ("rules: [{name: a, kubernetes: new}]", "rule 'a': kubernetes is 'new'"),
            ("rules: [{name: a, labels: {colour: {refused: true}}}]", "no label 'colour'"),
            ("rules: [{name: a, labels: {kube_tag: {}}}]", "$.rules[0].labels.kube_tag"),
            ("rules: [{name: a}, {name: a}]", "two rules have the name 'a'"),
            ("rules: [{name: a, projects: [x], excluded_projects: [y]}]", "$.rules[0]"),
            ("rules: [", "while parsing"),
            ("rules: " + "[" * 5000, ""),
        ):
            with self.subTest(text[:60]):
                path = self.written(text)
                error = self.assertRaises(
                    errors.InvalidConfiguration, policy_file.read_policy, path
                )
                self.assertIn(f"policy_file {path}: ", error.detail)
                self.assertIn(words, error.detail)
                self.assertIn("policy for clusters cannot be read", str(error))

    def test_a_file_that_cannot_be_read(self) -> None:
        large = self.written("#" * (1 << 20) + "#")
        for path, words in (("/nowhere/policy.yaml", "No such file"), (large, "is larger than")):
            error = self.assertRaises(errors.InvalidConfiguration, policy_file.read_policy, path)
            self.assertIn(words, error.detail)


class PolicyCase(RenderedCase):
    def setUp(self) -> None:
        super().setUp()
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "policy.yaml"
        self.rules(RULES)

    def rules(self, text: str) -> None:
        self.path.write_text(text)
        CONF.set_override("policy_file", str(self.path), "capi_helm")
        self.addCleanup(CONF.clear_override, "policy_file", "capi_helm")

    def template_of(self, **labels: str) -> Any:
        self.cloud.images["ubuntu-kube-1.35"] = ("image-2", "1.35.2")
        template = self.cluster().cluster_template
        return self._template(
            uuid="21111111-2222-4333-8444-555555555555",
            name="next",
            public=True,
            image_id="ubuntu-kube-1.35",
            labels={**(template.labels or {}), **labels},
        )


class TestResize(PolicyCase):
    def test_to_what_is_allowed(self) -> None:
        self.resize(3)
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)

    def test_to_more(self) -> None:
        self.assertRaisesRegex(
            errors.InvalidRequest,
            r"^This cloud's policy does not allow the request\. Rule 'sizes' was not kept: the "
            r"request comes to 4 nodes per nodegroup, and 3 are allowed\. "
            r"Ask the cloud team for more\.$",
            self.raised,
            4,
        )

    def raised(self, count: int) -> None:
        self.resize(count)
        reason = self.cluster().status_reason or ""
        if self.cluster().status == "UPDATE_FAILED":
            raise errors.InvalidRequest(reason)

    def test_a_cluster_that_is_larger_can_become_smaller(self) -> None:
        CONF.set_override("policy_file", "", "capi_helm")
        self.resize(9)
        self.capi_converges()
        self.status_task(2)
        CONF.set_override("policy_file", str(self.path), "capi_helm")
        self.resize(8)
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)

    def test_another_project(self) -> None:
        self.rules(RULES.replace("[big]", "[p1]"))
        self.resize(9)
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)

    def test_a_policy_that_cannot_be_read_refuses(self) -> None:
        self.rules("rules: [")
        self.resize(2)
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        self.assertIn("policy for clusters cannot be read", self.cluster().status_reason)
        self.assertEqual(1, self.group("default-worker").node_count)

    def test_another_nodegroup_that_is_too_large_already_excuses_none(self) -> None:
        CONF.set_override("policy_file", "", "capi_helm")
        self.add_group("large", 9)
        self.capi_converges()
        self.status_task(2)
        self.rules("rules: [{name: r, max_nodes_per_nodegroup: 3}]")
        self.resize(4)
        cluster = self.cluster()
        self.assertEqual("UPDATE_FAILED", cluster.status)
        self.assertIn("comes to 4 nodes per nodegroup, and 3 are allowed", cluster.status_reason)


class TestNodegroups(PolicyCase):
    def failed(self, name: str, words: str) -> None:
        row = self.group(name)
        self.assertEqual("CREATE_FAILED", row.status)
        self.assertIn(words, row.status_reason)

    def test_one_more_within_the_limits(self) -> None:
        self.add_group("more", 3)
        self.assertEqual("CREATE_IN_PROGRESS", self.group("more").status)

    def test_one_that_is_too_large(self) -> None:
        self.add_group("more", 4)
        self.failed("more", "comes to 5 nodes, and 4 are allowed")

    def test_too_many(self) -> None:
        self.add_group("more")
        self.add_group("most")
        self.failed("most", "comes to 3 nodegroups, and 2 are allowed")

    def test_a_label_that_is_refused(self) -> None:
        self.rules("rules: [{name: r, labels: {boot_volume_type: {refused: true}}}]")
        self.add_group("more", labels={"boot_volume_size": "20", "boot_volume_type": "fast"})
        self.failed("more", "'boot_volume_type' of nodegroup 'more' may not be set")

    def test_an_image_of_its_own(self) -> None:
        self.rules('rules: [{name: r, kubernetes: ">=1.34"}]')
        self.cloud.images["older"] = ("image-3", "1.33.1")
        self.add_group("more", image_id="older")
        self.failed("more", "Kubernetes 1.33.1 is requested, and >=1.34 is allowed")

    def test_a_bound_without_an_autoscaler_is_no_size(self) -> None:
        self.add_group("more", 1, max_node_count=9)
        self.assertEqual("CREATE_IN_PROGRESS", self.group("more").status)

    def test_its_own_labels(self) -> None:
        self.add_group("more", labels={"boot_volume_size": "60"})
        self.failed("more", "'boot_volume_size' of nodegroup 'more' is 60, and at most 50")


class TestAutoscaled(PolicyCase):
    """Nodegroups whose size the autoscaler sets."""

    def made(self, **more: Any) -> Any:
        return super().made(labels={"auto_scaling_enabled": "true"})

    def test_the_autoscalers_bound_counts(self) -> None:
        self.add_group("more", 1, max_node_count=9)
        row = self.group("more")
        self.assertEqual("CREATE_FAILED", row.status)
        self.assertIn("comes to 10 nodes, and 4 are allowed", row.status_reason)

    def test_a_new_bound(self) -> None:
        self.change_group(max_node_count=9)
        row = self.group("default-worker")
        self.assertEqual("UPDATE_FAILED", row.status)
        self.assertIn("comes to 9 nodes, and 4 are allowed", row.status_reason)

    def test_the_bound_of_the_labels_counts(self) -> None:
        template = self.template_of(auto_scaling_enabled="true", max_node_count="9")
        self.assertIn("comes to 9 nodes, and 4 are allowed", self.upgrade(template))


class TestUpgrade(PolicyCase):
    def test_to_an_allowed_version(self) -> None:
        self.assertEqual("", self.upgrade(self.template_of()))

    def test_an_older_cluster_goes_up_step_by_step(self) -> None:
        self.rules('rules: [{name: r, kubernetes: ">=1.36,<1.38"}]')
        self.assertEqual("", self.upgrade(self.template_of()))

    def test_a_label_that_is_refused_cannot_get_another_value(self) -> None:
        self.rules("rules: []")
        template = self.template_of(boot_volume_size="30")
        self.assertEqual("", self.upgrade(template))
        for _ in range(3):
            self.capi_converges()
            self.status_task(2)
        self.rules("rules: [{name: r, labels: {boot_volume_size: {refused: true}}}]")
        labels = {**template.labels, "boot_volume_size": "40"}
        other = self._template(
            uuid="31111111-2222-4333-8444-555555555555",
            name="other",
            image_id="ubuntu-kube-1.35",
            labels=labels,
        )
        self.assertIn("may not be set", self.upgrade(other))

    def test_what_is_no_version_is_none_that_is_allowed(self) -> None:
        [rule] = [rule for rule in policy_file.read_policy(str(self.path)) if rule.kubernetes]
        request = status_task.request(self.periodic(), self.cluster())
        for version in ("new", "v1", "1.34.4-x!"):
            with self.subTest(version):
                self.assertRaises(
                    errors.InvalidRequest,
                    provider_policy.check_request,
                    (rule,),
                    request,
                    request,
                    version,
                    "1.34.4",
                )

    def test_to_another_version(self) -> None:
        self.rules(RULES.replace("<1.36", "<1.35"))
        said = self.upgrade(self.template_of())
        self.assertIn("Rule 'versions' was not kept: Kubernetes 1.35.2 is requested, and ", said)
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)

    def test_labels_that_the_template_brings(self) -> None:
        for labels, words in (
            ({"boot_volume_size": "60"}, "'boot_volume_size' is 60, and at most 50 is allowed"),
            ({"boot_volume_size": "10"}, "'boot_volume_size' is 10, and at least 20 is allowed"),
            ({"boot_volume_type": "fast"}, "'boot_volume_type' is 'fast', and one of ssd"),
            ({"audit_log_enabled": "false"}, "'audit_log_enabled' may not be set"),
        ):
            with self.subTest(labels):
                template = self.template_of(**labels)
                self.assertIn(words, self.upgrade(template))
                template.destroy()

    def test_labels_that_the_cluster_has_already_do_not_count(self) -> None:
        self.assertEqual("", self.upgrade(self.template_of(boot_volume_size="20")))

    def test_the_diff_refuses_the_same(self) -> None:
        self.template_of(boot_volume_size="60")
        printed = self.command("diff", "demo", "--template", "next")
        self.assertIn("Rule 'disks'", printed.error)


class TestCheck(CommandCase):
    def test_the_file(self) -> None:
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "policy.yaml"
        self.addCleanup(CONF.clear_override, "policy_file", "capi_helm")
        for text, status, words in (
            (None, OK, "There is no policy file."),
            (RULES, OK, "sizes, versions, disks"),
            ("rules: [", CRITICAL, "policy_file"),
        ):
            if text is not None:
                path.write_text(text)
                CONF.set_override("policy_file", str(path), "capi_helm")
            printed = self.command("check", "policy", "-f", "json")
            self.assertEqual(status, printed.status, printed.out)
            self.assertIn(words, printed.out)


class TestCreate(CommandCase):
    def test_each_rule_refuses_a_new_cluster(self) -> None:
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "policy.yaml"
        CONF.set_override("policy_file", str(path), "capi_helm")
        self.addCleanup(CONF.clear_override, "policy_file", "capi_helm")
        for rule, words in (
            ("public_api: false", "the Kubernetes API would have a floating IP"),
            ('kubernetes: ">=1.99"', "is requested, and >=1.99 is allowed"),
            ("max_control_plane_nodes: 0", "comes to 1 control plane nodes, and 0 are allowed"),
            ("labels: {boot_volume_size: {minimum: 20}}", "is 0, and at least 20 is allowed"),
        ):
            with self.subTest(rule):
                path.write_text(f"rules: [{{name: r, {rule}}}]")
                self.quietly(self.create)
                cluster = self.cluster()
                self.assertEqual("CREATE_FAILED", cluster.status)
                self.assertIn("Rule 'r' was not kept: ", cluster.status_reason)
                self.assertIn(words, cluster.status_reason)
                self.assertEqual([], self.kube.list(names.CLUSTER, NAMESPACE))
                for nodegroup in cluster.nodegroups:
                    nodegroup.destroy()
                cluster.destroy()
