# SPDX-License-Identifier: Apache-2.0
"""Rotation of a cluster's credential, who owns it then, and what becomes of the old one."""

from __future__ import annotations

import base64
import json
from typing import Any

import yaml

from magnum import objects
from magnum.common import context as magnum_context
from magnum.common import exception
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.magnum_release import credential_conductor

FIRST = f"id-magnum-{RELEASE}"
INSIDE = f"{FIRST}-addons"


class Case(DriverCase):
    def rotate(self, user: str = "u2") -> None:
        self.context.user_id = user
        credential_conductor.Handler().credential_rotate(self.context, self.cluster())

    def secret(self) -> dict[str, Any]:
        found = self.kube.get(names.SECRET, NAMESPACE, names.credential_secret(RELEASE))
        assert found is not None
        return found

    def used(self) -> str:
        """Id of the credential that the cluster logs in with."""
        text = base64.b64decode(self.secret()["data"]["clouds.yaml"]).decode()
        return max((one for one in self.cloud.credentials if one in text), key=len)

    def age(self) -> None:
        """Let half a day pass since the rotation."""
        lease = self.kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE))
        notes = lease["metadata"]["annotations"]
        (key,) = (one for one in notes if one.endswith("retired-credentials"))
        notes[key] = json.dumps(
            [{**one, "since": "2020-01-01T00:00:00+00:00"} for one in json.loads(notes[key])]
        )
        self.kube.put(names.LEASE, lease)

    def retired(self) -> list[str]:
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        return [one.id for one in record.retired_credentials]


