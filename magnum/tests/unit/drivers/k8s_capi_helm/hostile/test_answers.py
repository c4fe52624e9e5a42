# SPDX-License-Identifier: Apache-2.0
"""Answers: JSON of Kubernetes and OpenStack, Secrets of Helm, Leases, kubeconfigs of tenants."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import gzip
import json
from typing import Any

import fixtures
from hypothesis import strategies as st
import yaml

from magnum.drivers.k8s_capi_helm import cloud, errors, model, status
from magnum.drivers.k8s_capi_helm.helm import manifest_diff, release_secret
from magnum.drivers.k8s_capi_helm.kube.http import request as wire
from magnum.drivers.k8s_capi_helm.kube.tenant import tenant_kubeconfig
from magnum.drivers.k8s_capi_helm.kube.watch import transform
from magnum.drivers.k8s_capi_helm.lease import codec
from magnum.drivers.k8s_capi_helm.model import names, secrets
from magnum.drivers.k8s_capi_helm.status.deletion import order as deletion_order
from magnum.drivers.k8s_capi_helm.status.objects import controller_leases
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live
from magnum.tests import base
from magnum.tests.unit.drivers.k8s_capi_helm import builders, hostile, test_cloud
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import apis
from magnum.tests.unit.drivers.k8s_capi_helm.hostile import test_texts
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

NOW = builders.NOW
MACHINE = builders.machine("a", 1)
LOOK = builders.observed({"default-worker": 1}, 1)
#: Each field of a look as a document that can be broken.
_FIELDS = {
    field.name: getattr(LOOK, field.name)
    for field in dataclasses.fields(LOOK)
    if isinstance(getattr(LOOK, field.name), (dict, tuple)) and getattr(LOOK, field.name)
}
_STATES = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "CREATE_COMPLETE")
_REQUESTS = st.builds(
    wire.Request,
    st.sampled_from(("GET", "PATCH", "DELETE")),
    st.just("/api/v1/namespaces/a/secrets/b"),
    st.just("read"),
    st.just("Secret 'b' in namespace 'a'"),
    private=st.booleans(),
)


def _listed(field: str) -> Any:
    value = _FIELDS[field]
    return list(value) if isinstance(value, tuple) else value


class TestKubernetes(test_texts.TextCase):
    """Objects that are not what their definition says."""

    @hostile.given(
        st.sampled_from(sorted(_FIELDS)).flatmap(
            lambda name: st.tuples(st.just(name), hostile.broken(_listed(name)))
        ),
        st.sampled_from(_STATES),
        examples=12,
    )
    def test_status_of_broken_objects(self, changed: tuple[str, Any], row: str) -> None:
        field, value = changed
        if isinstance(_FIELDS[field], tuple):
            # A list has only objects: the port sees to it.
            value = tuple(one for one in value if isinstance(one, dict))
        look = dataclasses.replace(LOOK, **{field: value})
        state = builders.state(row, {"default-worker": 1}, 1)
        self.assert_verdict(status.evaluate(look, state, NOW))
        status.servers_in_error(look)
        if len(value) >= len(_FIELDS[field]) or isinstance(value, dict):
            self.assertFalse(deletion_order.is_cluster_deleted(look))
        step = deletion_order.next_step(
            look, proof=True, release_present=False, secrets_present=False
        )
        self.assertIsInstance(step.action, deletion_order.DeletionAction)

    @hostile.given(hostile.broken({key: MACHINE[key] for key in ("spec", "status")}), examples=3)
    def test_what_is_watched(self, content: Any) -> None:
        # The API server sees to the metadata.
        found = {**MACHINE, **content}
        for kind in (names.MACHINE, names.EVENT, names.CONTROL_PLANE):
            self.assertIsInstance(transform.transform(kind, found), dict)

    @hostile.given(
        hostile.broken(
            {
                "metadata": {"name": "a", "labels": {"x": "y"}},
                "spec": {"renewTime": "2026-11-21T12:00:00.000000Z", "leaseDurationSeconds": 15},
            }
        ),
        examples=3,
    )
    def test_a_controllers_lease(self, found: Any) -> None:
        if isinstance(found, dict):
            beat = controller_leases.controller_lease("capi", found, None, 5.0)
            if beat is not None:
                silent = controller_leases.stale_controller(
                    beat, datetime.timedelta(minutes=3), NOW
                )
                self.assertIsInstance(silent, model.StaleController | None)

    @hostile.given(
        _REQUESTS,
        st.sampled_from((300, 400, 401, 403, 404, 409, 410, 422, 429, 500, 503)),
        hostile.bodies,
        examples=6,
    )
    def test_a_refusal(self, request: wire.Request, code: int, body: bytes) -> None:
        error = wire.refusal(request, code, body)
        self.assertIsInstance(error, errors.DriverError)
        self.assert_sentence(error)
        self.assertLess(len(error.detail), 1 << 14)
        self.assertIsInstance(wire.is_missing_kind(code, body), bool)

    @hostile.given(_REQUESTS, hostile.texts, examples=2)
    def test_a_refusal_about_a_secret_quotes_nothing(
        self, request: wire.Request, text: str
    ) -> None:
        body = {
            "kind": "Status",
            "message": f"data: {hostile.CANARY}{text}",
            "reason": "Invalid",
            "details": {"causes": [{"message": hostile.CANARY, "field": "data"}]},
        }
        private = dataclasses.replace(request, private=True)
        error = wire.refusal(private, 422, json.dumps(body).encode())
        self.assertNotIn(hostile.CANARY, f"{error} {error.detail}")


def _packed(release: Any, text: bytes | None = None) -> str:
    inner = json.dumps(release).encode() if text is None else text
    return base64.b64encode(base64.b64encode(gzip.compress(inner))).decode()


RELEASE = {
    "name": "demo-abcdefghijkl",
    "namespace": "magnum-p1",
    "version": 3,
    "info": {"status": "deployed"},
    "chart": {"metadata": {"name": "openstack-cluster", "version": "1.2.3", "annotations": {}}},
    "config": {
        "nodeGroups": [{"name": "a", "machineCount": 1}],
        "controlPlane": {"machineCount": 1},
    },
    "manifest": "kind: A\n",
}
_SECRET = {
    "metadata": {
        "name": "sh.helm.release.v1.demo.v3",
        "labels": {"status": "deployed", "version": "3"},
    },
    "data": {},
}


class TestReleases(hostile.HostileCase):
    """Helm's record of a release."""

    def read(self, secret: Any) -> None:
        for question in (
            release_secret.decode,
            release_secret.manifest,
            release_secret.is_server_side,
            lambda one: release_secret.with_status(one, "failed"),
        ):
            try:
                found = question(secret)
            except errors.DriverError as error:
                self.assert_sentence(error)
                self.assertNotIn(hostile.CANARY, error.detail)
                continue
            if isinstance(found, model.LiveRelease):
                for text in (found.name, found.namespace, found.status, found.chart_name):
                    self.assertIsInstance(text, str)
                for text in (found.chart_version, found.chart_family):
                    self.assertIsInstance(text, str)
                self.assertIsInstance(found.values, dict)
                json.dumps(found.values)

    @hostile.given(hostile.broken(RELEASE), examples=6)
    def test_a_broken_release(self, found: Any) -> None:
        self.read({**_SECRET, "data": {"release": _packed(found)}})

    @hostile.given(hostile.bodies, st.sampled_from((_packed, lambda one, two: one)), examples=4)
    def test_what_is_no_release(self, body: bytes, pack: Any) -> None:
        self.read({**_SECRET, "data": {"release": pack(None, body)}})

    @hostile.given(
        st.dictionaries(st.sampled_from(("status", "version", "x")), hostile.texts),
        st.dictionaries(st.sampled_from(("release", "x")), hostile.texts),
        examples=4,
    )
    def test_a_broken_secret(self, marks: dict[str, str], data: dict[str, str]) -> None:
        found = {"metadata": {"name": "a", "labels": marks}, "data": data}
        self.read(found)
        self.read({**found, "data": {"release": _packed(RELEASE)}})
        release_secret.newest_revision([found, {**_SECRET}])

    @hostile.given(hostile.broken(RELEASE["config"]), examples=3)
    def test_values_of_nobody(self, found: Any) -> None:
        secret = {**_SECRET, "data": {"release": _packed({**RELEASE, "config": found})}}
        try:
            live = release_secret.decode(secret)
        except errors.DriverError as error:
            self.assert_sentence(error)
            return
        for one in values_live.node_groups(live.values).values():
            self.assertIsInstance(values_live.is_autoscaled(one), bool)

    @hostile.given(
        st.one_of(
            hostile.texts, st.builds("kind: {}\nmetadata: {}".format, hostile.texts, hostile.texts)
        ),
        examples=3,
    )
    def test_a_manifest(self, text: str) -> None:
        try:
            for one in release_secret.documents(text):
                self.assertIsInstance(one, dict)
        except errors.DriverError as error:
            self.assert_sentence(error)


