# SPDX-License-Identifier: Apache-2.0
"""Labels through Magnum's conductor: what is refused, what a tenant sees, what never matters."""

from __future__ import annotations

import dataclasses
from typing import Any

from magnum import objects
from magnum.drivers.k8s_capi_helm import conf
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE

LABELS = conf.LABELS_GROUP.name


class LabelCase(DriverCase):
    def reason(self) -> dict[str, str]:
        """What Magnum shows of the cluster's health."""
        self.health_task()
        return dict(self.cluster().health_status_reason)

    def values(self) -> dict[str, Any]:
        return self.helm.live(NAMESPACE, RELEASE).values

    def refused(self, labels: dict[str, str], **fields: Any) -> str:
        """The reason why a new cluster with some labels cannot be; nothing was made."""
        cluster = self.create(labels=labels, **fields)
        self.assertEqual(("CREATE_FAILED", None), (cluster.status, cluster.stack_id))
        self.assertEqual([], self.left())
        for group in cluster.nodegroups:
            group.destroy()
        cluster.destroy()
        return str(cluster.status_reason)


class TestEffective(LabelCase):
    def test_a_tenant_sees_labels_and_site_defaults(self) -> None:
        self.config(group=LABELS, csi_cinder_fstype="xfs")
        self.made(labels={"boot_volume_size": "40", "octavia_provider": "amphora"})
        self.assertEqual("boot_volume_size=40; csi_cinder_fstype=xfs", self.reason()["labels"])

    def test_the_four_keys_stay(self) -> None:
        self.made(labels={"npd_enabled": "false", "zz": "1"})
        reason = self.reason()
        health = {"api", "cluster", "infrastructure", "controlplane", "nodegroup"}
        self.assertEqual({*health, "labels", "notice"}, set(reason))
        self.assertEqual({"Ready"}, {reason[key] for key in ("infrastructure", "nodegroup")})
        self.assertEqual(["zz"], [word for word in ("zz", "npd") if word in reason["notice"]])

    def test_no_label_no_key(self) -> None:
        self.made()
        self.assertNotIn("labels", self.reason())

    def test_a_new_site_default_is_not_said_of_a_cluster_that_runs(self) -> None:
        self.made(labels={"npd_enabled": "false"})
        self.config(group=LABELS, csi_cinder_fstype="xfs")
        self.resize(2)
        self.assertEqual("npd_enabled=false", self.reason()["labels"])

    def test_it_stays_while_nobody_can_read_the_release(self) -> None:
        self.made(labels={"npd_enabled": "false"})
        self.reason()
        self.helm.releases.clear()
        self.assertEqual("npd_enabled=false", self.reason()["labels"])

    def test_an_upgrade_moves_only_what_the_template_does(self) -> None:
        self.template.destroy()
        self.template = self._template(labels={"npd_enabled": "false", "kubelet_options": "--v=3"})
        self.made(labels={"npd_enabled": "false", "kubelet_options": "--v=3"})
        self.config(group=LABELS, csi_cinder_fstype="xfs")
        self.cloud.images["new"] = ("image-2", builders.VERSION)
        uuid = "21111111-2222-4333-8444-555555555555"
        labels = {"npd_enabled": "false", "kubelet_options": "--v=4", "dns_cluster_domain": "x.y"}
        template = self._template(uuid=uuid, name="next", image_id="new", labels=labels)
        self.assertEqual("", self.upgrade(template))
        self.assertEqual("kubelet_options=--v=4; npd_enabled=false", self.reason()["labels"])
        flags = self.values()["controlPlane"]["kubeadmConfigSpec"]["joinConfiguration"]
        self.assertEqual({"v": "4"}, flags["nodeRegistration"]["kubeletExtraArgs"])
        self.assertNotIn("kubeNetwork", self.values())


