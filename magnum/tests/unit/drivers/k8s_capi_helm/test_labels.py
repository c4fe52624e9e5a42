# SPDX-License-Identifier: Apache-2.0
"""Labels: every form, every default, and that nothing is repaired or dropped."""

from __future__ import annotations

import hypothesis
from hypothesis import strategies as st
import testtools

from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.tests.unit.drivers.k8s_capi_helm import test_helm_values
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

#: Labels of magnum-capi-helm 1.4, with its defaults but for the dashboard, which it cannot make.
DEFAULTS = {
    "kube_tag": None,
    "auto_healing_enabled": True,
    "auto_scaling_enabled": False,
    "min_node_count": None,
    "max_node_count": None,
    "boot_volume_size": 0,
    "boot_volume_type": None,
    "boot_volume_availability_zone": None,
    "docker_volume_type": None,
    "node_annotations": (),
    "fixed_subnet_cidr": "10.0.0.0/24",
    "octavia_provider": "amphora",
    "server_group_policies": "soft-anti-affinity",
    "octavia_lb_algorithm": None,
    "octavia_lb_healthcheck": True,
    "master_lb_floating_ip_enabled": True,
    "api_master_lb_allowed_cidrs": (),
    "availability_zone": None,
    "keystone_auth_enabled": False,
    "monitoring_enabled": False,
    "csi_cinder_availability_zone": "nova",
    "csi_cinder_reclaim_policy": "Retain",
    "csi_cinder_volume_binding_mode": "WaitForFirstConsumer",
    "csi_cinder_fstype": "ext4",
    "csi_cinder_allow_volume_expansion": True,
    "etcd_blockdevice_size": 0,
    "etcd_blockdevice_type": "volume",
    "etcd_blockdevice_volume_type": None,
    "etcd_blockdevice_volume_az": None,
    "extra_network_names": (),
    "kube_dashboard_enabled": False,
    "capi_helm_chart_name": None,
    "capi_helm_chart_repo": None,
    "capi_helm_chart_version": None,
    "capi_helm_overlay": None,
}

#: label, text, value
GOOD = (
    ("kube_tag", "v1.34.4", "v1.34.4"),
    ("kube_tag", "1.34.4", "v1.34.4"),
    ("kube_tag", "v1.35.0-rc.1", "v1.35.0-rc.1"),
    ("auto_healing_enabled", "False", False),
    ("auto_healing_enabled", "no", False),
    ("auto_healing_enabled", "0", False),
    ("auto_scaling_enabled", "TRUE", True),
    ("auto_scaling_enabled", " yes ", True),
    ("min_node_count", "0", 0),
    ("max_node_count", "007", 7),
    ("boot_volume_size", "40", 40),
    ("boot_volume_type", "schnell & groß", "schnell & groß"),
    ("boot_volume_type", "__DEFAULT__", "__DEFAULT__"),
    ("boot_volume_availability_zone", "zóna-1", "zóna-1"),
    (
        "node_annotations",
        "node.cluster.x-k8s.io/b = 2 ,a=x=y, e/mpty=",
        (("a", "x=y"), ("e/mpty", ""), ("node.cluster.x-k8s.io/b", "2")),
    ),
    ("fixed_subnet_cidr", "192.168.0.0/29", "192.168.0.0/29"),
    ("octavia_provider", "OVN", "ovn"),
    ("octavia_provider", "Vendor_X", "Vendor_X"),
    ("octavia_lb_algorithm", "least_connections", "LEAST_CONNECTIONS"),
    ("api_master_lb_allowed_cidrs", "10.0.0.0/8,2001:db8::/32", ("10.0.0.0/8", "2001:db8::/32")),
    ("api_master_lb_allowed_cidrs", "10.0.0.0/8; ::1", ("10.0.0.0/8", "::1/128")),
    ("api_master_lb_allowed_cidrs", "192.0.2.7", ("192.0.2.7/32",)),
    ("availability_zone", "zóna 1", "zóna 1"),
    ("csi_cinder_reclaim_policy", "delete", "Delete"),
    ("csi_cinder_volume_binding_mode", "waitforfirstconsumer", "WaitForFirstConsumer"),
    ("csi_cinder_fstype", "XFS", "xfs"),
    ("etcd_blockdevice_type", "Local", "local"),
    ("extra_network_names", "storage backup", ("storage", "backup")),
    ("extra_network_names", "storage,backup", ("storage", "backup")),
    ("capi_helm_chart_version", "0.25.1-dev.0.feat-x.3", "0.25.1-dev.0.feat-x.3"),
    ("capi_helm_overlay", " GPU_2 ", "gpu_2"),
)

