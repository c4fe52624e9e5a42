# SPDX-License-Identifier: Apache-2.0
"""The verbs, through Magnum's own conductor: what the rows say, what was made, what is left."""

import base64
import json
import ssl
import tempfile

import certifi
import fixtures

from magnum import objects
from magnum.api.controllers.v1.cluster import ClustersController
from magnum.common import exception
from magnum.conductor.handlers import cluster_conductor
from magnum.conductor.handlers.common import cert_manager
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.driver import Driver
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.reconcile.process import clients
from magnum.drivers.k8s_capi_helm.status.deletion import order as deletion_order
from magnum.tests.unit.drivers.k8s_capi_helm import builders, driver_case
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import CONF, NAMESPACE, RELEASE


class TestCreate(driver_case.DriverCase):
    def test_a_cluster_from_request_to_complete(self):
        cluster = self.create(masters=1, workers=2)
        self.assertEqual("CREATE_IN_PROGRESS", cluster.status)
        self.assertEqual(RELEASE, cluster.stack_id)
        self.capi_converges()
        self.status_task()
        self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)
        self.status_task()
        cluster = self.cluster()
        self.assertEqual(("CREATE_COMPLETE", None), (cluster.status, cluster.status_reason))
        self.assertEqual("https://127.64.0.10:6443", cluster.api_address)
        self.assertEqual(f"v{builders.VERSION}", cluster.coe_version)
        self.assertEqual("CREATE_COMPLETE", self.group().status)
        self.assertEqual(2, len(self.group().node_addresses))

    def test_nothing_is_complete_before_its_machines_are_there(self):
        self.create()
        self.status_task(5)
        cluster = self.cluster()
        self.assertEqual("CREATE_IN_PROGRESS", cluster.status)
        self.assertTrue(cluster.status_reason)

    def test_secrets_are_founded_before_the_chart_and_never_in_its_values(self):
        self.create()
        found = {one["metadata"]["name"] for one in self.kube.list(names.SECRET, NAMESPACE)}
        purposes = ("ca", "etcd", "proxy", "sa", "cloud-credentials")
        self.assertLessEqual({f"{RELEASE}-{purpose}" for purpose in purposes}, found)
        self.assertNotIn(driver_case.SECRET_TEXT, json.dumps(self.helm.runs))

    def test_the_cluster_is_built_on_magnums_authority(self):
        cluster = self.create()
        secret = self.kube.get(names.SECRET, NAMESPACE, f"{RELEASE}-ca")
        stored = cert_manager.get_cluster_ca_certificate(cluster, self.context, "kubernetes")
        certificate = base64.b64decode(secret["data"]["tls.crt"])
        self.assertEqual(stored.get_certificate(), certificate.decode())
        service_account = self.kube.get(names.SECRET, NAMESPACE, f"{RELEASE}-sa")
        self.assertIn(b"PUBLIC KEY", base64.b64decode(service_account["data"]["tls.crt"]))

    def test_a_label_that_magnum_itself_stumbles_over_is_said(self):
        try:
            self.create(labels={"min_node_count": "many"})
        except ValueError:
            pass
        self.status_task()
        cluster = self.cluster()
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertIn(
            "Label 'min_node_count' has an invalid value. The value is 'many'",
            cluster.status_reason,
        )
        self.assertEqual({"CREATE_FAILED"}, {one.status for one in cluster.nodegroups})

    def test_what_is_refused_leaves_nothing(self):
        def wrong_image():
            self.cloud.refusal = errors.CloudRefused("Image 'x' has no property 'kube_version'.")

        def wrong_distribution():
            self.cloud.distro = "windows"

        def no_helm():
            self.helm.refusal = errors.HelmUnusable("Helm cannot be run.")

        def unreachable():
            self.kube.unreachable = True

        for spoil in (wrong_image, wrong_distribution, no_helm, unreachable):
            with self.subTest(spoil.__name__):
                self.cloud.refusal, self.cloud.distro, self.helm.refusal = None, "ubuntu", None
                spoil()
                cluster = self.create()
                self.assertEqual("CREATE_FAILED", cluster.status)
                self.assertTrue(cluster.status_reason.endswith("."), cluster.status_reason)
                self.assertNotIn("retried", cluster.status_reason)
                self.assertIsNone(cluster.stack_id)
                for group in cluster.nodegroups:
                    self.assertEqual("CREATE_FAILED", group.status)
                    self.assertEqual(cluster.status_reason, group.status_reason)
                self.assertEqual(([], {}), (self.left(), self.cloud.credentials))
                self.delete()
                self.status_task()
                self.assertEqual([], objects.Cluster.list(self.context))

    def test_what_nobody_foresaw_fails_all_rows_and_stays_in_the_log(self):
        error = OSError(13, "Permission denied", "/etc/secret/path")

        def no_lease(verb, kind, name):
            if (verb, kind) == ("create", names.LEASE):
                raise error

        log = self.useFixture(fixtures.FakeLogger())
        for cloud, lease, helm in (
            (error, None, None),
            (None, no_lease, None),
            (None, None, error),
        ):
            self.cloud.refusal, self.kube.before, self.helm.refusal = cloud, lease, helm
            cluster = self.create()
            self.cloud.refusal = self.kube.before = self.helm.refusal = None
            self.assertEqual("CREATE_FAILED", cluster.status)
            self.assertTrue(cluster.status_reason.startswith("internal: "))
            self.assertIn(f"for cluster {cluster.uuid}", cluster.status_reason)
            self.assertNotIn("/etc/secret", cluster.status_reason)
            for group in cluster.nodegroups:
                said = (group.status, group.status_reason)
                self.assertEqual(("CREATE_FAILED", cluster.status_reason), said)
            self.delete()
            self.status_task(2)
            self.assertEqual([], objects.Cluster.list(self.context))
        self.assertEqual(3, log.output.count("Permission denied: '/etc/secret/path'"))
        self.assertIn("Traceback", log.output)

    def test_wrong_label_is_said_with_name_and_value(self):
        cluster = self.create(labels={"boot_volume_size": "big"})
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertIn(
            "Label 'boot_volume_size' has an invalid value. The value is 'big'",
            cluster.status_reason,
        )
        self.assertEqual([], self.left())

    def test_an_image_of_another_kubernetes_leaves_nothing_either(self):
        cluster = self.create(labels={"kube_tag": "v1.33.1"})
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertIn("1.33.1", cluster.status_reason)
        self.assertEqual(([], {}), (self.left(), self.cloud.credentials))

    def test_a_credential_that_cannot_be_saved_is_taken_back(self):
        def refuse(verb, kind, name):
            if verb == "apply" and name.endswith("-cloud-credentials"):
                raise errors.ManagementRefused("Secrets are not allowed here.")

        self.kube.before = refuse
        self.assertEqual("CREATE_FAILED", self.create().status)
        self.assertEqual({}, self.cloud.credentials)

    def test_helm_that_was_interrupted_is_run_again_by_the_periodic_task(self):
        self.helm.refusal = errors.HelmInterrupted("Applying the chart took too long.")
        self.assertEqual("CREATE_IN_PROGRESS", self.create().status)
        self.helm.refusal = None
        self.status_task()
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)

    def test_what_the_management_cluster_refuses_fails_the_cluster_with_its_words(self):
        self.helm.refusal = errors.HelmRefused("The management cluster refused: no.")
        cluster = self.create()
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertIn("refused: no.", cluster.status_reason)

    def test_a_create_that_died_before_its_credential_ends_with_a_reason(self):
        self.create()
        self.helm.releases.clear()
        self.kube.remove(names.SECRET, NAMESPACE, names.credential_secret(RELEASE))
        self.status_task()
        self.assertEqual("CREATE_IN_PROGRESS", self.cluster().status)
        self.ports.leases.finish(NAMESPACE, RELEASE, ["create"])
        self.status_task()
        cluster = self.cluster()
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertIn("interrupted", cluster.status_reason)


