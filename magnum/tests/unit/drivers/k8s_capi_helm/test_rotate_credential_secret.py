# SPDX-License-Identifier: Apache-2.0
"""A rotation writes the Secret that Cluster API reads, whatever its name, or changes nothing."""

from __future__ import annotations

import base64
import itertools
from typing import Any

from magnum.common import exception
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.reconcile.process import credential_secret
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import CONF, DriverCase, NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.magnum_release import credential_conductor

USUAL = names.credential_secret(RELEASE)
#: What magnum-capi-helm calls the Secret of a release with two hyphens in a row.
OTHER = "one-hyphen-cloud-credentials"
FIRST = f"id-magnum-{RELEASE}"


class Case(DriverCase):
    def adopted(
        self, secret: str | None, value: str | None, reference: str | None, **marks: str
    ) -> None:
        """A cluster whose credential Secret, value and reference are called that; None for none."""
        self.made()
        found = self.secret(USUAL)
        assert found is not None
        self.kube.remove(names.SECRET, NAMESPACE, USUAL)
        if secret:
            found["metadata"]["name"] = secret
            found["metadata"]["labels"].update(marks)
            self.kube.put(names.SECRET, found)
        live = self.helm.releases[NAMESPACE, RELEASE]
        live.values.pop(credential_secret.VALUE)
        if value:
            live.values[credential_secret.VALUE] = value
        self.refer(reference)

    def refer(self, name: str | None, **more: str) -> None:
        network = self.kube.get(names.OPENSTACK_CLUSTER, NAMESPACE, RELEASE)
        assert network is not None
        network["spec"]["identityRef"] = {"name": name, "cloudName": "openstack", **more}
        self.kube.put(names.OPENSTACK_CLUSTER, network)

    def secret(self, name: str) -> Any:
        return self.kube.get(names.SECRET, NAMESPACE, name)

    def rotate(self) -> str:
        """A rotation by another user; the refusal, "" if there is none."""
        self.context.user_id = "u2"
        handler = credential_conductor.Handler()
        try:
            handler.credential_rotate(self.context, self.cluster())
        except exception.NotSupported as error:
            return str(error)
        return ""

    def has(self, name: str) -> str:
        """Id of the credential in a Secret."""
        found = self.secret(name)
        text = base64.b64decode(found["data"]["clouds.yaml"]).decode() if found else ""
        return max((one for one in self.cloud.credentials if one in text), key=len, default="")

    def everything(self) -> Any:
        place = (NAMESPACE, USUAL), (NAMESPACE, OTHER)
        secrets = [self.kube.get(names.SECRET, *one) for one in place]
        return secrets, dict(self.cloud.credentials), self.cluster().user_id


class TestRotation(Case):
    def test_the_secret_of_the_predecessor_is_written_and_no_other_one(self) -> None:
        self.adopted(OTHER, OTHER, OTHER)
        self.assertEqual("", self.rotate())
        self.assertNotIn(self.has(OTHER), ("", FIRST))
        self.assertIsNone(self.secret(USUAL))
        self.assertEqual("u2", self.cluster().user_id)
        record = self.ports.leases.read(NAMESPACE, RELEASE)
        assert record is not None
        self.assertEqual([FIRST], [one.id for one in record.retired_credentials])

    def test_one_that_an_earlier_version_wrote_beside_it_is_not_taken_for_it(self) -> None:
        self.adopted(OTHER, OTHER, OTHER)
        beside = self.secret(OTHER)
        beside["metadata"]["name"] = USUAL
        self.kube.put(names.SECRET, beside)
        self.assertEqual("", self.rotate())
        self.assertEqual((FIRST, False), (self.has(USUAL), self.has(OTHER) == FIRST))

    def test_whatever_names_it(self) -> None:
        """What Cluster API reads has the new credential, or nothing at all is changed."""
        self.made()
        outcomes = []
        choices = (USUAL, OTHER, None)
        for secret, value, reference in itertools.product(choices, choices, choices):
            with self.subTest(secret=secret, value=value, reference=reference):
                self.afresh()
                self.adopted(secret, value, reference)
                before = self.everything()
                refusal = self.rotate()
                outcomes.append(bool(refusal))
                if refusal:
                    self.assertEqual(before, self.everything())
                    self.assertIn("Nothing was changed", refusal)
                    self.assertEqual({USUAL, OTHER}, {value, reference})
                else:
                    reads = reference or value or secret or USUAL
                    self.assertNotIn(self.has(reads), ("", FIRST))
                    self.assertEqual("u2", self.cluster().user_id)
        self.assertEqual((27, 6), (len(outcomes), sum(outcomes)))

    def test_another_clusters_secret_is_never_written(self) -> None:
        other = "11111111-8888-4777-8666-555555555555"
        self.adopted(OTHER, OTHER, OTHER, **{names.LABEL_UUID: other})
        before = self.everything()
        self.assertIn(other, self.rotate())
        self.assertEqual(before, self.everything())

    def test_an_identity_of_the_operators_is_left_to_the_operator(self) -> None:
        self.adopted(USUAL, USUAL, None)
        self.refer("shared", type="ClusterIdentity")
        before = self.everything()
        self.assertIn("ClusterIdentity 'shared'", self.rotate())
        self.assertEqual(before, self.everything())

    def afresh(self) -> None:
        """A world without the cluster."""
        cluster = self.cluster()
        for row in cluster.nodegroups:
            row.destroy()
        cluster.destroy()
        self.kube.restore()
        self.helm.releases.clear()
        self.cloud.credentials.clear()
        self.cloud.openstack.groups.clear()
        self.context.user_id = "u1"


class TestEverybodyElse(Case):
    def test_a_deletion_takes_all_secrets_of_the_cluster(self) -> None:
        self.adopted(OTHER, OTHER, OTHER)
        self.delete()
        self.status_task()
        self.capi_deletes()
        self.status_task()
        self.assertEqual(([], {}), (self.left(), self.cloud.credentials))

    def test_the_one_that_is_read_is_tried_and_not_the_one_beside_it(self) -> None:
        self.adopted(OTHER, OTHER, OTHER)
        beside = self.secret(OTHER)
        beside["metadata"]["name"] = USUAL
        self.kube.put(names.SECRET, beside)
        found = credential_secret.secrets_in_use(self.kube, ownership.owner(self.cluster(), CONF))
        self.assertEqual([OTHER], [one["metadata"]["name"] for one in found])