#: label, text, words of the sentence that is expected
BAD = (
    ("kube_tag", "1.34", "v1.36.3"),
    ("kube_tag", "latest", "v1.36.3"),
    ("kube_tag", "v01.34.4", "v1.36.3"),
    ("auto_healing_enabled", "maybe", "true or false"),
    ("auto_healing_enabled", "2", "true or false"),
    ("min_node_count", "-1", "0 or more"),
    ("min_node_count", "1.0", "0 or more"),
    ("min_node_count", "1_000", "0 or more"),
    ("min_node_count", "\u0661", "0 or more"),
    ("max_node_count", "0", "1 or more"),
    ("boot_volume_size", "40GB", "whole number of GiB"),
    ("boot_volume_size", "99999999", "whole number of GiB"),
    ("boot_volume_type", "{{ lookup('x') }}", "without"),
    ("boot_volume_type", "a\nb", "line breaks"),
    ("boot_volume_type", " fast", "name"),
    ("boot_volume_type", "x" * 256, "255"),
    ("boot_volume_availability_zone", "a,b", "one availability zone"),
    ("boot_volume_availability_zone", "zone 1", "':' and spaces, without"),
    ("node_annotations", "a", "key=value"),
    ("node_annotations", "=a", "key=value"),
    ("node_annotations", "a b=c", "key=value"),
    ("node_annotations", "a=1,a=2", "each key once"),
    ("node_annotations", "a=1,,b=2", "commas between them"),
    ("node_annotations", "a={{ b }}", "without"),
    ("node_annotations", "a=b\nc", "line breaks"),
    ("fixed_subnet_cidr", "10.0.0.1/24", "host bits"),
    ("fixed_subnet_cidr", "10.0.0.0", "8 addresses"),
    ("fixed_subnet_cidr", "2001:db8::/64", "IPv4"),
    ("octavia_provider", "ovn; rm", "Octavia provider"),
    ("octavia_lb_algorithm", "RANDOM", "ROUND_ROBIN"),
    ("api_master_lb_allowed_cidrs", "10.0.0.0/8,none", "IPv4 or IPv6"),
    ("api_master_lb_allowed_cidrs", "10.0.0.1/8", "host bits"),
    ("availability_zone", "az1,az2", "one availability zone"),
    ("availability_zone", "az1:host", "one availability zone"),
    ("availability_zone", " az1", "and spaces around it"),
    ("csi_cinder_reclaim_policy", "Recycle", "Retain or Delete"),
    ("csi_cinder_fstype", "ext4 -O x", "filesystem"),
    ("etcd_blockdevice_type", "ephemeral", "volume or local"),
    ("extra_network_names", "a {%b", "without"),
    ("capi_helm_chart_version", ">=1.0", "not a range"),
    ("capi_helm_overlay", "../site", "a word"),
)