class TestResize(driver_case.DriverCase):
    def test_only_the_count_changes_and_complete_is_true(self):
        self.made(workers=1)
        before = self.helm.live(NAMESPACE, RELEASE).values
        self.resize(3)
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        after = self.helm.live(NAMESPACE, RELEASE).values
        self.assertEqual(3, after["nodeGroups"][0]["machineCount"])
        after["nodeGroups"][0]["machineCount"] = 1
        self.assertEqual(before, after)
        self.status_task(3)
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual("UPDATE_COMPLETE", self.group().status)

    def test_to_zero(self):
        self.made(workers=1)
        self.resize(0)
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual((0, []), (self.group().node_count, self.group().node_addresses))

    def test_addresses_stay_while_no_object_has_them(self):
        """The cluster is moved to another management cluster, whose controllers have to look."""
        self.made(workers=2)
        kinds = (names.CLUSTER, names.MACHINE)
        before = self.group().node_addresses
        kept = [(kind, obj) for kind in kinds for obj in self.kube.list(kind, NAMESPACE)]
        for kind, obj in kept:
            self.kube.remove(kind, NAMESPACE, obj["metadata"]["name"])
        self.health_task()
        self.assertEqual(before, self.group().node_addresses)
        for kind, obj in kept:
            if kind is names.MACHINE:
                del obj["status"]["addresses"]
            self.kube.put(kind, obj)
        self.health_task()
        self.assertEqual(2, len(before))
        self.assertEqual(before, self.group().node_addresses)

    def test_needs_neither_image_nor_cloud(self):
        self.made()
        self.cloud.refusal = errors.CloudRefused("The image is gone.")
        self.resize(2)
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_an_absent_management_cluster_delays_and_does_not_fail(self):
        self.made()
        self.kube.unreachable = True
        self.resize(2)
        self.status_task()
        cluster = self.cluster()
        self.assertEqual("UPDATE_IN_PROGRESS", cluster.status)
        self.assertIn("management", cluster.status_reason)
        self.kube.unreachable = False
        self.status_task()
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual(2, self.group().node_count)

    def test_control_plane(self):
        self.made(masters=1)
        self.resize(3, "default-master")
        values = self.helm.live(NAMESPACE, RELEASE).values
        self.assertEqual(3, values["controlPlane"]["machineCount"])
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_the_bounds_of_a_nodegroup_hold_for_an_update_of_the_cluster_too(self) -> None:
        self.made(workers=1)
        self.change_group(min_node_count=1, max_node_count=2)
        self.status_task(3)
        for count in (3, 0):
            self.update(count)
            cluster = self.cluster()
            self.assertEqual("UPDATE_COMPLETE", self.group().status)
            self.assertEqual(("UPDATE_FAILED", 1), (cluster.status, self.group().node_count))
            self.assertIn(f"'default-worker' is to have {count} nodes", cluster.status_reason)
            self.assertIn("allow 1 to 2", cluster.status_reason)
            self.resize(1)
            self.status_task(3)

    def test_an_update_of_the_count_is_said_to_be_in_progress_at_once(self) -> None:
        self.made(workers=1)
        said = []

        def look(verb: str, kind: names.Kind, name: str) -> None:
            said.append(self.group().status)

        self.kube.before = look
        self.update(3)
        self.kube.before = None
        self.assertEqual({"UPDATE_IN_PROGRESS"}, set(said))
        self.assertEqual(3, self.group().node_count)

    def test_an_update_that_nobody_foresaw_to_fail_leaves_the_nodegroup_as_it_was(self) -> None:
        self.made(workers=1)

        def stumble(verb: str, kind: names.Kind, name: str) -> None:
            raise ZeroDivisionError

        self.kube.before = stumble
        self.assertRaises(ZeroDivisionError, self.update, 3)
        self.assertEqual(("CREATE_COMPLETE", 1), (self.group().status, self.group().node_count))

    def update(self, count: int) -> None:
        """What ``openstack coe cluster update CLUSTER replace node_count=N`` comes to."""
        handler = cluster_conductor.Handler()
        self.quietly(handler.cluster_update, self.context, self.cluster(), count, "HEALTHY", {})

    def test_a_first_pass_that_stumbles_takes_nothing_back(self) -> None:
        self.made(workers=1)

        def stumble(verb: str, kind: names.Kind, name: str) -> None:
            if (
                self.helm.live(driver_case.NAMESPACE, driver_case.RELEASE).revision > 1
                and verb == "list"
            ):
                raise ZeroDivisionError

        self.kube.before = stumble
        self.resize(3)
        self.kube.before = None
        self.assertEqual(
            ("UPDATE_IN_PROGRESS", 3), (self.cluster().status, self.group().node_count)
        )
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)


