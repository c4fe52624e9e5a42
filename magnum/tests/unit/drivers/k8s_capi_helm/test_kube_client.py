# SPDX-License-Identifier: Apache-2.0
"""The client of the management cluster: its promises in memory, its bounds on a wire."""

from __future__ import annotations

import contextlib
import time

from hypothesis import given
from hypothesis import strategies as st
import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube import discovery
from magnum.drivers.k8s_capi_helm.kube.http import request
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.suites import http_server
from magnum.tests.unit.drivers.k8s_capi_helm.suites import kube_client as suite


class TestFakeKube(suite.KubeClientTests, testtools.TestCase):
    """The cluster in memory keeps the promises of the real client."""

    def setUp(self) -> None:
        super().setUp()
        self.kube = FakeKube()
        self.kube.unserved.add(suite.ABSENT)


class TestAttempts(http_server.WireCase):
    """How often what is sent."""

    def test_passing_trouble_passes(self) -> None:
        for trouble in ((500, b"oops"), (503, b""), (429, b""), (504, b""), None):
            self.server.seen.clear()
            self.answer(trouble, trouble, (200, self.lease()))
            self.assertEqual(self.lease(), self.kube.get(names.LEASE, "n", "one"))
            self.assertEqual(["GET"] * 3, self.sent())

    def test_trouble_that_stays_is_unreachable_after_three_attempts(self) -> None:
        self.answer((500, http_server.status("InternalError", "failed calling webhook x")))
        error = self.assertRaises(
            errors.ManagementUnreachable, self.kube.get, names.LEASE, "n", "one"
        )
        self.assertEqual(["GET"] * 3, self.sent())
        self.assertTrue(error.retryable)
        self.assertIn("failed calling webhook x", error.detail)
        self.assertNotIn("webhook", str(error))

    def test_what_could_have_an_effect_twice_is_sent_once(self) -> None:
        for call in (
            lambda: self.kube.create(names.LEASE, self.lease()),
            lambda: self.kube.replace(names.LEASE, self.lease(resourceVersion="1")),
            lambda: self.kube.patch(
                kind=names.LEASE,
                namespace="n",
                name="one",
                merge={"metadata": {"resourceVersion": "1"}},
            ),
        ):
            for trouble in ((500, b""), None):
                self.server.seen.clear()
                self.answer(trouble)
                self.assertRaises(errors.ManagementUnreachable, call)
                self.assertEqual(1, len(self.sent()))

    def test_what_was_not_done_for_sure_is_sent_again(self) -> None:
        self.answer((429, b""), (429, b""), (201, self.lease()))
        self.assertEqual(self.lease(), self.kube.create(names.LEASE, self.lease()))
        self.assertEqual(["POST"] * 3, self.sent())

    def test_a_role_that_was_just_bound_is_waited_for(self) -> None:
        forbidden = (403, http_server.status("Forbidden"))
        self.answer(forbidden, forbidden, forbidden, forbidden, (201, self.lease()))
        self.assertEqual(self.lease(), self.kube.create(names.LEASE, self.lease()))
        self.answer(forbidden)
        self.server.seen.clear()
        self.assertRaises(errors.ManagementRefused, self.kube.create, names.LEASE, self.lease())
        self.assertEqual(7, len(self.sent()))

    def test_refusals_are_not_repeated(self) -> None:
        for code in (400, 403, 405, 413, 415, 422):
            self.server.seen.clear()
            self.answer((code, http_server.status("Invalid", "spec.x: Invalid value")))
            error = self.assertRaises(
                errors.ManagementRefused, self.kube.apply, names.LEASE, self.lease()
            )
            self.assertEqual(["PATCH"], self.sent())
            self.assertFalse(error.retryable)
            self.assertIn("spec.x", error.detail)
            self.assertIn("operator", str(error))

    def test_where_there_is_no_namespace_nothing_may_be_read_and_nothing_is_there(self) -> None:
        """The role is bound in each namespace: without one the server does not tell so itself."""
        forbidden, gone = (
            (403, http_server.status("Forbidden")),
            (404, http_server.status("NotFound", name="n")),
        )
        self.answer(forbidden, gone)
        self.assertIsNone(self.kube.get(names.LEASE, "n", "one"))
        self.assertEqual("/api/v1/namespaces/n", self.server.seen[-1].path)
        self.answer(forbidden, gone)
        self.assertEqual([], self.kube.list(names.SECRET, "n"))

    def test_what_may_not_be_read_where_there_is_a_namespace_is_a_refusal(self) -> None:
        for then in ((200, {"metadata": {"name": "n"}}), (403, http_server.status("Forbidden"))):
            for call in (
                lambda: self.kube.get(names.LEASE, "n", "one"),
                lambda: self.kube.list(names.LEASE, "n"),
            ):
                self.answer((403, http_server.status("Forbidden")), then)
                error = self.assertRaises(errors.ManagementRefused, call)
                self.assertIn("read Lease" if "one" in str(error) else "list Lease", str(error))

    def test_without_an_answer_nobody_knows_what_is_there(self) -> None:
        self.answer((403, http_server.status("Forbidden")), (503, b""))
        self.assertRaises(errors.ManagementUnreachable, self.kube.get, names.LEASE, "n", "one")

    def test_conflicts(self) -> None:
        for code in (409, 410):
            self.answer((code, http_server.status("Conflict")))
            error = self.assertRaises(errors.Conflict, self.kube.apply, names.LEASE, self.lease())
            self.assertIn("Lease 'one' in namespace 'n'", str(error))
            self.assertTrue(error.retryable)

    def test_an_answer_that_is_cut_off_is_none(self) -> None:
        """Of a 404 the rest would say whether the object or its kind is not there."""
        self.answer((200, self.lease()))
        self.kube.get(names.LEASE, "n", "one")
        self.server.seen.clear()
        self.server.missing = 20
        self.answer((404, http_server.GONE))
        error = self.assertRaises(
            errors.ManagementUnreachable, self.kube.get, names.LEASE, "n", "one"
        )
        self.assertTrue(error.retryable)
        self.assertEqual(3, len(self.sent()))

    def test_a_redirect_is_not_followed(self) -> None:
        """Who answers in place of the API server would get the token."""
        self.server.location = f"{self.server.url}/elsewhere"
        self.answer((302, b""))
        self.assertRaises(errors.ManagementRefused, self.kube.get, names.LEASE, "n", "one")
        self.assertEqual(["GET"], self.sent())

    def test_an_answer_that_is_not_json(self) -> None:
        self.answer((200, b"<html>a proxy</html>"))
        self.assertRaises(errors.ManagementUnreachable, self.kube.get, names.LEASE, "n", "one")