class TestRefusals(LabelCase):
    def test_what_cannot_be_had(self) -> None:
        reason = self.refused({"grafana_admin_passwd": "hidden"})
        self.assertIn("Label 'grafana_admin_passwd'", reason)

    def test_what_contradicts_the_cluster(self) -> None:
        for labels, name in (
            ({"oidc_issuer_url": "https://sso.example.org"}, "oidc_client_id"),
            ({"oidc_client_id": "k8s"}, "oidc_issuer_url"),
            ({"calico_ipv4pool": "10.0.0.0/16"}, "does not overlap with 10.0.0.0/24"),
            ({"calico_ipv4pool": "172.24.0.0/16"}, "does not overlap with 172.24.0.0/13"),
            ({"service_cluster_ip_range": "172.16.0.0/16"}, "(calico_ipv4pool)"),
            ({"calico_ipv4pool": "10.1.0.0/16,fd00::/56"}, "the nodes have IPv4 only"),
            (
                {"master_lb_floating_ip_enabled": "false", "api_server_floating_ip": "192.0.2.1"},
                "no floating IP",
            ),
            ({"monitoring_enabled": "true", "cinder_csi_enabled": "false"}, "Cinder volumes"),
        ):
            self.assertIn(name, self.refused(labels))

    def test_families_that_do_not_go_together(self) -> None:
        labels = {"calico_ipv4pool": "fd00::/56,10.1.0.0/16"}
        reason = self.refused(labels, fixed_network="dual")
        self.assertIn("the same first IP version (fd00::/56, 172.24.0.0/13)", reason)
        reason = self.refused(labels, fixed_network="dual", fixed_subnet="one")
        self.assertIn("no fixed subnet", reason)

    def test_what_needs_a_load_balancer(self) -> None:
        for name, text in (
            ("api_master_lb_allowed_cidrs", "192.0.2.0/24"),
            ("api_server_lb_flavor", "large"),
            ("api_server_lb_availability_zone", "az"),
        ):
            reason = self.refused({name: text}, master_lb_enabled=False)
            self.assertIn(f"Label '{name}'", reason)
            self.assertIn("master_lb_enabled", reason)

    def test_whom_the_load_balancer_keeps_out(self) -> None:
        label = "api_master_lb_allowed_cidrs"
        reason = self.refused({label: "192.0.2.0/24", "octavia_provider": "ovn"})
        self.assertIn(f"Label '{label}'", reason)
        self.assertIn("octavia_provider", reason)
        reason = self.refused({label: "192.0.2.0/24,2001:db8::/32"})
        self.assertIn(f"Label '{label}'", reason)
        self.assertIn("IPv4", reason)
        self.made(labels={label: "192.0.2.0/24", "octavia_provider": "amphora"})

    def test_networks_side_by_side(self) -> None:
        labels = {
            "calico_ipv4pool": "10.100.0.0/16,fd00:10::/56",
            "service_cluster_ip_range": "10.254.0.0/16,fd00:20::/112",
            "cilium_ipv4pool": "10.0.0.0/16",
        }
        self.made(labels=labels, fixed_network="dual")
        self.assertEqual(
            {
                "pods": {"cidrBlocks": ["10.100.0.0/16", "fd00:10::/56"]},
                "services": {"cidrBlocks": ["10.254.0.0/16", "fd00:20::/112"]},
            },
            self.values()["kubeNetwork"],
        )
        self.assertIn("'cilium_ipv4pool' has no effect", self.reason()["notice"])