class TestNodegroups(driver_case.DriverCase):
    def test_what_is_asked_of_one_that_is_being_deleted_comes_too_late(self) -> None:
        self.made()
        self.add_group("extra")
        self.capi_converges()
        self.status_task(2)
        self.drop_group("extra")
        self.resize(3, "extra")
        self.assertEqual("DELETE_IN_PROGRESS", self.group("extra").status)
        self.assertIn("'extra' is being deleted", self.group("extra").status_reason)
        self.change_group("extra", max_node_count=9)
        self.assertEqual("DELETE_IN_PROGRESS", self.group("extra").status)
        self.assertIsNone(self.group("extra").max_node_count)
        self.status_task()
        self.capi_converges()
        self.status_task(3)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertNotIn("extra", [one.name for one in self.cluster().nodegroups])

    def test_nothing_is_asked_of_one_that_was_never_made(self) -> None:
        self.made()
        self.add_group("bad", role="a b")
        self.status_task(2)
        self.assertEqual("CREATE_FAILED", self.group("bad").status)
        self.resize(3, "bad")
        self.change_group("bad", max_node_count=9)
        row = self.group("bad")
        self.assertEqual(("CREATE_FAILED", None), (row.status, row.max_node_count))
        self.assertIn("was never created", row.status_reason)
        self.status_task(3)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.resize(2)
        self.capi_converges()
        self.status_task(3)
        self.assertEqual(["default-worker"], self.groups())

    def test_a_new_one_of_the_name_can_be_resized(self) -> None:
        self.drop_group_of_new_cluster("extra")
        self.status_task(2)
        self.add_group("extra")
        self.resize(3, "extra")
        self.assertEqual(3, self.group("extra").node_count)
        self.assertNotIn("DELETE", self.group("extra").status)

    def groups(self):
        return [one["name"] for one in self.helm.live(NAMESPACE, RELEASE).values["nodeGroups"]]

    def test_made_and_taken_away(self):
        self.made()
        self.add_group("extra", 2)
        self.assertEqual(["default-worker", "extra"], self.groups())
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("CREATE_COMPLETE", self.group("extra").status)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.drop_group("extra")
        self.assertEqual(["default-worker"], self.groups())
        self.status_task()
        self.assertEqual("DELETE_IN_PROGRESS", self.group("extra").status)
        self.capi_converges()
        self.status_task(2)
        rows = {one.name for one in self.cluster().nodegroups}
        self.assertEqual({"default-master", "default-worker"}, rows)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_one_that_leaves_is_not_rendered_again(self):
        self.made()
        self.add_group("extra")
        self.capi_converges()
        self.status_task(2)
        self.drop_group("extra")
        self.resize(2)
        self.add_group("other")
        self.assertEqual(["default-worker", "other"], self.groups())

    def test_one_that_cannot_be_made_fails_alone(self):
        self.made()
        self.add_group("gpu", role="a b")
        self.assertEqual("CREATE_FAILED", self.group("gpu").status)
        self.assertIn("The role is 'a b'", self.group("gpu").status_reason)
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual(["default-worker"], self.groups())

    def test_three_at_once_while_another_pass_holds_the_lock(self):
        self.made()
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            for name in ("a", "b", "c"):
                self.add_group(name)
            self.assertEqual(["default-worker"], self.groups())
        runs = len(self.helm.runs)
        self.status_task()
        self.assertEqual({"default-worker", "a", "b", "c"}, set(self.groups()))
        self.assertEqual(runs + 1, len(self.helm.runs))

    def test_a_row_that_a_verb_left_in_progress_is_picked_up_by_the_health_task(self):
        self.made()
        group = self.group()
        group.status = "UPDATE_IN_PROGRESS"
        group.save()
        self.health_task()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual("UPDATE_COMPLETE", self.group().status)