class TestTime(http_server.WireCase):
    """Nothing holds a thread for long."""

    def bounded(self, limit: float) -> errors.ManagementUnreachable:
        began = time.monotonic()
        error: errors.ManagementUnreachable = self.assertRaises(
            errors.ManagementUnreachable, self.kube.get, names.LEASE, "n", "one"
        )
        self.assertLess(time.monotonic() - began, limit)
        return error

    def test_a_server_that_never_answers(self) -> None:
        self.server.answer = self.server.never
        self.assertIn("Read", self.bounded(10).detail)

    def test_a_server_that_is_not_there(self) -> None:
        http_server.write_kubeconfig(self.config, "http://127.0.0.1:9")
        self.assertRegex(self.bounded(10).detail, "(?i)refused")

    def test_a_server_that_speaks_something_else(self) -> None:
        http_server.write_kubeconfig(self.config, self.server.url.replace("http:", "https:"))
        self.bounded(10)

    def test_no_request_before_it_is_needed(self) -> None:
        KubeClient(str(self.directory / "nothing"))
        self.assertEqual([], self.server.seen)


class TestVersions(http_server.WireCase):
    """Which version of a kind is talked about."""

    def serve_versions(self, *versions: str) -> None:
        def give(seen: http_server.Seen) -> http_server.Answer:
            _, _, _, version, *rest = seen.path.split("/")
            if version not in versions:
                return 404, b"404 page not found\n"
            return (404, http_server.GONE) if rest else (200, http_server.CORE_GROUPS)

        self.server.answer = give

    def test_the_best_that_is_served(self) -> None:
        for served, wanted in (
            (("v1beta1", "v1beta2"), "v1beta2"),
            (("v1beta1",), "v1beta1"),
        ):
            self.serve_versions(*served)
            kube = KubeClient(str(self.config), pause=0)
            self.assertEqual(wanted, kube.served_version(names.CLUSTER))

    def test_it_is_asked_once(self) -> None:
        self.serve_versions("v1beta2")
        for _ in range(3):
            self.kube.get(names.CLUSTER, "n", "one")
        self.assertEqual(4, len(self.server.seen))

    def test_a_version_that_goes_away_is_noticed(self) -> None:
        self.serve_versions("v1beta2")
        self.assertIsNone(self.kube.get(names.CLUSTER, "n", "one"))
        self.serve_versions("v1beta1")
        self.assertIsNone(self.kube.get(names.CLUSTER, "n", "one"))
        self.assertEqual("v1beta1", self.kube.served_version(names.CLUSTER))
        self.serve_versions()
        error = self.assertRaises(errors.ManagementRefused, self.kube.list, names.CLUSTER, "n")
        self.assertIn("Cluster", str(error))

    def test_manifests_get_the_version(self) -> None:
        self.serve_versions("v1beta1")
        manifest = {"metadata": {"name": "one", "namespace": "n"}, "apiVersion": "of/another"}
        with contextlib.suppress(errors.Conflict):
            self.kube.apply(names.CLUSTER, manifest)
        sent = self.server.seen[-1]
        self.assertEqual(
            ("cluster.x-k8s.io/v1beta1", "Cluster"), (sent.body["apiVersion"], sent.body["kind"])
        )
        self.assertEqual("application/apply-patch+yaml", sent.content_type)
        self.assertIn("fieldManager=magnum&force=true", sent.path)
        self.assertEqual("of/another", manifest["apiVersion"])


