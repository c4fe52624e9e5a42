# SPDX-License-Identifier: Apache-2.0
"""Magnum's rows become requests; what cannot be done yet is refused, naming field and value."""

import datetime
import types

from oslo_config import cfg
import testtools

from magnum.drivers.k8s_capi_helm import conf, errors, helm_values
from magnum.drivers.k8s_capi_helm.magnum_objects import notices
from magnum.drivers.k8s_capi_helm.magnum_objects import state as magnum_state_reader
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader, writer
from magnum.drivers.k8s_capi_helm.magnum_objects.validation import (
    validate_cluster,
    validate_nodegroup,
)
from magnum.drivers.k8s_capi_helm.model import (
    CloudFacts,
    Flavor,
    LiveRelease,
    names,
    Operation,
    ReleaseRecord,
    Verb,
)

NOW = datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.timezone.utc)


def config(**capi_helm):
    made = cfg.ConfigOpts()
    made.register_opt(cfg.StrOpt("state_path", default="/nowhere"))
    conf.register_opts(made)
    made([])
    for name, value in capi_helm.items():
        made.set_override(name, value, "capi_helm")
    return made


class Row(types.SimpleNamespace):
    created_at = updated_at = None

    def obj_attr_is_set(self, name):
        return hasattr(self, name)


def template(**changes):
    fields = {
        "name": "kube",
        "image_id": "ubuntu-kube",
        "external_network_id": "public",
        "network_driver": "calico",
        "dns_nameserver": "8.8.8.8, 1.1.1.1",
        "volume_driver": None,
        "server_type": "vm",
        "coe": "kubernetes",
        "cluster_distro": "ubuntu",
        "docker_storage_driver": None,
        "labels": {},
        "http_proxy": None,
        "https_proxy": None,
        "no_proxy": None,
        "insecure_registry": None,
        "registry_enabled": False,
        "tls_disabled": False,
        "apiserver_port": None,
        "docker_volume_size": None,
    }
    return Row(**{**fields, **changes})


def cluster(**changes):
    fields = {
        "uuid": "c1",
        "name": "Demo",
        "stack_id": "demo-abcdefghijkl",
        "project_id": "P-1",
        "user_id": "u1",
        "labels": {},
        "keypair": "key1",
        "fixed_network": None,
        "fixed_subnet": None,
        "floating_ip_enabled": True,
        "master_lb_enabled": True,
        "docker_volume_size": None,
        "status": "CREATE_IN_PROGRESS",
        "status_reason": None,
        "health_status_reason": None,
        "cluster_template": template(),
    }
    return Row(**{**fields, **changes})


def group(name="default-worker", **changes):
    fields = {
        "uuid": f"uuid-of-{name}",
        "name": name,
        "role": "worker",
        "status": "CREATE_IN_PROGRESS",
        "status_reason": None,
        "node_count": 1,
        "min_node_count": 0,
        "max_node_count": None,
        "flavor_id": "small",
        "image_id": "ubuntu-kube",
        "docker_volume_size": None,
        "labels": {},
        "is_default": True,
        "node_labels": {},
        "node_taints": [],
    }
    return Row(**{**fields, **changes})


def rows(*more):
    return [group("default-master", role="master"), group(), *more]