class TestDelete(driver_case.DriverCase):
    def gone(self):
        return not objects.Cluster.list(self.context)

    def test_order_and_nothing_left(self):
        self.made()
        self.delete()
        self.assertEqual("DELETE_IN_PROGRESS", self.cluster().status)
        self.status_task()
        self.assertIn(f"Secret/{RELEASE}-cloud-credentials", self.left())
        self.assertEqual("DELETE_IN_PROGRESS", self.cluster().status)
        self.capi_deletes()
        self.status_task()
        self.assertTrue(self.gone())
        self.assertEqual([], objects.X509KeyPair.list(self.context))
        self.assertEqual([], self.left())
        self.assertEqual({}, self.cloud.credentials)
        deleted = [(kind, name) for verb, kind, _, name in self.kube.calls if verb == "delete"]
        self.assertEqual(("Cluster", RELEASE), deleted[0])
        last = [("Lease", names.lease(RELEASE)), ("Namespace", NAMESPACE)]
        self.assertEqual(last, deleted[-2:])
        self.assertEqual("uninstall", self.helm.runs[-1][0])

    def test_an_empty_management_cluster_deletes_no_row(self):
        self.made()
        for one in list(self.kube.everything()):
            if one["kind"] in ("Lease", "Secret"):
                kind = names.LEASE if one["kind"] == "Lease" else names.SECRET
                self.kube.remove(kind, NAMESPACE, one["metadata"]["name"])
        self.capi_deletes()
        self.helm.releases.clear()
        self.delete()
        self.status_task(3)
        self.health_task()
        cluster = self.cluster()
        self.assertEqual("DELETE_FAILED", cluster.status)
        self.assertEqual(deletion_order.NO_PROOF_SENTENCE, cluster.status_reason)
        self.assertEqual("UNKNOWN", cluster.health_status)

    def test_an_unreachable_one_neither(self):
        self.made()
        self.kube.unreachable = True
        self.delete()
        self.status_task(3)
        self.assertEqual("DELETE_IN_PROGRESS", self.cluster().status)
        self.kube.unreachable = False
        self.status_task()
        self.capi_deletes()
        self.status_task()
        self.assertTrue(self.gone())

    def test_one_that_is_refused_again_and_again_has_an_end(self):
        self.made()
        self.delete()

        def refuse(verb, kind, name):
            if verb == "delete":
                raise errors.ManagementRefused("The management cluster refused to delete it.")

        self.kube.before = refuse
        self.status_task()
        self.assertEqual("DELETE_IN_PROGRESS", self.cluster().status)
        self.make_late()
        self.status_task()
        cluster = self.cluster()
        self.assertEqual("DELETE_FAILED", cluster.status)
        self.assertIn("refused to delete", cluster.status_reason)
        self.kube.before = None
        self.health_task()
        self.status_task()
        self.capi_deletes()
        self.status_task()
        self.assertTrue(self.gone())

    def test_during_create(self):
        self.create()
        self.delete()
        self.status_task()
        self.capi_deletes()
        self.status_task()
        self.assertTrue(self.gone())
        self.assertEqual({}, self.cloud.credentials)

    def test_a_nodegroup_request_does_not_stop_it(self):
        self.made()
        self.delete()
        self.add_group("late")
        self.status_task(2)
        self.capi_deletes()
        self.status_task(2)
        self.assertTrue(self.gone())
        self.assertNotIn("late", json.dumps(self.helm.runs))

    def test_clusters_of_other_drivers_are_refused(self):
        self.made()
        cluster = self.cluster()
        for stack_id in ("kube-abcde", "047c6319-7abd-4bd9-a033-8c6af0173cd0"):
            cluster.stack_id = stack_id
            error = self.assertRaises(
                errors.NotOwned, self.driver.delete_cluster, self.context, cluster
            )
            self.assertIn(stack_id, str(error))

    def test_a_release_of_another_cluster_is_not_touched(self):
        self.made()
        cluster = self.cluster()
        cluster.uuid = "00000000-0000-4000-8000-000000000000"
        self.assertRaises(errors.NotOwned, self.driver.delete_cluster, self.context, cluster)
        self.assertIsNotNone(self.helm.live(NAMESPACE, RELEASE))

    def test_a_failed_deletion_is_taken_up_again(self):
        self.made()
        self.delete()
        cluster = self.cluster()
        cluster.status = "DELETE_FAILED"
        cluster.save()
        self.health_task()
        self.assertEqual("DELETE_IN_PROGRESS", self.cluster().status)

    def test_a_late_one_has_its_time_anew_and_does_not_flip(self):
        self.made()
        self.delete()
        self.make_late()
        self.status_task()
        self.assertEqual("DELETE_FAILED", self.cluster().status)
        self.health_task()
        self.status_task(3)
        self.assertEqual("DELETE_IN_PROGRESS", self.cluster().status)