class TestForms(testtools.TestCase):
    def test_defaults(self) -> None:
        found = {label.name: label.default for label in labels.REGISTRY}
        self.assertEqual(DEFAULTS, {name: found[name] for name in DEFAULTS})
        self.assertEqual(labels.Labels(), labels.parse({}, {}))

    def test_good_texts(self) -> None:
        for name, text, value in GOOD:
            found = labels.parse({name: text}, {})
            self.assertEqual((name, value), (name, getattr(found, name)))

    def test_bad_texts(self) -> None:
        for name, text, words in BAD:
            error = self.assertRaises(errors.InvalidLabel, labels.parse, {name: text}, {})
            self.assertEqual((name, text), (error.label, error.value))
            self.assertIn(
                f"Label '{name}' has an invalid value. The value is '{text}': expected ", str(error)
            )
            self.assertIn(words, error.expected)

    def test_every_example_asks_for_something(self) -> None:
        for label in labels.REGISTRY:
            found = labels.parse({label.name: label.example}, {})
            self.assertNotEqual(label.default, getattr(found, label.name), label.name)

    def test_every_help_is_sentences(self) -> None:
        for label in labels.REGISTRY:
            self.assertTrue(label.help.endswith("."), label.name)
            self.assertTrue(label.help[0].isupper(), label.name)

    def test_an_empty_text_is_not_given(self) -> None:
        for label in labels.REGISTRY:
            for text in ("", "  "):
                self.assertEqual(labels.Labels(), labels.parse({label.name: text}, {}), label.name)

    @hypothesis.given(st.sampled_from(labels.REGISTRY), st.text(max_size=40))
    def test_any_text_is_taken_or_refused_by_name(self, label: labels.Label, text: str) -> None:
        try:
            found = labels.parse({label.name: text}, {})
        except errors.InvalidLabel as error:
            self.assertEqual(label.name, error.label)
            self.assertEqual(text, error.value)
        else:
            self.assertEqual(found, labels.parse({label.name: text}, {}))

    @hypothesis.given(st.text(min_size=1, max_size=255))
    def test_a_name_survives_as_it_is(self, text: str) -> None:
        try:
            found = labels.parse({"boot_volume_type": text}, {})
        except errors.InvalidLabel:
            return
        self.assertIn(found.boot_volume_type, (text, None))
        self.assertEqual(not text.strip(), found.boot_volume_type is None)

    @hypothesis.given(
        st.sampled_from([label for label in labels.REGISTRY if label.label_type.choices]), st.data()
    )
    def test_words_of_a_list_have_no_case(self, label: labels.Label, data: st.DataObject) -> None:
        word = data.draw(st.sampled_from(label.label_type.choices))
        text = "".join(data.draw(st.sampled_from((c.lower(), c.upper()))) for c in word)
        provider = "ovn" if word == "SOURCE_IP_PORT" else "amphora"
        found = labels.parse({label.name: text, "octavia_provider": provider}, {})
        self.assertEqual(word, getattr(found, label.name))


class TestSources(testtools.TestCase):
    def test_a_label_beats_the_site(self) -> None:
        site = {"csi_cinder_fstype": "xfs", "monitoring_enabled": "True"}
        found = labels.parse({"csi_cinder_fstype": "btrfs"}, site)
        self.assertEqual(("btrfs", True), (found.csi_cinder_fstype, found.monitoring_enabled))

    def test_an_old_name_is_understood(self) -> None:
        old = {"etcd_volume_size": "10", "etcd_volume_type": "fast", "extra_network_name": "san"}
        found = labels.parse(old, {})
        self.assertEqual(
            (10, "fast", ("san",)),
            (
                found.etcd_blockdevice_size,
                found.etcd_blockdevice_volume_type,
                found.extra_network_names,
            ),
        )

    def test_an_old_name_beats_the_site_but_not_the_new_name(self) -> None:
        site = {"etcd_blockdevice_size": "1"}
        texts = {"etcd_volume_size": "2"}
        self.assertEqual(2, labels.parse(texts, site).etcd_blockdevice_size)
        texts["etcd_blockdevice_size"] = "3"
        self.assertEqual(3, labels.parse(texts, site).etcd_blockdevice_size)

    def test_an_error_names_the_old_name_that_was_used(self) -> None:
        error = self.assertRaises(errors.InvalidLabel, labels.parse, {"etcd_volume_size": "x"}, {})
        self.assertEqual("etcd_volume_size", error.label)

    def test_a_wrong_site_default_is_the_operators(self) -> None:
        error = self.assertRaises(
            errors.InvalidRequest, labels.parse, {}, {"fixed_subnet_cidr": "here"}
        )
        self.assertIn("This cloud's default for label 'fixed_subnet_cidr'", str(error))
        self.assertIn("[capi_helm_cluster_labels]", error.detail)

    def test_a_wrong_site_default_that_is_not_used_does_no_harm(self) -> None:
        found = labels.parse({"fixed_subnet_cidr": "10.1.0.0/16"}, {"fixed_subnet_cidr": "here"})
        self.assertEqual("10.1.0.0/16", found.fixed_subnet_cidr)

    def test_the_chart_version_is_the_templates(self) -> None:
        template = {"capi_helm_chart_version": "1.0.0"}
        found = labels.parse({"capi_helm_chart_version": "1.0.0"}, {}, template)
        self.assertEqual("1.0.0", found.capi_helm_chart_version)
        for other in ({}, {"capi_helm_chart_version": "1.0.1"}):
            error = self.assertRaises(
                errors.InvalidLabel, labels.parse, {"capi_helm_chart_version": "1.0.0"}, {}, other
            )
            self.assertIn("only a template", str(error))