class TestLists(http_server.WireCase):
    """Long lists come in pages."""

    def page(self, seen: http_server.Seen, *, expired: bool = False) -> http_server.Answer:
        if seen.path.count("/") == 3:
            return 200, http_server.CORE_GROUPS
        name, marks = f"p{len(self.sent())}", {"a": "1", "b": "2"}
        item = {"metadata": {"name": name, "namespace": "n", "labels": marks}}
        if "continue=" in seen.path:
            if expired:
                return 410, http_server.status("Expired")
            return 200, {"items": [item], "metadata": {}}
        more = {"continue": "a/b=&"} if "limit=" in seen.path else {}
        return 200, {"items": [item], "metadata": more, "apiVersion": "coordination.k8s.io/v1"}

    def test_all_pages_are_read(self) -> None:
        self.server.answer = self.page
        found = self.kube.list(names.LEASE, "n", {"b": "2", "a": "1"})
        self.assertEqual(["p1", "p2"], [item["metadata"]["name"] for item in found])
        self.assertEqual("Lease", found[0]["kind"])
        first, second = [seen.path for seen in self.server.seen[1:]]
        self.assertIn("labelSelector=a%3D1%2Cb%3D2", first)
        self.assertIn(f"limit={discovery.PAGE}", first)
        self.assertIn("continue=a/b%3D%26", second)

    def test_the_revision_is_that_of_a_list_of_one(self) -> None:
        self.server.answer = lambda seen: (200, http_server.CORE_GROUPS)
        self.kube.served_version(names.LEASE)
        more = {"resourceVersion": "17", "continue": "a"}
        self.server.answer = lambda seen: (200, {"items": [], "metadata": more})
        self.assertEqual("17", self.kube.revision(names.LEASE))
        self.assertEqual(1, sum("limit=1" in seen.path for seen in self.server.seen))
        self.assertEqual([], [seen.path for seen in self.server.seen if "continue=" in seen.path])

    def test_a_snapshot_that_took_too_long_is_read_in_one_piece(self) -> None:
        def answer(seen: http_server.Seen) -> http_server.Answer:
            code, body = self.page(seen, expired=True)
            if code == 200 and "items" in body:
                first = "limit=" in seen.path
                body["items"][0]["metadata"]["name"] = "of a page" if first else "of the piece"
                body["metadata"]["resourceVersion"] = "1" if first else "2"
            return code, body

        self.server.answer = answer
        found = self.kube.snapshot(names.LEASE, lambda thing: thing["metadata"]["name"])
        self.assertEqual((["of the piece"], "2"), found)

    def test_a_list_that_took_too_long_is_read_in_one_piece(self) -> None:
        self.server.answer = lambda seen: self.page(seen, expired=True)
        found = self.kube.list(names.LEASE, "n")
        self.assertEqual(["p3"], [item["metadata"]["name"] for item in found])
        self.assertNotIn("limit=", self.server.seen[-1].path)