class TestRotation(Case):
    def test_the_cluster_is_theirs_who_asked(self) -> None:
        self.made()
        self.rotate("u2")
        self.assertEqual("u2", self.cloud.credentials[self.used()])
        self.assertEqual("u2", self.secret()["metadata"]["labels"][names.LABEL_USER])
        self.assertEqual("u2", self.cluster().user_id)
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)

    def test_the_region_is_that_of_the_cloud_each_time(self) -> None:
        """It is found out in one place; an option of one service alone says nothing else."""
        self.config(group="cinder_client", region_name="elsewhere")
        for region in ("Région-Zürich", "moved", None):
            self.cloud.home = region
            self.made() if region == "Région-Zürich" else self.rotate()
            text = base64.b64decode(self.secret()["data"]["clouds.yaml"]).decode()
            cloud = yaml.safe_load(text)["clouds"]["openstack"]
            self.assertEqual(region, cloud.get("region_name"))

    def test_one_is_not_taken_for_a_dead_one_by_a_host_whose_clock_is_ahead(self) -> None:
        self.made()

        def before(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("apply", names.SECRET):
                self.kube.before = None
                self.after(24 * 60)
                self.health_task()

        self.kube.before = before
        self.rotate("u1")
        self.assertIn(self.used(), self.cloud.credentials)
        self.health_task()
        self.assertEqual(2, len(self.cloud.credentials))
        self.after(24 * 60 + 31)
        self.health_task()
        self.assertEqual([self.used()], list(self.cloud.credentials))

    def test_one_that_waits_too_long_is_not_said_to_follow(self) -> None:
        self.made()
        before = self.used()
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            error = self.assertRaises(exception.NotSupported, self.rotate, "u2")
        self.assertIn("was not replaced. Try again in a minute.", str(error))
        self.assertEqual((before, []), (self.used(), self.retired()))

    def test_nothing_is_made_for_a_cluster_whose_deletion_is_over(self) -> None:
        self.made()
        cluster, told = self.cluster(), list[str]()

        def before(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("delete", names.LEASE):
                self.kube.before = None
                handler = credential_conductor.Handler()
                refusal = exception.NotSupported
                error = self.assertRaises(refusal, handler.credential_rotate, self.context, cluster)
                told.append(str(error))

        self.kube.before = before
        self.delete()
        for _ in range(3):
            self.status_task()
            self.capi_deletes()
        self.assertEqual(["The cluster has been deleted."], told)
        self.assertEqual(([], {}), (self.left(), self.cloud.credentials))
        self.assertEqual([], objects.Cluster.list(self.context))

    def test_the_provider_is_made_to_look(self) -> None:
        self.made()
        self.rotate()
        found = self.kube.get(names.OPENSTACK_CLUSTER, NAMESPACE, RELEASE)
        self.assertIn("credential-rotated", str(found["metadata"]["annotations"]))

    def test_the_old_one_lives_until_nobody_can_be_using_it(self) -> None:
        self.made()
        self.rotate()
        self.health_task()
        self.assertIn(FIRST, self.cloud.credentials)
        self.age()
        self.health_task()
        self.assertEqual({self.used()}, set(self.cloud.credentials))
        self.assertEqual([], self.retired())

    def test_what_keystone_refuses_changes_nothing(self) -> None:
        self.made()
        before = self.secret()
        self.cloud.refusal = errors.CloudRefused("Keystone refused it: no.")
        error = self.assertRaises(exception.NotSupported, self.rotate)
        self.assertIn("Keystone refused", str(error))
        self.assertEqual((before, []), (self.secret(), self.retired()))
        self.assertEqual("u1", self.cluster().user_id)

    def test_the_one_in_use_is_never_deleted(self) -> None:
        self.made()
        owner, now = FIRST, "2020-01-01T00:00:00+00:00"
        lease = self.kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE))
        key = "k8s-capi-helm.magnum.openstack.org/retired-credentials"
        lease["metadata"].setdefault("annotations", {})[key] = json.dumps(
            [{"id": owner, "user": "u1", "since": now}]
        )
        self.kube.put(names.LEASE, lease)
        self.health_task()
        self.assertEqual(({FIRST}, []), (set(self.cloud.credentials), self.retired()))

    def test_a_deletion_takes_all_of_them(self) -> None:
        self.made()
        self.rotate("u2")
        self.rotate("u3")
        self.assertEqual(3, len(self.cloud.credentials))
        self.delete()
        self.status_task()
        self.capi_deletes()
        self.status_task()
        self.assertEqual({}, self.cloud.credentials)

    def test_roles_are_those_of_whoever_asks(self) -> None:
        self.made()
        self.assertEqual(["member", "reader"], self.cloud.roles[FIRST])
        self.context.roles = ["admin", "operator"]
        self.rotate()
        self.assertEqual(["operator"], self.cloud.roles[self.used()])

    def test_a_secret_that_may_have_arrived_keeps_its_credential(self) -> None:
        self.made()
        arrived = self.kube.apply

        def apply(kind: names.Kind, manifest: Any) -> Any:
            arrived(kind, manifest)
            raise errors.ManagementUnreachable("The management cluster does not answer.")

        self.kube.apply = apply  # type: ignore[method-assign]
        self.assertRaises(exception.NotSupported, self.rotate, "u2")
        del self.kube.apply  # the fake's own again
        self.assertEqual({FIRST, self.used()}, set(self.cloud.credentials))
        self.assertNotEqual(FIRST, self.used())
        self.age()
        self.health_task()
        self.assertEqual({self.used()}, set(self.cloud.credentials))
        self.assertEqual([], self.retired())

    def test_a_secret_that_has_not_arrived_loses_its_credential(self) -> None:
        self.made()

        def lost(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("apply", names.SECRET):
                raise errors.ManagementUnreachable("The management cluster does not answer.")

        self.kube.before = lost
        self.assertRaises(exception.NotSupported, self.rotate, "u2")
        self.kube.before = None
        self.assertEqual((FIRST, {FIRST}), (self.used(), set(self.cloud.credentials)))

    def test_a_user_of_a_directory_has_a_long_id(self) -> None:
        long = "ab" * 32
        self.context.user_id = long
        self.made(user_id=long)
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)
        self.rotate("u2")
        self.assertEqual(
            [long],
            [one.user for one in self.ports.leases.read(NAMESPACE, RELEASE).retired_credentials],
        )

    def test_who_has_no_keypair_of_that_name_is_refused(self) -> None:
        self.made(keypair="mine")
        self.cloud.keypairs = ()
        before = self.secret()
        error = self.assertRaises(exception.NotSupported, self.rotate, "u2")
        self.assertIn("The keypair is 'mine'", str(error))
        self.assertEqual((before, []), (self.secret(), self.retired()))
        self.rotate("u1")
        self.cloud.keypairs = ("mine",)
        self.rotate("u2")
        self.assertEqual("u2", self.cluster().user_id)

    def test_a_credential_for_another_project_is_refused(self) -> None:
        self.made()
        self.context.project_id = "p2"
        error = self.assertRaises(
            exception.NotSupported,
            self.driver.rotate_credential,
            self.context,
            self.cluster_of("p1"),
        )
        self.assertIn("'p2'", str(error))
        self.assertEqual({FIRST}, set(self.cloud.credentials))

    def cluster_of(self, project: str) -> Any:
        """The cluster as somebody of its project reads it."""
        context = magnum_context.make_context(project_id=project)
        return objects.Cluster.get_by_name(context, "demo")