class TestHealth(driver_case.DriverCase):
    def test_healthy_and_not_readable(self):
        self.made()
        self.health_task()
        self.assertEqual("HEALTHY", self.cluster().health_status)
        self.kube.unreachable = True
        self.health_task()
        cluster = self.cluster()
        self.assertEqual("UNKNOWN", cluster.health_status)
        self.assertIn("management", cluster.health_status_reason)

    def test_labels_without_effect_are_said_while_they_are_there(self):
        self.made(labels={"etcd_tag": "v3.5"})
        self.health_task()
        cluster = self.cluster()
        self.assertEqual("HEALTHY", cluster.health_status)
        self.assertIn("etcd_tag", cluster.health_status_reason["notice"])

    def test_a_missed_deadline_heals_when_it_comes_good(self):
        self.made()
        self.config(group="capi_helm", update_timeout=1)
        self.resize(2)
        self.make_late()
        self.status_task()
        self.assertEqual("UPDATE_FAILED", self.cluster().status)
        self.assertTrue(self.cluster().status_reason.startswith("timeout:"))
        # Magnum's API makes `faults` of a cluster from its nodegroups.
        faults = ClustersController()._collect_fault_info(self.context, self.cluster())
        self.assertEqual(["default-worker"], list(faults))
        self.assertIn("timeout: not finished within 1 minute", faults["default-worker"])
        self.capi_converges()
        for _ in range(2):
            self.health_task()
        cluster = self.cluster()
        self.assertEqual(("UPDATE_COMPLETE", None), (cluster.status, cluster.status_reason))