class TestTogether(testtools.TestCase):
    def test_the_usual_algorithm_is_the_providers(self) -> None:
        for provider, method in (
            ("ovn", "SOURCE_IP_PORT"),
            ("amphora", "ROUND_ROBIN"),
            ("x", "ROUND_ROBIN"),
        ):
            found = labels.parse({"octavia_provider": provider}, {})
            self.assertEqual(method, found.load_balancer_method)

    def test_an_algorithm_that_the_provider_lacks_is_refused(self) -> None:
        for provider, algorithm in (("ovn", "ROUND_ROBIN"), ("amphora", "SOURCE_IP_PORT")):
            texts = {"octavia_provider": provider, "octavia_lb_algorithm": algorithm}
            error = self.assertRaises(errors.InvalidLabel, labels.parse, texts, {})
            self.assertEqual("octavia_lb_algorithm", error.label)
            self.assertIn(provider, str(error))

    def test_a_site_algorithm_gives_way_to_the_provider(self) -> None:
        site = {"octavia_lb_algorithm": "ROUND_ROBIN"}
        found = labels.parse({"octavia_provider": "ovn"}, site)
        self.assertEqual("SOURCE_IP_PORT", found.load_balancer_method)
        site = {"octavia_lb_algorithm": "SOURCE_IP_PORT", "octavia_provider": "ovn"}
        found = labels.parse({"octavia_provider": "amphora"}, site)
        self.assertEqual("ROUND_ROBIN", found.load_balancer_method)

    def test_a_site_algorithm_holds_where_it_can(self) -> None:
        found = labels.parse({}, {"octavia_lb_algorithm": "LEAST_CONNECTIONS"})
        self.assertEqual("LEAST_CONNECTIONS", found.load_balancer_method)

    def test_bounds_that_cross_are_refused(self) -> None:
        texts = {"min_node_count": "3", "max_node_count": "2"}
        error = self.assertRaises(errors.InvalidLabel, labels.parse, texts, {})
        self.assertEqual("min_node_count", error.label)
        error = self.assertRaises(
            errors.InvalidLabel, labels.parse, {"max_node_count": "2"}, {"min_node_count": "3"}
        )
        self.assertEqual("max_node_count", error.label)


