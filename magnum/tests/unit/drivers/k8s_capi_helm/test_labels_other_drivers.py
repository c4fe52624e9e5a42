# SPDX-License-Identifier: Apache-2.0
"""Labels of Magnum's other drivers: each is supported, refused with a reason, or said to be old."""

from __future__ import annotations

import dataclasses

import hypothesis
from hypothesis import strategies as st
import testtools

from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.labels import unsupported
from magnum.tests.unit.drivers.k8s_capi_helm import test_helm_values

#: Labels of magnum-capi-helm 1.4 (its conf.py), and their old names.
MAGNUM_CAPI_HELM = """
    kube_dashboard_enabled monitoring_enabled keystone_auth_enabled auto_healing_enabled
    auto_scaling_enabled min_node_count max_node_count boot_volume_size boot_volume_type
    etcd_blockdevice_size etcd_blockdevice_type etcd_blockdevice_volume_type
    etcd_blockdevice_volume_az etcd_volume_size etcd_volume_type fixed_subnet_cidr
    octavia_provider octavia_lb_algorithm octavia_lb_healthcheck master_lb_floating_ip_enabled
    api_master_lb_allowed_cidrs extra_network_names extra_network_name
    csi_cinder_availability_zone csi_cinder_reclaim_policy csi_cinder_volume_binding_mode
    csi_cinder_fstype csi_cinder_allow_volume_expansion capi_helm_chart_version
""".split()
#: Labels of magnum-cluster-api 0.38 (its documentation and code).
MAGNUM_CLUSTER_API = """
    kube_tag auto_healing_enabled auto_scaling_enabled min_node_count max_node_count
    master_lb_floating_ip_enabled octavia_provider octavia_lb_algorithm octavia_lb_healthcheck
    api_server_lb_flavor api_server_lb_availability_zone api_server_floating_ip
    api_server_cert_sans api_server_tls_cipher_suites kubelet_tls_cipher_suites
    admission_control_list audit_log_enabled audit_log_max_age audit_log_max_backup
    audit_log_max_size audit_log_maxage audit_log_maxbackup audit_log_maxsize oidc_issuer_url
    oidc_client_id oidc_username_claim oidc_username_prefix oidc_groups_claim oidc_groups_prefix
    keystone_auth_enabled service_cluster_ip_range dns_cluster_domain calico_ipv4pool
    cilium_ipv4pool calico_tag cilium_tag cilium_hubble_ui_enabled fixed_subnet_cidr
    availability_zone control_plane_availability_zones different_failure_domain
    boot_volume_size boot_volume_type etcd_volume_size etcd_volume_type container_infra_prefix
    cloud_provider_tag cinder_csi_enabled manila_csi_enabled cinder_csi_plugin_tag
    manila_csi_plugin_tag csi_attacher_tag csi_provisioner_tag csi_resizer_tag
    csi_snapshotter_tag csi_node_driver_registrar_tag csi_liveness_probe_tag
    manila_csi_share_network_id
""".split()
#: Labels of the former Heat driver that users still ask for.
HEAT = """
    kubelet_options kubeapi_options kubecontroller_options kubescheduler_options
    kubeproxy_options master_lb_allowed_cidrs ingress_controller metrics_server_enabled
    npd_enabled k8s_keystone_auth_tag autoscaler_tag node_problem_detector_tag
    monitoring_retention_days monitoring_retention_size monitoring_interval_seconds
    monitoring_storage_class_name
""".split()