class TestNodegroups(LabelCase):
    def test_what_has_no_effect_is_said(self) -> None:
        self.made(labels={"zz": "1"})
        odd = {"boot_volume_sise": "100", "zz": "1", "boot_volume_size": "30"}
        self.add_group("one", labels=odd)
        self.add_group("two", labels={**odd, "use_podman": "true", "strange": ""})
        self.capi_converges()
        self.status_task(2)
        notice = self.reason()["notice"]
        for words in (
            "Label 'boot_volume_sise' of nodegroups 'one', 'two' has no effect: it is unknown, did "
            "you mean 'boot_volume_size'?",
            "Label 'use_podman' of nodegroup 'two' has no effect: it is for Magnum's former",
            "Label 'strange' of nodegroup 'two' has no effect: it is unknown here.",
        ):
            self.assertIn(words, notice)
        self.assertEqual((1, 4), (notice.count("zz"), notice.count("abel")))

    def test_what_cannot_be_had_is_refused(self) -> None:
        self.made()
        self.add_group("bad", labels={"different_failure_domain": "true"})
        group = self.group("bad")
        self.assertEqual("CREATE_FAILED", group.status)
        self.assertIn("Label 'different_failure_domain'", group.status_reason)
        self.add_group("fine", labels={"different_failure_domain": "false"})
        self.assertNotIn("FAILED", self.group("fine").status)

    def test_of_a_cluster_that_was_taken_over(self) -> None:
        self.made()
        self.add_group("old")
        self.capi_converges()
        self.status_task(2)
        group = self.group("old")
        group.labels = {
            "monitoring_enabled": "true",
            "different_failure_domain": "true",
            "boot_volume_size": "many",
        }
        group.save()
        notice = self.reason()["notice"]
        for words in (
            "'monitoring_enabled' of nodegroup 'old' has no effect: it applies to whole clusters.",
            "'different_failure_domain' of nodegroup 'old' has no effect: It needs a filter",
            "'boot_volume_size' of nodegroup 'old' has no effect: its value 'many' should be",
        ):
            self.assertIn(words, notice)

    def test_copies_of_the_default_nodegroups_are_nobodys_wish(self) -> None:
        self.made()
        group = self.group()
        group.labels = {"old": "x"}
        group.save()
        self.assertNotIn("'old'", self.reason().get("notice", ""))


class TestClusterThatRuns(LabelCase):
    """Labels that its driver did not mind when it was made."""

    ODD = {"kubelet_options": "fail", "grafana_admin_passwd": "x", "calico_tag": "v3.13.1"}

    def odd(self) -> None:
        self.made()
        cluster = self.cluster()
        cluster.labels = self.ODD
        cluster.save()

    def test_it_can_be_resized_and_deleted(self) -> None:
        self.odd()
        self.resize(3)
        self.assertEqual(3, self.values()["nodeGroups"][0]["machineCount"])
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        notice = self.reason()["notice"]
        for name in self.ODD:
            self.assertIn(f"'{name}'", notice)
        self.delete()
        self.capi_deletes()
        self.status_task(4)
        self.assertEqual([], objects.Cluster.list(self.context))

    def test_it_can_be_upgraded(self) -> None:
        self.odd()
        self.cloud.images["new"] = ("image-2", builders.VERSION)
        uuid = "21111111-2222-4333-8444-555555555555"
        template = self._template(uuid=uuid, name="next", image_id="new")
        self.assertEqual("", self.upgrade(template))
        self.assertEqual("image-2", self.values()["machineImageId"])
        self.assertNotIn("kubeadmConfigSpec", self.values()["controlPlane"])


class TestForeignChart(LabelCase):
    """A chart of another family does not know the keys of ours."""

    def test_an_upgrade_cannot_bring_what_the_chart_lacks(self) -> None:
        self.made()
        chart = self.ports.charts.for_new_cluster(None)
        foreign = dataclasses.replace(chart, family="")
        self.ports.charts.for_new_cluster = lambda *args, **names: foreign
        live = self.helm.releases[NAMESPACE, RELEASE]
        self.helm.releases[NAMESPACE, RELEASE] = dataclasses.replace(live, chart_family="")
        self.cloud.images["new"] = ("image-2", builders.VERSION)
        uuid = "21111111-2222-4333-8444-555555555555"
        labels = {"audit_log_enabled": "true"}
        template = self._template(uuid=uuid, name="next", image_id="new", labels=labels)
        self.assertIn("does not support label 'audit_log_enabled'", self.upgrade(template))
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)

    def test_nor_can_a_new_cluster(self) -> None:
        chart = self.ports.charts.for_new_cluster(None)
        foreign = dataclasses.replace(chart, family="")
        self.ports.charts.for_new_cluster = lambda *args, **names: foreign
        for name, text in (("audit_log_enabled", "true"), ("container_infra_prefix", "r.example")):
            self.assertIn("does not support label", self.refused({name: text}))
        self.create(labels={"kubelet_options": "--v=3"})
        self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)
        self.assertEqual(
            {f"{names.EFFECTIVE_LABEL}/kubelet_options": "--v=3"},
            self.values()["clusterAnnotations"],
        )