LEASE = {
    "metadata": {
        "name": "demo-abcdefghijkl-magnum",
        "namespace": "magnum-p1",
        "labels": {names.LABEL_UUID: "u", names.LABEL_PROJECT: "p1"},
        "annotations": {
            codec.OPERATIONS: [
                {
                    "id": "a",
                    "verb": "upgrade",
                    "groups": ["a"],
                    "started": "2026-11-21T12:00:00+00:00",
                    "deadline": None,
                    "upgrade": {"template": "t", "batch": 1, "accepted": False},
                    "count": 3,
                    "bounds": [1, 2],
                    "row": "r",
                    "fields": ["x"],
                }
            ],
            codec.GROUP_LOOKS: {"a": "b"},
            codec.WRITTEN: {"a": 1},
            codec.RETIRED: [
                {"id": "a", "user": "u", "since": "2026-11-21T12:00:00+00:00", "name": "n"}
            ],
            codec.OWED: [
                {"id": "a", "defaults": [{}, {}], "groups": {"a": [{}, {}]}, "shared": [{}, {}]}
            ],
        },
    },
    "spec": {"holderIdentity": "me"},
}


def _as_texts(found: Any) -> Any:
    """The annotations of a Lease as texts, as Kubernetes has them."""
    notes = (found.get("metadata") or {}).get("annotations") if isinstance(found, dict) else None
    if isinstance(notes, dict):
        found["metadata"]["annotations"] = {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in notes.items()
        }
    return found