class TestNodegroups(testtools.TestCase):
    """A nodegroup's own labels, and copies of the cluster's."""

    def refused(self, own: dict[str, str], cluster: dict[str, str]) -> str:
        error = self.assertRaises(errors.InvalidRequest, labels.check_nodegroup, own, cluster, {})
        return str(error)

    def test_what_a_nodegroup_may_have_of_its_own(self) -> None:
        cluster = {"boot_volume_size": "40", "monitoring_enabled": "true", "anything": "x"}
        for label in labels.REGISTRY:
            own = {label.name: label.example}
            if labels.LabelScope.NODEGROUP in label.scopes:
                labels.check_nodegroup(own, {}, {})
                self.assertEqual(
                    labels.parse(own, {}), labels.parse_nodegroup(own, {}, {}), label.name
                )
            else:
                said = self.refused(own, {})
                self.assertIn(
                    f"Label '{label.name}' applies to whole clusters. The nodegroup has the value",
                    said,
                )
                self.assertIn("boot_volume_size", said)
        labels.check_nodegroup(dict(cluster), cluster, {})
        labels.check_nodegroup({"unknown": "y", "monitoring_enabled": ""}, cluster, {})

    def test_the_form_is_that_of_clusters(self) -> None:
        self.assertIn("whole number of GiB", self.refused({"boot_volume_size": "big"}, {}))

    def test_its_own_over_the_clusters_over_the_sites(self) -> None:
        site = {"boot_volume_size": "10", "boot_volume_type": "slow", "monitoring_enabled": "true"}
        cluster = {"boot_volume_size": "20", "availability_zone": "az-1"}
        found = labels.parse_nodegroup({"boot_volume_size": "30"}, cluster, site)
        self.assertEqual(
            (30, "slow", "az-1", True),
            (
                found.boot_volume_size,
                found.boot_volume_type,
                found.availability_zone,
                found.monitoring_enabled,
            ),
        )

    def test_a_copy_is_no_wish(self) -> None:
        copies = {"extra_network_name": "old", "boot_volume_size": "20"}
        found = labels.parse_nodegroup(
            {**copies, "extra_network_names": "mine"}, {**copies, "boot_volume_size": "20"}, {}
        )
        self.assertEqual(("mine",), found.extra_network_names)

    def test_an_old_name_beats_the_clusters_new_one(self) -> None:
        cluster = {"extra_network_names": "cluster"}
        for own in ({"extra_network_name": "mine"}, {**cluster, "extra_network_name": "mine"}):
            found = labels.parse_nodegroup(own, cluster, {})
            self.assertEqual(("mine",), found.extra_network_names)

    def test_what_is_the_whole_clusters_stays_so(self) -> None:
        found = labels.parse_nodegroup({"monitoring_enabled": "true"}, {}, {})
        self.assertEqual(labels.Labels(), found)


class TestNotices(testtools.TestCase):
    def test_good_labels_need_no_word(self) -> None:
        for label in labels.REGISTRY:
            texts = {
                "boot_volume_size": "1",
                "etcd_blockdevice_size": "1",
                **test_helm_values.COMPANIONS.get(label.name, {}),
                label.name: label.example,
            }
            self.assertEqual((), labels.notices(texts), label.name)

    def test_unknown_labels_stand_in_one_sentence(self) -> None:
        [said] = labels.notices({"zz_top": "1", "my_tag": "v3"})
        self.assertTrue(said.endswith(": my_tag, zz_top."), said)

    def test_a_slip_of_the_pen_is_named(self) -> None:
        for slip in ("boot_volume_sise", "Boot_Volume_Size"):
            [said] = labels.notices({slip: "1"})
            self.assertIn("did you mean 'boot_volume_size'?", said)

    def test_old_names(self) -> None:
        [said] = labels.notices({"etcd_volume_size": "1"})
        self.assertEqual(
            "Label 'etcd_volume_size' is an old name: use 'etcd_blockdevice_size'.", said
        )
        [said] = labels.notices({"etcd_volume_size": "1", "etcd_blockdevice_size": "2"})
        self.assertIn("has no effect, because 'etcd_blockdevice_size' is set", said)

    def test_labels_without_effect(self) -> None:
        for texts, name in (
            ({"boot_volume_type": "fast"}, "boot_volume_type"),
            ({"boot_volume_type": "fast", "boot_volume_size": "0"}, "boot_volume_type"),
            ({"etcd_blockdevice_type": "local"}, "etcd_blockdevice_type"),
            (
                {
                    "etcd_blockdevice_type": "Local",
                    "etcd_blockdevice_size": "1",
                    "etcd_blockdevice_volume_az": "az",
                },
                "etcd_blockdevice_volume_az",
            ),
            ({"auto_scaling_enabled": "true"}, "auto_scaling_enabled"),
        ):
            [said] = labels.notices(texts)
            self.assertIn(f"Label '{name}' has no effect", said)

    def test_the_site_counts(self) -> None:
        self.assertEqual((), labels.notices({"boot_volume_type": "x"}, {"boot_volume_size": "9"}))

    @hypothesis.given(st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=5))
    def test_never_an_error(self, texts: dict[str, str]) -> None:
        notices = labels.notices({**texts, "no_label_of_any_driver": "x"})
        for notice in at_least_one(notices):
            self.assertTrue(notice.endswith((".", "?")), notice)