class TestRoles(Case):
    def test_whoever_has_only_the_administrators_is_refused(self) -> None:
        self.context.roles = ["admin"]
        cluster = self.create()
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertIn("a role besides 'admin'", cluster.status_reason)
        self.assertEqual(([], {}), (self.left(), self.cloud.credentials))

    def test_the_operator_chooses(self) -> None:
        self.config(group="capi_helm", app_cred_roles=["reader", "creator"])
        self.create()
        self.assertEqual(["reader"], self.cloud.roles[FIRST])


class TestCredentialInside(Case):
    """What runs inside the cluster has a credential of its own."""

    def setUp(self) -> None:
        super().setUp()
        self.config(group="capi_helm", separate_addon_credential=True, addon_cred_roles=["reader"])

    def text(self, key: str) -> str:
        return base64.b64decode(self.secret()["data"][key]).decode()

    def switch(self) -> Any:
        found = self.helm.live(NAMESPACE, RELEASE)
        assert found is not None
        return found.values["addons"]["openstack"].get("separateCredential")

    def test_each_key_has_its_own_and_the_chart_is_told(self) -> None:
        self.made()
        self.assertEqual({FIRST, INSIDE}, set(self.cloud.credentials))
        self.assertEqual(["reader"], self.cloud.roles[INSIDE])
        self.assertIn(f"{INSIDE}\n", self.text("addon-clouds.yaml"))
        self.assertNotIn(INSIDE, self.text("clouds.yaml"))
        self.assertIs(True, self.switch())

    def test_both_are_rotated_whatever_the_configuration_says_now(self) -> None:
        self.made()
        self.config(group="capi_helm", separate_addon_credential=False)
        self.rotate()
        self.assertEqual({FIRST, INSIDE}, set(self.retired()))
        self.assertNotIn(INSIDE, self.text("addon-clouds.yaml"))
        self.assertEqual(4, len(self.cloud.credentials))
        self.age()
        self.health_task()
        self.assertEqual((2, []), (len(self.cloud.credentials), self.retired()))
        self.assertNotIn(FIRST, self.cloud.credentials)

    def test_a_second_one_that_is_refused_leaves_no_first_one(self) -> None:
        self.config(group="capi_helm", addon_cred_roles=["creator"])
        self.assertEqual("CREATE_FAILED", self.create().status)
        self.assertEqual({}, self.cloud.credentials)

    def test_both_go_with_the_cluster(self) -> None:
        self.made()
        self.delete()
        self.status_task()
        self.capi_deletes()
        self.status_task()
        self.assertEqual({}, self.cloud.credentials)

    def test_a_cluster_that_exists_gets_none(self) -> None:
        self.config(group="capi_helm", separate_addon_credential=False)
        self.made()
        self.config(group="capi_helm", separate_addon_credential=True)
        self.resize(2)
        self.rotate()
        self.assertEqual({"clouds.yaml", "cacert"}, set(self.secret()["data"]))
        self.assertIsNone(self.switch())