class TestLeases(hostile.HostileCase):
    """The record of a cluster, which whoever may write Leases can write."""

    @hostile.given(hostile.broken(LEASE["metadata"]["annotations"]), examples=10)
    def test_a_broken_record(self, notes: Any) -> None:
        found = _as_texts({**LEASE, "metadata": {**LEASE["metadata"], "annotations": notes}})
        if not isinstance(found["metadata"]["annotations"], (dict, type(None))):
            return
        try:
            record = codec.record(found)
        except errors.DriverError as error:
            self.assert_sentence(error)
            return
        for one in record.operations:
            self.assertIsInstance(one.verb, model.Verb)

    def test_ids_that_are_no_texts(self) -> None:
        """They tell entries apart, and a list cannot."""
        for key in (codec.OPERATIONS, codec.RETIRED, codec.OWED):
            [entry] = LEASE["metadata"]["annotations"][key]
            notes = {key: json.dumps([{**entry, "id": ["a"]}])}
            found = {**LEASE, "metadata": {**LEASE["metadata"], "annotations": notes}}
            self.assertRaises(errors.ManagementRefused, codec.record, found)

    @hostile.given(
        st.sampled_from(
            (codec.OPERATIONS, codec.GROUP_LOOKS, codec.WRITTEN, codec.RETIRED, codec.OWED)
        ),
        hostile.texts | st.sampled_from(("[" * 60000, "null", "1", '"x"', "[1]", "[null]", "{}")),
        examples=4,
    )
    def test_a_record_that_is_no_json(self, key: str, text: str) -> None:
        try:
            codec.record({**LEASE, "metadata": {**LEASE["metadata"], "annotations": {key: text}}})
        except errors.DriverError as error:
            self.assert_sentence(error)


CLOUDS = {
    "clouds": {
        names.CLOUD_NAME: {
            "auth": {
                "application_credential_id": "a",
                "application_credential_secret": hostile.CANARY,
            }
        }
    }
}
KUBECONFIG = {
    "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [
        {
            "name": "c",
            "cluster": {"server": "https://127.64.0.1:6443", "certificate-authority-data": "Zm9v"},
        }
    ],
    "users": [
        {"name": "u", "user": {"client-certificate-data": "Zm9v", "client-key-data": "Zm9v"}}
    ],
}


class TestSecrets(hostile.HostileCase):
    """Credentials and kubeconfigs."""

    @hostile.given(hostile.broken(CLOUDS) | hostile.junk, examples=4)
    def test_clouds_yaml(self, found: Any) -> None:
        text = yaml.safe_dump(found, allow_unicode=True).encode("utf-8", "replace")
        self.credentials({"data": {secrets.CLOUDS: base64.b64encode(text).decode()}})

    @hostile.given(hostile.bodies, st.booleans(), examples=3)
    def test_what_is_no_clouds_yaml(self, body: bytes, packed: bool) -> None:
        text = base64.b64encode(body).decode() if packed else body.decode("latin-1")
        self.credentials({"data": {secrets.CLOUDS: text, secrets.ADDON_CLOUDS: text}})

    def credentials(self, secret: Any) -> None:
        try:
            found = secrets.credentials_of(secret)
        except errors.DriverError as error:
            self.assert_sentence(error)
            self.assertNotIn(hostile.CANARY, error.detail)
            return
        for one in found:
            self.assertIsInstance(one.id, str)
            self.assertIsInstance(one.secret, str)

    @hostile.given(hostile.broken(KUBECONFIG), examples=6)
    def test_a_tenants_kubeconfig(self, found: Any) -> None:
        text = yaml.safe_dump(found, allow_unicode=True).encode("utf-8", "replace")
        self.kubeconfig({"data": {"value": base64.b64encode(text).decode()}})

    @hostile.given(
        hostile.bodies | st.builds(lambda n: b"[" * n, st.integers(1, 900)),
        st.booleans(),
        examples=4,
    )
    def test_what_is_no_kubeconfig(self, body: bytes, packed: bool) -> None:
        text = base64.b64encode(body).decode() if packed else body.decode("latin-1")
        self.kubeconfig({"data": {"value": text}})

    def kubeconfig(self, secret: Any) -> None:
        way = tenant_kubeconfig.read_tenant_kubeconfig(secret)
        if way is not None:
            self.assertIsInstance(way.host, str)
            self.assertTrue(0 < way.port < 1 << 16)