class TestOperatorsMistakes(driver_case.DriverCase):
    def test_a_wrong_site_default_stops_no_cluster_that_runs(self):
        self.made()
        self.config(group="capi_helm_cluster_labels", fixed_subnet_cidr="wide")
        self.resize(2)
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)

    def test_what_an_operator_has_to_mend_is_not_called_waiting(self):
        self.made()
        self.resize(2)
        self.helm.refusal = errors.HelmUnusable("Helm is too old.")
        self.resize(3)
        self.status_task()
        self.assertEqual("internal: Helm is too old.", self.cluster().status_reason)

    def test_what_passes_by_itself_is(self):
        self.made()
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            self.resize(2)
            self.status_task()
            self.assertTrue(self.cluster().status_reason.startswith("waiting: "))

    def test_a_bundle_that_cannot_be_read_makes_no_credential(self):
        self.config(group="drivers", openstack_ca_file="/no/such/file")
        self.assertEqual("CREATE_FAILED", self.create().status)
        self.assertEqual({}, self.cloud.credentials)
        self.assertIn("configuration", self.cluster().status_reason)

    def bundle(self) -> str:
        """The authorities of the cloud in a cluster's Secret."""
        secret = self.kube.get(names.SECRET, NAMESPACE, names.credential_secret(RELEASE))
        return base64.b64decode(secret["data"]["cacert"]).decode()

    def test_mozillas_bundle_comes_without_what_explains_it(self):
        self.made()
        trusted = []
        for text in (certifi.contents(), self.bundle()):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(cadata=text)
            trusted.append(sorted(context.get_ca_certs(binary_form=True)))
        self.assertGreater(len(trusted[0]), 100)
        self.assertEqual(trusted[0], trusted[1])
        self.assertNotIn("#", self.bundle())
        self.assertLess(len(self.bundle()), 0.8 * len(certifi.contents()))

    def test_the_operators_bundle_is_passed_on_as_it_is(self):
        text = "# our own\n-----BEGIN CERTIFICATE-----\nb25l\n-----END CERTIFICATE-----\n"
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as bundle:
            bundle.write(text)
            bundle.flush()
            self.config(group="drivers", openstack_ca_file=bundle.name)
            self.made()
        self.assertEqual(text, self.bundle())

    def test_certificates_that_cannot_be_read_are_said_in_a_sentence(self):
        def broken(*args):
            raise exception.CertificateStorageException(msg="Barbican is away")

        self.useFixture(
            fixtures.MockPatchObject(cert_manager, "get_cluster_ca_certificate", broken)
        )
        cluster = self.create()
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertIn("certificate store", cluster.status_reason)
        self.assertEqual("CREATE_FAILED", self.group().status)

    def test_helm_may_not_outlast_its_lock(self):
        for timeout in (200, 132):
            self.config(group="capi_helm", helm_timeout=timeout, lease_duration=150)
            error = self.assertRaises(errors.InvalidConfiguration, clients.build, CONF)
            self.assertIn(f"helm_timeout is {timeout}", error.detail)
        self.config(group="capi_helm", helm_timeout=131, lease_duration=150)
        self.assertIsNotNone(clients.build(CONF))

    def test_a_conductor_whose_options_contradict_each_other_refuses(self):
        """It says so as of any refusal, and leaves a cluster that runs as it is."""
        self.made()
        template = self._template(uuid="77777777-2222-4333-8444-555555555555")
        self.config(group="capi_helm", helm_timeout=200, lease_duration=150)
        self.driver = Driver(clients.build)
        self.assertIn("because of its configuration", self.upgrade(template))
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)
        self.cluster().destroy()
        cluster = self.create(uuid="99999999-8888-4777-8666-666666666666")
        for row in (cluster, *cluster.nodegroups):
            self.assertEqual("CREATE_FAILED", row.status)
            self.assertIn("because of its configuration", row.status_reason)

    def test_one_that_was_refused_by_such_a_conductor_can_be_deleted(self):
        self.config(group="capi_helm", helm_timeout=200, lease_duration=150)
        driver, self.driver = self.driver, Driver(clients.build)
        self.create()
        self.delete()
        self.assertEqual("DELETE_IN_PROGRESS", self.cluster().status)
        self.driver = driver  # the operator has corrected the option
        self.status_task(2)
        self.assertEqual([], objects.Cluster.list(self.context))

    def test_a_breaker_may_not_keep_a_lock_from_being_renewed(self):
        self.config(group="capi_helm", management_breaker_pause=75)
        error = self.assertRaises(errors.InvalidConfiguration, clients.build, CONF)
        self.assertIn("management_breaker_pause is 75", error.detail)
        self.config(group="capi_helm", management_breaker_pause=74)
        self.assertIsInstance(clients.build(CONF), clients.Clients)