class TestRequest(testtools.TestCase):
    def request(self, groups=None, **changes):
        return reader.cluster_request(cluster(**changes), groups or rows(), config())

    def test_rows_become_a_request(self):
        request = self.request()
        self.assertEqual("magnum-p1", request.namespace)
        self.assertEqual("demo-abcdefghijkl", request.release)
        self.assertEqual(("8.8.8.8", "1.1.1.1"), request.dns_nameservers)
        self.assertEqual("default-master", request.control_plane.name)
        self.assertEqual(["default-worker"], [one.name for one in request.node_groups])

    def test_groups_that_failed_or_leave_are_not_rendered(self):
        leaving = group("old", status="DELETE_IN_PROGRESS")
        request = self.request(rows(group("bad", status="CREATE_FAILED"), leaving))
        self.assertEqual(["default-worker"], [one.name for one in request.node_groups])
        self.assertEqual(("old",), request.deleted_groups)

    def test_one_master_decides_by_field_and_three_need_the_balancer(self):
        self.assertFalse(self.request(master_lb_enabled=False).load_balancer)
        three = [group("default-master", role="master", node_count=3), group()]
        self.assertTrue(self.request(three, master_lb_enabled=False).load_balancer)

    def test_floating_ip_by_label_before_field(self):
        label = {"master_lb_floating_ip_enabled": "true"}
        self.assertFalse(self.request(floating_ip_enabled=False).floating_ip)
        self.assertTrue(self.request(floating_ip_enabled=False, labels=label).floating_ip)
        empty = {"master_lb_floating_ip_enabled": ""}
        self.assertFalse(self.request(floating_ip_enabled=False, labels=empty).floating_ip)

    def test_flannel_of_old_templates_is_calico_and_said(self):
        old = template(network_driver="flannel")
        self.assertEqual("calico", self.request(cluster_template=old).cni)
        said = " ".join(notices.field_notices(cluster(cluster_template=old), config()))
        self.assertIn("network_driver 'flannel' is not available; the cluster uses '", said)

    def test_a_volume_type_without_a_volume_is_said(self):
        labels = {"docker_volume_type": "fast"}
        [said] = notices.field_notices(cluster(labels=labels), config())
        self.assertIn("docker_volume_size", said)
        with_volume = cluster(labels=labels, docker_volume_size=5)
        self.assertEqual((), notices.field_notices(with_volume, config()))

    def test_a_cluster_has_one_control_plane(self):
        self.assertRaises(errors.InvalidRequest, self.request, [group()])

    def test_a_label_that_cannot_be_read_is_as_good_as_none(self):
        found = self.request(labels={"auto_healing_enabled": "maybe"})
        self.assertEqual(self.request(labels={}), found)

    def test_a_wrong_label_of_a_cluster_that_runs_is_no_label(self):
        wanted = self.request(labels={"auto_healing_enabled": "maybe", "boot_volume_size": "7"})
        self.assertEqual(
            (True, 7), (wanted.labels.auto_healing_enabled, wanted.labels.boot_volume_size)
        )
        said = notices.field_notices(cluster(labels={"auto_healing_enabled": "maybe"}), config())
        self.assertIn("'auto_healing_enabled' has the value 'maybe' and no effect", " ".join(said))


class TestRefusals(testtools.TestCase):
    def test_wrong_label_is_refused_by_name_and_value(self):
        wrong = cluster(labels={"auto_healing_enabled": "maybe"})
        self.assertIn(
            "'auto_healing_enabled' has an invalid value. The value is 'maybe'", self.refused(wrong)
        )

    def refused(self, subject, groups=None):
        error = self.assertRaises(
            errors.InvalidRequest,
            validate_cluster.validate_new_cluster,
            subject,
            groups or rows(),
            config(),
        )
        return str(error)

    def test_what_is_fine_is_accepted(self):
        self.assertIsNone(validate_cluster.validate_new_cluster(cluster(), rows(), config()))

    def test_fields_of_the_template_that_cannot_be_had(self):
        for field, value in (
            ("registry_enabled", True),
            ("tls_disabled", True),
            ("volume_driver", "rexray"),
            ("server_type", "lpar"),
            ("coe", "swarm"),
            ("cluster_distro", "windows"),
            ("apiserver_port", 10250),
            ("apiserver_port", 30443),
            ("dns_nameserver", "8.8.8.8,dns.example.org"),
            ("http_proxy", "proxy:3128"),
            ("https_proxy", "socks5://proxy:3128"),
            ("http_proxy", "http://proxy:3128/\nevil"),
            ("no_proxy", "10.0.0.0/8"),
            ("no_proxy", "a b"),
            ("insecure_registry", "a.example.org,b.example.org"),
            ("insecure_registry", "[2001:db8::1]:5000"),
            ("insecure_registry", "registry.example.org/path"),
        ):
            text = self.refused(cluster(cluster_template=template(**{field: value})))
            self.assertIn(f"'{field}'", text)
            if value is not True and field != "no_proxy":
                self.assertIn(str(value).split(",")[-1], text)

    def test_a_keypair_that_no_object_can_name(self):
        for name in ("a: b\n\ud800", "half \ud800", "a\x00b", "two\nlines"):
            text = self.refused(cluster(keypair=name))
            self.assertIn("which no keypair can have", text)
            self.assertNotIn("\ud800", text)
        self.assertIsNone(
            validate_cluster.validate_new_cluster(cluster(keypair="grün 1"), rows(), config())
        )

    def test_a_password_is_refused_and_not_repeated(self):
        for field in ("http_proxy", "https_proxy", "insecure_registry"):
            text = self.refused(
                cluster(cluster_template=template(**{field: "http://me:s3cret@proxy:3128"}))
            )
            self.assertIn(f"'{field}'", text)
            self.assertNotIn("s3cret", text)

    def test_an_api_without_an_address(self):
        text = self.refused(cluster(master_lb_enabled=False, floating_ip_enabled=False))
        self.assertIn("--master-lb-enabled", text)
        labelled = cluster(
            master_lb_enabled=False,
            floating_ip_enabled=False,
            labels={"master_lb_floating_ip_enabled": "true"},
        )
        self.assertIsNone(validate_cluster.validate_new_cluster(labelled, rows(), config()))

    def test_fields_of_the_cluster_and_of_groups(self):
        for field, value in (
            ("role", "a/b"),
            ("role", "control-plane"),
            ("node_labels", {"a b": "c"}),
            ("node_taints", [{"key": "-a", "effect": "NoSchedule"}]),
        ):
            text = self.refused(cluster(), rows(group("extra", **{field: value})))
            self.assertIn(field, text)

    def test_labels_of_groups(self):
        for texts, words in (
            ({"monitoring_enabled": "true"}, "whole clusters"),
            (
                {"boot_volume_size": "big"},
                "'boot_volume_size' has an invalid value. The value is 'big'",
            ),
            ({"boot_volume_type": "fast"}, "no boot_volume_size"),
            ({"boot_volume_availability_zone": "az"}, "no boot_volume_size"),
            ({"docker_volume_type": "fast"}, "no docker_volume_size"),
        ):
            self.assertIn(words, self.refused(cluster(), rows(group("extra", labels=texts))))
        copied = {"monitoring_enabled": "true", "boot_volume_type": "fast"}
        groups = rows(group("extra", labels=copied))
        self.assertIsNone(
            validate_cluster.validate_new_cluster(cluster(labels=copied), groups, config())
        )

    def test_new_annotations_need_this_projects_chart(self):
        texts = {"node_annotations": "node.cluster.x-k8s.io/a=b"}
        plain, marked = (
            reader.cluster_request(cluster(), rows(group("more", labels=one)), config()).node_groups
            for one in ({}, texts)
        )
        for before, after, family in (
            (plain, marked, names.CHART_FAMILY),
            (marked, marked, ""),
            (marked, plain, ""),
        ):
            self.assertIsNone(validate_nodegroup.validate_new_labels(before, after, family))
        error = self.assertRaises(
            errors.InvalidRequest, validate_nodegroup.validate_new_labels, plain, marked, ""
        )
        self.assertIn("The value is node.cluster.x-k8s.io/a=b", str(error))

    def test_a_group_without_a_flavor(self):
        self.assertIn(
            "'extra' has no flavor", self.refused(cluster(), rows(group("extra", flavor_id=None)))
        )

    def test_names_and_bounds_of_groups(self):
        for name in ("GPU", "a_b", "-a", "a" * 64):
            self.assertIn(f"'{name}'", self.refused(cluster(), rows(group(name))))
        outside = group("extra", node_count=5, max_node_count=3)
        self.assertIn("Change the count or the bounds.", self.refused(cluster(), rows(outside)))

    def test_an_even_number_of_masters(self):
        for count in (0, 2):
            groups = [group("default-master", role="master", node_count=count), group()]
            self.assertEqual(
                f"master_count is {count}, and etcd needs an odd number of nodes. Choose an odd "
                "number.",
                self.refused(cluster(), groups),
            )

    def test_no_external_network(self):
        text = self.refused(cluster(cluster_template=template(external_network_id=None)))
        self.assertIn("names no external network. Create one with --external-network.", text)