class TestLikeness(hostile.HostileCase):
    """Objects that are there beside those that would be made."""

    @hostile.given(hostile.broken({key: MACHINE[key] for key in ("spec", "status")}), examples=3)
    def test_differences(self, content: Any) -> None:
        rendered = {**MACHINE, "data": {"a": "b"}}
        for path in at_least_one(manifest_diff.differences(rendered, {**MACHINE, **content})):
            self.assertIsInstance(path, str)


_ANSWERS = (
    (
        "images",
        {
            "images": [
                {
                    "id": test_cloud.UUID,
                    "name": "ubuntu-kube",
                    "status": "active",
                    "kube_version": "v1.34.4",
                    "os_distro": "ubuntu",
                    "min_disk": 0,
                    "min_ram": 0,
                    "size": 1,
                    "os_hidden": False,
                }
            ]
        },
    ),
    (
        "flavors/detail",
        {"flavors": [{"id": "f-1", "name": "small", "vcpus": 2, "ram": 4096, "disk": 20}]},
    ),
    ("networks", {"networks": [apis.FakeApis.network("net-1", "public", "admin", external=True)]}),
    ("types", {"volume_types": [{"id": "a", "name": "fast"}]}),
    (
        "os-quota-sets/p1/detail",
        {"quota_set": {"id": "p1", "instances": {"limit": 1, "in_use": 0}}},
    ),
    ("quotas/p1/details", {"quota": {"port": {"limit": 1, "used": 0, "reserved": 0}}}),
    ("quotas/p1", {"quota": {"load_balancer": 1, "listener": 1, "pool": 1}}),
    (
        "loadbalancers",
        {
            "loadbalancers": [
                {"id": "a", "name": "b", "project_id": "p1", "provisioning_status": "ERROR"}
            ]
        },
    ),
    ("application_credentials", {"application_credentials": [{"id": "a", "name": "b"}]}),
    ("servers/s-1", {"server": {"id": "s-1", "fault": {"message": "m", "code": 500}}}),
    ("os-availability-zone", {"availabilityZoneInfo": [{"zoneName": "a", "zoneState": {}}]}),
)


class TestOpenStack(base.TestCase, hostile.HostileCase):
    """Services that answer something else, below the real openstacksdk."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch("keystoneauth1.session.time.sleep", lambda s: None))
        self.openstack = apis.FakeApis()
        self.cloud = cloud.Cloud(cloud.Services(self.openstack.clients(self.context)))
        wanted = test_cloud.request(labels=test_cloud.labels.Labels(availability_zone="zone-1"))
        more = dict.fromkeys(model.QuotaResource, 1)
        self.questions = (
            lambda: self.cloud.facts(wanted),
            lambda: self.cloud.quotas("p1", more),
            lambda: self.cloud.credential_names("u1", "p1"),
            lambda: self.cloud.server_faults(["s-1"]),
            lambda: self.cloud.is_balancer_failed("b", "p1"),
            lambda: self.cloud.remains.servers("demo-abcdefghijkl", "p1", "magnum-p1"),
        )

    @hostile.given(
        st.sampled_from(_ANSWERS).flatmap(
            lambda one: st.tuples(st.just(one[0]), hostile.broken(one[1]) | hostile.junk)
        ),
        st.sampled_from((200, 200, 200, 300, 400, 401, 403, 404, 409, 429, 500, 503)),
        examples=2,
    )
    def test_an_answer(self, answer: tuple[str, Any], code: int) -> None:
        place, body = answer
        self.openstack.said = {place: (code, body)}
        for question in at_least_one(self.questions):
            before = len(self.openstack.asked)
            try:
                question()
            except errors.DriverError as error:
                self.assert_sentence(error)
                self.assertLess(len(str(error)), 1 << 16)
            except AssertionError:
                # The small cloud does not know the question.
                self.assertGreater(len(self.openstack.asked), before)