#: label, text, value
GOOD = (
    ("kubelet_options", "--max-pods=64", (("max-pods", "64"),)),
    ("kubelet_options", "--a=b  --v=10", (("a", "b"), ("v", "10"))),
    ("kubelet_options", "--a=b,--v=0", (("a", "b"), ("v", "0"))),
    ("kubelet_options", "--x=a=1,b=[::1]:80/größe", (("x", "a=1,b=[::1]:80/größe"),)),
    ("kubeapi_options", "--feature-gates=A=true", (("feature-gates", "A=true"),)),
    ("kubeproxy_options", "--proxy-mode=ipvs", (("proxy-mode", "ipvs"),)),
    ("admission_control_list", "alwayspullimages", ("AlwaysPullImages",)),
    ("api_server_cert_sans", "*.example.org, 2001:DB8::1", ("*.example.org", "2001:db8::1")),
    ("api_server_cert_sans", "192.0.2.1", ("192.0.2.1",)),
    (
        "kubelet_tls_cipher_suites",
        "tls_ecdhe_rsa_with_aes_128_gcm_sha256",
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",),
    ),
    ("kubelet_options", "--node-ip=::", (("node-ip", "::"),)),
    ("kubelet_options", "--node-ip=0.0.0.0", (("node-ip", "0.0.0.0"),)),  # noqa: S104
    ("audit_log_maxage", "7", 7),
    ("oidc_issuer_url", "https://[2001:db8::1]:8443/realms/k8s", None),
    ("oidc_groups_prefix", "-", "-"),
    ("control_plane_availability_zones", "zóna 1, az-2", ("zóna 1", "az-2")),
    ("calico_ipv4pool", "10.0.0.0/8 fd00::/48", ("10.0.0.0/8", "fd00::/48")),
    ("service_cluster_ip_range", "fd00:20::/112", ("fd00:20::/112",)),
    ("api_server_floating_ip", "192.0.2.1", "192.0.2.1"),
    ("container_infra_prefix", "r.example.org:5000/a/b/", "r.example.org:5000/a/b"),
    ("calico_tag", "3.31.4", "3.31.4"),
    ("cloud_provider_tag", "v1.35.0-rc.1", "v1.35.0-rc.1"),
    ("ingress_controller", "TRAEFIK", "traefik"),
    ("monitoring_storage_class_name", "ssd.fast", "ssd.fast"),
    ("api_server_lb_flavor", "größe 高速", "größe 高速"),
)