class TestTemplateOfAnUpgrade(testtools.TestCase):
    def test_one_without_an_image(self) -> None:
        error = self.assertRaises(
            errors.InvalidRequest,
            validate_cluster.validate_upgrade,
            cluster(),
            template(image_id=None, driver=None),
        )
        self.assertIn("The cluster template names no image.", str(error))


class TestResize(testtools.TestCase):
    def test_a_number_outside_of_the_autoscalers_bounds_is_refused(self):
        scaled = group(min_node_count=1, max_node_count=4, node_count=5)
        groups = [group("default-master", role="master"), scaled]
        labels = {"auto_scaling_enabled": "true"}
        request = reader.cluster_request(cluster(labels=labels), groups, config())
        error = self.assertRaises(
            errors.InvalidRequest,
            validate_cluster.validate_resize,
            cluster(),
            scaled,
            "default-worker",
            request,
            {},
        )
        self.assertIn("between 1 and 4", str(error))
        self.assertIsNone(
            validate_cluster.validate_resize(cluster(), groups[0], "default-master", request, {})
        )
        scaled.node_count = 4
        request = reader.cluster_request(cluster(labels=labels), groups, config())
        self.assertIsNone(
            validate_cluster.validate_resize(cluster(), scaled, "default-worker", request, {})
        )

    def test_three_masters_need_the_balancer_that_a_cluster_was_made_with(self):
        groups = [group("default-master", role="master", node_count=3), group()]
        alone = cluster(master_lb_enabled=False)
        request = reader.cluster_request(alone, groups, config())
        error = self.assertRaises(
            errors.InvalidRequest,
            validate_cluster.validate_resize,
            alone,
            groups[0],
            "default-master",
            request,
            {},
        )
        self.assertIn("load balancer", str(error))
        self.assertIsNone(
            validate_cluster.validate_resize(cluster(), groups[0], "default-master", request, {})
        )
        # magnum-capi-helm gives every cluster a balancer, whatever the row says.
        live = {"apiServer": {"enableLoadBalancer": True}}
        self.assertIsNone(
            validate_cluster.validate_resize(alone, groups[0], "default-master", request, live)
        )