class TestAbsence(http_server.WireCase):
    """Only an answer that is one to the question says that something is not there."""

    def test_metadata_is_asked_for_by_its_media_type(self) -> None:
        metadata = {"name": "one", "namespace": "n"}
        item = {"kind": "PartialObjectMetadata", "metadata": metadata}
        for items, expected in (([item], [{"metadata": metadata}]), ([], []), (None, [])):
            answer = {"kind": "PartialObjectMetadataList", "metadata": {}, "items": items}
            self.server.answer = lambda seen, answer=answer: (200, answer)
            found = self.kube.list(names.SECRET, "n", metadata_only=True)
            self.assertEqual(expected, found)
            self.assertIn("as=PartialObjectMetadataList", self.server.seen[-1].accept)
        self.assertRaises(errors.ManagementUnreachable, self.kube.list, names.SECRET, "n")
        self.assertEqual("application/json", self.server.seen[-1].accept)
        for wrong in ({}, [], {"items": [{}]}):
            self.server.answer = lambda seen, wrong=wrong: (200, wrong)
            with self.assertRaisesRegex(errors.ManagementUnreachable, "does not answer"):
                self.kube.list(names.SECRET, "n", metadata_only=True)

    def test_what_is_no_list_is_not_empty(self) -> None:
        item = {"metadata": {"name": "one", "namespace": "n", "labels": {"a": "1"}}}
        for body in (
            {},
            [],
            {"items": None},
            {"kind": "Status", "status": "Success"},
            {"items": [], "metadata": {"remainingItemCount": 2}},
            {"items": [{**item, "metadata": {**item["metadata"], "namespace": "other"}}]},
            {"items": [{**item, "metadata": {**item["metadata"], "labels": {"a": "2"}}}]},
            {"items": [None]},
            b"",
            b"<html></html>",
            b'{"items": [',
        ):
            with self.subTest(body=body):
                self.answer((200, body))
                self.assertRaises(
                    errors.ManagementUnreachable, self.kube.list, names.LEASE, "n", {"a": "1"}
                )
        self.answer((200, {"items": [item]}))
        self.assertEqual(1, len(self.kube.list(names.LEASE, "n", {"a": "1"})))

    def test_what_is_not_about_the_object_does_not_say_that_it_is_gone(self) -> None:
        other = {"metadata": {"name": "one", "namespace": "other"}}
        for answer in (
            (404, http_server.NO_KIND),
            (404, http_server.status("NotFound", name="another", kind="leases")),
            (404, b"<html></html>"),
            (404, {}),
            (200, {}),
            (200, other),
            (200, {"metadata": {"name": "another", "namespace": "n"}}),
            (200, b""),
        ):
            with self.subTest(answer=answer):
                self.answer(answer)
                self.assertRaises(errors.DriverError, self.kube.get, names.LEASE, "n", "one")
        self.answer((404, http_server.GONE))
        self.assertIsNone(self.kube.get(names.LEASE, "n", "one"))

    def test_what_is_not_the_object_says_of_no_write_that_it_is_done(self) -> None:
        kind, read = names.LEASE, self.lease(resourceVersion="1")
        for write in (
            lambda: self.kube.create(names.LEASE, self.lease()),
            lambda: self.kube.replace(names.LEASE, read),
            lambda: self.kube.apply(names.LEASE, read),
            lambda: self.kube.patch(kind, "n", "one", {"spec": {}}),
        ):
            for body in ({}, [], {"metadata": {"name": "another", "namespace": "n"}}, b"", b"<p>"):
                self.answer((200, body))
                self.assertRaises(errors.ManagementUnreachable, write)
            self.answer((200, read))
            self.assertEqual(read["metadata"], write()["metadata"])


class TestSecrecy(http_server.WireCase):
    """What is in a Secret comes out of no error."""

    def test_the_servers_words_about_a_secret_are_not_repeated(self) -> None:
        manifest = {"metadata": {"name": "one", "namespace": "n"}, "stringData": {"a": "s3cret"}}
        cause = {"field": "data[a]", "message": "bad value s3cret"}
        for code in (400, 422, 500):
            self.answer((code, http_server.status("Invalid", "got s3cret", causes=[cause])))
            error = self.assertRaises(errors.DriverError, self.kube.apply, names.SECRET, manifest)
            self.assertNotIn("s3cret", f"{error} {error.detail} {error!r}")
            self.assertIn("data[a]", error.detail)

    def test_the_token_is_in_no_error(self) -> None:
        self.answer((403, http_server.status("Forbidden", "no")))
        error = self.assertRaises(errors.ManagementRefused, self.kube.get, names.SECRET, "n", "one")
        self.assertNotIn("first", f"{error} {error.detail}")


class TestRequest(testtools.TestCase):
    """Requests and answers as data."""

    @given(st.text(min_size=1), st.text(min_size=1))
    def test_no_name_leads_to_another_path(self, namespace: str, name: str) -> None:
        parts = request.path(names.LEASE, "v1", namespace, name).split("/")
        self.assertEqual(8, len(parts))
        self.assertNotIn("?", "".join(parts))

    def test_paths(self) -> None:
        self.assertEqual("/api/v1/namespaces/n", request.path(names.NAMESPACE, "v1", "x", "n"))
        self.assertEqual(
            "/api/v1/namespaces/n/secrets", request.path(names.SECRET, "v1", "n", None)
        )
        self.assertEqual(
            "/apis/cluster.x-k8s.io/v1beta1/clusters",
            request.path(names.CLUSTER, "v1beta1", None, None),
        )

    @given(st.integers(min_value=400, max_value=599), st.binary(max_size=200))
    def test_every_refusal_is_an_error_of_ours(self, code: int, body: bytes) -> None:
        asked = request.Request("GET", "/x", "read", "Lease 'one'")
        error = request.refusal(asked, code, body)
        self.assertIsInstance(error, errors.DriverError)
        self.assertEqual(code in request.PASSING, isinstance(error, errors.ManagementUnreachable))
        self.assertIn(str(code), error.detail)