#: label, text, words of the sentence that is expected
BAD = (
    ("kubelet_options", "--max-pods 64", "'--max-pods' is not like --name=value"),
    ("kubelet_options", "max-pods=64", "'max-pods=64' is not like"),
    ("kubelet_options", "--a=b --a=c", "--a is given twice"),
    ("kubelet_options", "--a=$(reboot)", "a quote, a dollar or a backslash"),
    ("kubelet_options", '--a="b"', "a quote"),
    ("kubelet_options", "--a=`b`", "a quote"),
    ("kubelet_options", "--a={{b}}", "flags like"),
    ("kubelet_options", "--v=11", "0 to 10"),
    ("kubelet_options", "--config=/tmp/x", "--config cannot be given here"),
    ("kubelet_options", "--node-ip=192.0.2.1", "each node has a different address"),
    ("kubelet_options", "--node-labels=a=b", "use --node-labels of the nodegroup"),
    ("kubeapi_options", "--audit-log-path=/x", "use the labels audit_log_*"),
    ("kubeapi_options", "--oidc-issuer-url=https://x", "use the labels oidc_*"),
    ("kubecontroller_options", "--cluster-signing-key-file=/x", "the chart sets it"),
    ("kubescheduler_options", "--kubeconfig=/x", "the chart sets it"),
    ("kubeproxy_options", "--hostname-override=x", "of kube-proxy only"),
    ("kubeproxy_options", "--proxy-mode=userspace", "cannot be 'userspace'"),
    (
        "admission_control_list",
        "NodeRestriction,PodSecurityPolicy",
        "'PodSecurityPolicy' is not one of them",
    ),
    ("admission_control_list", "LimitRanger,limitranger", "twice"),
    ("api_server_cert_sans", "EXAMPLE.org", "in lower case"),
    ("api_server_cert_sans", "10.0.0.256", "IP addresses"),
    ("api_server_cert_sans", "a b_c", "DNS names"),
    ("api_server_tls_cipher_suites", "TLS_RSA_WITH_RC4_128_SHA", "is not one of them"),
    ("api_server_tls_cipher_suites", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "among them"),
    ("kubelet_tls_cipher_suites", "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "among them"),
    ("audit_log_max_size", "0", "1 or more"),
    ("oidc_issuer_url", "http://sso.example.org", "https://"),
    ("oidc_issuer_url", "https://me:secret@sso.example.org", "without user"),
    ("oidc_issuer_url", "https://sso.example.org/?a=b", "query"),
    ("oidc_issuer_url", "https://sso.example.org:x", "a URL"),
    ("calico_ipv4pool", "10.0.0.0/8,11.0.0.0/8", "the same IP version"),
    ("calico_ipv4pool", "10.0.0.0/25", "between /8 and /24"),
    ("cilium_ipv4pool", "fd00::/32", "between /48 and /64"),
    ("service_cluster_ip_range", "10.0.0.0/8", "between /12 and /28"),
    ("service_cluster_ip_range", "fd00::/64", "between /108 and /124"),
    ("service_cluster_ip_range", "10.254.1.0/16", "no host bits"),
    ("dns_cluster_domain", "Cluster.Local", "in lower case"),
    ("api_server_floating_ip", "my-ip", "an IP address"),
    ("control_plane_availability_zones", "az1,az1", "twice"),
    ("control_plane_availability_zones", "nova:host1", "without ':'"),
    ("container_infra_prefix", "https://registry.example.org", "without https://"),
    ("container_infra_prefix", "registry/{{x}}", "a registry"),
    ("calico_tag", "v3.21.2", "v3.29.0, or a newer one"),
    ("csi_attacher_tag", "latest", "v4.0.0, or a newer one"),
    ("ingress_controller", "octavia", "none, traefik or nginx"),
    ("manila_csi_share_network_id", "a/b", "an id"),
    ("monitoring_retention_size", "14GB", "whole number"),
)


class TestForms(testtools.TestCase):
    def test_good_texts(self) -> None:
        for name, text, value in GOOD:
            found = getattr(labels.parse({name: text}, {}), labels.BY_NAME[name].name)
            self.assertEqual((name, text if value is None else value), (name, found))

    def test_bad_texts(self) -> None:
        for name, text, words in BAD:
            error = self.assertRaises(errors.InvalidLabel, labels.parse, {name: text}, {})
            self.assertEqual((name, text), (error.label, error.value))
            self.assertIn(words, str(error))

    @hypothesis.given(st.text(max_size=60))
    def test_a_flag_is_never_two(self, text: str) -> None:
        """What follows the equals sign stays behind it, or is refused."""
        try:
            found = labels.parse({"kubelet_options": f"--a={text}"}, {}).kubelet_options
        except errors.InvalidLabel:
            return
        self.assertEqual("a", found[0][0])
        for name, value in found:
            self.assertIn(f"--{name}={value}", f"--a={text}")
            self.assertFalse(set(value) & set("\"'`\\$ \t\n"), value)

    @hypothesis.given(st.data())
    def test_what_is_effective_reads_the_same(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sets(st.sampled_from(labels.REGISTRY), max_size=8))
        texts = {label.name: label.example for label in chosen}
        texts.pop("octavia_lb_algorithm", None)
        texts.pop("cinder_csi_enabled", None)
        found = labels.parse(texts, {})
        for_rollouts = {one.name: one.default for one in labels.REGISTRY if one.is_for_rollouts}
        found = dataclasses.replace(found, **for_rollouts)
        self.assertEqual(found, labels.parse(labels.effective(found), {}))
        self.assertEqual(texts.keys() - for_rollouts, labels.effective(found).keys())


class TestInjection(testtools.TestCase):
    """No text of a label becomes source of a template language, a second line or a second flag."""

    @hypothesis.settings(max_examples=500)
    @hypothesis.given(
        st.sampled_from(labels.REGISTRY),
        st.text(max_size=12),
        st.sampled_from(("{{", "{%", "{#", "\n", "\x00", "\u2028", "${IFS}", "`id`", "\r\n- x")),
        st.text(max_size=12),
    )
    def test_no_way_in(self, label: labels.Label, head: str, nasty: str, tail: str) -> None:
        texts = {
            **test_helm_values.COMPANIONS.get(label.name, {}),
            label.name: f"{head}{nasty}{tail}",
        }
        fields = test_helm_values.FIELDS.get(label.name, {})
        try:
            values = test_helm_values.rendered(texts, **fields)
        except errors.InvalidRequest:
            return
        found = [leaf for _, leaf in test_helm_values.leaves(values) if isinstance(leaf, str)]
        for opening in ("{{", "{%", "{#", "\n", "\x00", "\u2028"):
            self.assertEqual([], [leaf for leaf in found if opening in leaf])


class TestEveryName(testtools.TestCase):
    def test_labels_of_other_drivers_have_a_line(self) -> None:
        known = {*labels.BY_NAME, *unsupported.REFUSED, *unsupported.OPERATORS}
        for names in (MAGNUM_CAPI_HELM, MAGNUM_CLUSTER_API, HEAT):
            self.assertEqual([], [name for name in names if name not in known])

    def test_all_of_magnum_capi_helm_are_supported(self) -> None:
        self.assertEqual([], [name for name in MAGNUM_CAPI_HELM if name not in labels.BY_NAME])

    def test_a_name_stands_in_one_place(self) -> None:
        mappings = (labels.BY_NAME, unsupported.REFUSED, unsupported.OPERATORS)
        places = (*map(set, mappings), unsupported.BUNDLED, unsupported.HEAT)
        self.assertEqual(sum(map(len, places)), len(set().union(*places)))


class TestOperators(testtools.TestCase):
    """What runs beside the clouds' other clusters, no label chooses."""

    def test_a_template_with_one_is_taken_and_told(self) -> None:
        for name in unsupported.OPERATORS:
            texts = {name: "evil:latest\n{{ x }}"}
            self.assertEqual(labels.Labels(), labels.parse(texts, {}, texts))
            [said] = labels.notices(texts)
            self.assertIn(f"Label '{name}' has no effect: ", said)
            self.assertNotIn("evil", said)


class TestRefused(testtools.TestCase):
    def test_a_new_cluster_is_refused_with_the_reason(self) -> None:
        for name, reason in unsupported.REFUSED.items():
            text = "false" if name == "cloud_provider_enabled" else "true"
            error = self.assertRaises(errors.InvalidRequest, labels.parse, {name: text}, {}, {})
            self.assertIn(
                f"Label '{name}' is not supported with this value. The value is '{text}'",
                str(error),
            )
            self.assertIn(reason, str(error))

    def test_the_reason_says_what_to_use(self) -> None:
        for name, text, words in (
            ("calico_ipv4pool_ipip", "Always", "reach each other through VXLAN. Leave it out."),
            ("cloud_provider_enabled", "false", "Nodes always need the OpenStack cloud controller"),
            ("grafana_admin_passwd", "x", "Everybody who sees the cluster would see the password."),
            ("prometheus_adapter_enabled", "true", "install prometheus-adapter yourself"),
            ("prometheus_monitoring", "true", "Use monitoring_enabled."),
            ("heapster_enabled", "true", "Use metrics_server_enabled."),
        ):
            error = self.assertRaises(errors.InvalidRequest, labels.parse, {name: text}, {}, {})
            self.assertIn(words, str(error))

    def test_of_a_nodegroup(self) -> None:
        own = {"boot_volume_size": "-1", "etcd_tag": "v3", "kube_tag": "v1.34.4"}
        self.assertEqual(
            [
                "Label 'boot_volume_size' of nodegroup 'a' has no effect: its value '-1' should be "
                "a whole number of GiB, 0 for none.",
                "Label 'etcd_tag' of nodegroup 'a' has no effect: the charts and Kubernetes have "
                "their own versions.",
                "Label 'kube_tag' of nodegroup 'a' has no effect: it applies to whole clusters.",
            ],
            list(labels.nodegroup_notices({"a": own}, {})),
        )
        many = {f"zz{number}": "1" for number in range(99)}
        *_, last = labels.nodegroup_notices({"a": many}, {})
        self.assertRegex(last, r"^Only the first \d+ unknown labels of nodegroups are named\.$")
        self.assertIn("unknown labels of nodegroups are named", last)

    def test_what_asks_for_nothing_is_taken(self) -> None:
        texts = dict.fromkeys(unsupported.REFUSED, "False")
        texts["cloud_provider_enabled"] = "true"
        self.assertEqual(labels.Labels(), labels.parse(texts, {}, {}))
        self.assertEqual((), labels.notices(texts))

    def test_a_cluster_that_runs_is_told(self) -> None:
        for name in unsupported.REFUSED:
            texts = {name: "false" if name == "cloud_provider_enabled" else "true"}
            self.assertEqual(labels.Labels(), labels.parse(texts, {}, running_labels=texts))
            self.assertEqual(labels.Labels(), labels.parse(texts, {}, texts, running_labels=texts))
            [said] = labels.notices(texts)
            self.assertIn(f"Label '{name}' has no effect", said)

    def test_leftovers_stand_in_one_sentence_each(self) -> None:
        texts = {"hyperkube_prefix": "x", "use_podman": "true", "etcd_tag": "v3", "zz": "1"}
        self.assertEqual(labels.Labels(), labels.parse(texts, {}, {}))
        unknown, bundled, heat = labels.notices(texts)
        self.assertEqual("These labels are unknown to this driver and have no effect: zz.", unknown)
        self.assertEqual(
            "The charts and Kubernetes have their own versions, so these labels have no effect: "
            "etcd_tag.",
            bundled,
        )
        self.assertIn("Heat driver", heat)
        self.assertIn(": hyperkube_prefix, use_podman.", heat)


class TestClusterThatRuns(testtools.TestCase):
    """Nobody can change its labels, so they must not stand in its way."""

    def test_any_text_is_taken(self) -> None:
        for name, text, _ in BAD:
            texts = {name: text}
            self.assertEqual(labels.Labels(), labels.parse(texts, {}, running_labels=texts), name)
            self.assertIn(
                f"'{name}' has the value '{text}' and no effect", labels.notices(texts)[0]
            )

    def test_a_sites_mistake_does_not_stop_it(self) -> None:
        site = {"csi_cinder_fstype": "ext4 -O x"}
        self.assertEqual(labels.Labels(), labels.parse({}, site, running_labels={}))
        self.assertRaises(
            errors.InvalidConfiguration, labels.parse, {}, site, {}, running_labels={}
        )

    def test_an_upgrade_may_keep_it_and_bring_no_other(self) -> None:
        old = {"auto_healing_enabled": "maybe", "grafana_admin_passwd": "x"}
        self.assertEqual(labels.Labels(), labels.parse(old, {}, {}, running_labels=old))
        for new in ({"auto_healing_enabled": "perhaps"}, {"grafana_admin_passwd": "y"}):
            self.assertRaises(errors.InvalidRequest, labels.parse, {**old, **new}, {}, new, old)

    def test_contradictions_that_are_there_stay(self) -> None:
        old = {"min_node_count": "3", "max_node_count": "2"}
        self.assertEqual(3, labels.parse(old, {}, running_labels=old).min_node_count)
        self.assertEqual(3, labels.parse(old, {}, {}, running_labels=old).min_node_count)
        new = {"octavia_lb_algorithm": "SOURCE_IP_PORT"}
        self.assertRaises(errors.InvalidLabel, labels.parse, {**old, **new}, {}, new, old)


class TestEffect(testtools.TestCase):
    def test_labels_that_need_another_one(self) -> None:
        for texts, name, other in (
            ({"audit_log_max_age": "7"}, "audit_log_max_age", "audit_log_enabled"),
            ({"monitoring_retention_days": "7"}, "monitoring_retention_days", "monitoring_enabled"),
            ({"oidc_issuer_url": "https://x"}, "oidc_issuer_url", "oidc_client_id"),
            (
                {"csi_attacher_tag": "v4.9.0", "cinder_csi_enabled": "false"},
                "csi_attacher_tag",
                "cinder_csi_enabled",
            ),
        ):
            [said] = labels.notices(texts)
            self.assertEqual(f"Label '{name}' has no effect without '{other}'.", said)

    def test_labels_of_the_other_network(self) -> None:
        texts = {"calico_ipv4pool": "10.1.0.0/16", "cilium_ipv4pool": "10.2.0.0/16"}
        for cni, other in (("calico", "cilium_ipv4pool"), ("cilium", "calico_ipv4pool")):
            [said] = labels.notices(texts, cni=cni)
            self.assertEqual(f"Label '{other}' has no effect with the network driver {cni}.", said)
        self.assertEqual((), labels.notices({"cilium_hubble_ui_enabled": "false"}, cni="calico"))
