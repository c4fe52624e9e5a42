# SPDX-License-Identifier: Apache-2.0
"""Rotation of a cluster's credential, who owns it then, and what becomes of the old one."""

from __future__ import annotations

import base64
import json
from typing import Any

from magnum.common import exception
from magnum.conductor.handlers import credential_conductor
from magnum.drivers.k8s_capi_helm import errors, names
from magnum.tests.unit.drivers.k8s_capi_helm.world import NAMESPACE, RELEASE, World

FIRST = f"id-magnum-{RELEASE}"


class TestRotation(World):
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
        record = self.ports.operations.read(NAMESPACE, RELEASE)
        return [one.id for one in record.retired]

    def test_the_cluster_is_theirs_who_asked(self) -> None:
        self.made()
        self.rotate("u2")
        self.assertEqual("u2", self.cloud.credentials[self.used()])
        self.assertEqual("u2", self.secret()["metadata"]["labels"][names.LABEL_USER])
        self.assertEqual("u2", self.cluster().user_id)
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)

    def test_the_provider_is_made_to_look(self) -> None:
        self.made()
        self.rotate()
        found = self.kube.get(names.OPENSTACK_CLUSTER, NAMESPACE, RELEASE)
        self.assertIn("credential-rotated", str(found["metadata"]["annotations"]))

    def test_the_old_one_lives_until_nobody_can_be_using_it(self) -> None:
        self.made()
        self.rotate()
        self.poll()
        self.assertIn(FIRST, self.cloud.credentials)
        self.age()
        self.poll()
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
        self.poll()
        self.assertEqual(({FIRST}, []), (set(self.cloud.credentials), self.retired()))

    def test_a_deletion_takes_all_of_them(self) -> None:
        self.made()
        self.rotate("u2")
        self.rotate("u3")
        self.assertEqual(3, len(self.cloud.credentials))
        self.delete()
        self.tick()
        self.wither()
        self.tick()
        self.assertEqual({}, self.cloud.credentials)