class TestProvides(driver_case.DriverCase):
    def test_what_can_be_made(self):
        made = {(one["server_type"], one["os"]) for one in self.driver.provides}
        wanted = {(kind, os) for kind in ("vm", "bm") for os in ("ubuntu", "flatcar")}
        self.assertEqual(wanted, made)
        self.assertEqual({"kubernetes"}, {one["coe"] for one in self.driver.provides})


class TestFirstReason(driver_case.DriverCase):
    """A request has a reason of its own before anything slow is done."""

    def reasons(self) -> list[str | None]:
        """What cluster and default workers say at each call of the management cluster."""
        said: list[str | None] = []

        def look(verb: str, kind: names.Kind, name: str) -> None:
            said.append(self.cluster().status_reason)

        self.kube.before = look
        return said

    def test_of_a_creation(self) -> None:
        said = self.reasons()
        self.create()
        self.assertEqual({"waiting: the creation is starting"}, set(said))
        self.assertEqual("waiting: the creation is starting", self.cluster().status_reason)

    def test_an_earlier_one_is_not_told_of_a_new_request(self) -> None:
        self.made()
        for row in (self.cluster(), self.group("default-worker")):
            row.status, row.status_reason = "UPDATE_FAILED", "quota: an old one"
            row.save()
        said = []

        def look(verb: str, kind: names.Kind, name: str) -> None:
            if verb == "replace" and kind == names.LEASE:
                said.append(self.group("default-worker").status_reason)
                said.append(self.cluster().status_reason)

        self.kube.before = look
        self.resize(2)
        self.assertIn("waiting: the update is starting", said)
        self.assertNotIn("quota: an old one", said)