class TestState(testtools.TestCase):
    def state(self, values=None, operations=(), **changes):
        live = LiveRelease("r", "n", 1, "deployed", "c", "1.0.0", "f", values or {})
        record = ReleaseRecord("c1", "p1", operations=tuple(operations), ready_fingerprint="seen")
        return magnum_state_reader.magnum_state(cluster(**changes), rows(), record, live)

    def test_version_and_first_look_are_of_the_release_and_the_record(self):
        state = self.state({"kubernetesVersion": "v1.34.4"})
        self.assertEqual(("1.34.4", "seen"), (state.kubernetes_version, state.ready_fingerprint))

    def test_operations_give_start_and_deadline(self):
        later = NOW + datetime.timedelta(minutes=5)
        operations = (
            Operation("a", Verb.RESIZE, NOW, deadline=NOW),
            Operation("b", Verb.RESIZE, later, deadline=later),
        )
        state = self.state(operations=operations)
        self.assertEqual((NOW, later), (state.started_at, state.deadline))

    def test_a_refusal_stays_and_a_missed_deadline_does_not(self):
        refused = self.state(status="UPDATE_FAILED", status_reason="Flavor 'x' does not exist.")
        late = self.state(status="UPDATE_FAILED", status_reason="timeout: not done in time")
        running = self.state(status_reason="waiting: 1 of 3")
        self.assertEqual("Flavor 'x' does not exist.", refused.refusal)
        self.assertEqual(("", ""), (late.refusal, running.refusal))

    def test_autoscaled_groups_take_their_bounds_from_the_release(self):
        entry = {"autoscale": True, "machineCountMin": 1, "machineCountMax": 4}
        state = self.state({"nodeGroups": [{"name": "default-worker", **entry}]})
        worker = next(one for one in state.groups if one.name == "default-worker")
        self.assertEqual((True, 1, 4), (worker.is_autoscaled, worker.minimum, worker.maximum))

    def test_addons_that_are_switched_off_are_not_waited_for(self):
        self.assertEqual(frozenset(), self.state().without_addons)
        off = self.state({"addons": {"cni": {"type": "none"}, "openstack": {"enabled": False}}})
        self.assertEqual(
            {"cni-calico", "cni-cilium", "csi-cinder", "ccm-openstack", "cloud-config"},
            set(off.without_addons),
        )

    def test_no_limit_is_no_deadline(self):
        self.assertIsNone(magnum_state_reader.deadline(NOW, 0))
        self.assertEqual(NOW + datetime.timedelta(minutes=2), magnum_state_reader.deadline(NOW, 2))


class TestHealing(testtools.TestCase):
    def checks(self, seconds, **changes):
        site = config(server_start_timeout=seconds)
        made = cluster(cluster_template=template(**changes))
        request = reader.cluster_request(made, rows(), site)
        facts = CloudFacts(
            image_id="i",
            kubernetes_version="1.34.4",
            os_distro="ubuntu",
            flavors={"small": Flavor("f", "small", 2, 4096, 20)},
            auth_url="http://k/v3",
        )
        values = helm_values.render(request, facts)
        parts = (values["controlPlane"], values["nodeGroupDefaults"])
        return [part["healthCheck"].get("neverCameUpTimeout") for part in parts]

    def test_a_site_says_how_long_a_server_may_take(self):
        self.assertEqual(["300s", "600s"], self.checks(300))

    def test_bare_metal_takes_longer(self):
        self.assertEqual(["3600s", "7200s"], self.checks(300, server_type="bm"))

    def test_or_leaves_it_to_the_chart(self):
        self.assertEqual([None, None], self.checks(0))


class TestMarkInProgress(testtools.TestCase):
    """A request says at once that it starts, and nothing of an earlier one."""

    class Row:
        """As much of a record of Magnum as is saved."""

        status = "UPDATE_COMPLETE"
        status_reason: str | None = "quota: Quota exceeded for cores"

        def obj_what_changed(self) -> set[str]:
            return set(vars(self))

        def save(self) -> None:
            self.saved = (self.status, self.status_reason)

    def test_the_reason_of_an_earlier_request_is_replaced(self) -> None:
        for status, reason in (
            ("UPDATE_IN_PROGRESS", "waiting: the update is starting"),
            ("DELETE_IN_PROGRESS", "waiting: the deletion is starting"),
        ):
            row = self.Row()
            writer.mark_in_progress(row, status)
            self.assertEqual((status, reason), row.saved)
