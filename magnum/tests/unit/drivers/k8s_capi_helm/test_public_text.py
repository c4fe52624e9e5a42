# SPDX-License-Identifier: Apache-2.0
"""What tenants read of others' words: the cause whole, and nothing of addresses, ids and libraries.

The bodies and wrappers are those of real services and libraries, with any cause at any address.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import re

import hypothesis
from hypothesis import strategies as st
from openstack import exceptions as sdk_exceptions
import testtools

from magnum.drivers.k8s_capi_helm import errors, model, status
from magnum.drivers.k8s_capi_helm.cloud.access import services
from magnum.drivers.k8s_capi_helm.helm import failures
from magnum.drivers.k8s_capi_helm.status.texts import complete_messages
from magnum.drivers.k8s_capi_helm.status.texts.public_text import (
    LONGEST,
    public,
    public_text,
    WITHHELD,
)
from magnum.tests.unit.drivers.k8s_capi_helm import builders, recordings_player
from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import ROOT, sources

#: What Nova, Neutron, Cinder, Octavia, Glance, Keystone and kubelets say to users.
CAUSES = (
    "Quota exceeded for cores: Requested 8, but already used 16 of 20 cores",
    "Quota exceeded for resources: ['port'].",
    "No valid host was found. There are not enough hosts available.",
    "Policy doesn't allow os_compute_api:servers:create to be performed.",
    "Invalid key_name provided.",
    "IP address 203.0.113.9 already allocated in subnet 10.6.0.0/24",
    "Image my.ubuntu-22.04 (kube v1.34.4) could not be found.",
    "Flavor m1.small/large's disk is too small for requested image.",
    "Load Balancer 5d0f2b1e-7a2c-4c6e-9c55-0a52f4f1b7aa is immutable and cannot be updated.",
    "Expected 'ACTIVE', got 'ERROR' (2 of 3)",
    "node node.kubernetes.io/not-ready, pod kube-system/coredns-7d: CrashLoopBackOff",
    'Failed to pull image "registry.example.org:5000/team/app:1.2"',
    "Netzwerk überlastet: 高负载",
)
IDS = ("req-5e1b2c3d-1111-2222-3333-444455556666", "REQ-5E1B2C3D-1111-2222-3333-444455556666")
ADDRESSES = (
    "http://nova.cloud-a.example:8774/compute/v2.1/servers",
    "https://10.11.12.13:9696/v2.0/ports?tenant=1,2",
    "HTTPS://KEYSTONE.CLOUD-A.EXAMPLE:5000/v3/auth/tokens",
    "https://[fd00:11::13]:9876/load-balancer/v2/lbaas/loadbalancers",
    "http://admin:sesame@octavia.cloud-a.example/x",
    "https%3A%2F%2Fcinder.cloud-a.example%3A8776%2Fv3",
    "https%253A%252F%252Fcinder.cloud-a.example",
    "https:\\/\\/glance.cloud-a.example\\/v2\\/images",
    "//nova.cloud-a.example/v2.1",
    "10.11.12.13:8774",
    "10.11.12.13:8774/v2.1/servers",
    "[fd00:11::13]:8774",
    "nova.cloud-a.example:8774",
    "nova.cloud-a.example:8774/v2.1/servers",
    "nova-api.openstack.svc.cluster.local",
    "localhost:8774",
    "unix:///var/run/cloud-a.sock",
    "/var/run/cloud-a.sock",
)
#: What may be in no text that leaves; the tenants' own in CAUSES has none of these.
LEAKS = re.compile(
    r"cloud-a|10\.11\.12\.13|fd00:11|openstack\.svc|localhost|sesame|://|(?:^|\s)//|%2f%2f|:\\/|"
    r"(?:^|\s)/\w|req-5e|/v2|/v3|:8774|:9696|traceback|\.py\b|gophercloud|openstacksdk|keystoneauth|"
    r"urllib3|client error for url|exception\b|connectionpool|max retries|caused by|errno|"
    r"dial tcp|dial unix|->|lookup |client\.timeout|rpc error|<html|</|<h1|<!doctype|xmlns|nginx|"
    r"upgrade failed|reconciler? error|expected http response|when accessing|goroutine|"
    r"0x[0-9a-f]{4}",
    re.IGNORECASE,
)


def gophercloud(url: str, cause: str, _: str) -> str:
    body = json.dumps({"forbidden": {"code": 403, "message": cause}})
    told = f"Expected HTTP response code [201 202] when accessing [POST {url}], but got 403 instead"
    return f"error creating Openstack instance: {told}: {body}"


def gophercloud_nested(url: str, cause: str, _: str) -> str:
    inner = {"NeutronError": {"type": "OverQuota", "message": cause, "detail": ""}}
    return f"Conflict with: [POST {url}], error message: {json.dumps({'error': inner})}"


def gophercloud_plain(url: str, cause: str, request: str) -> str:
    return f"Resource not found: [GET {url}], error message: {cause} (Request-ID: {request})"


def openstacksdk(url: str, cause: str, request: str) -> str:
    return f"HttpException: 403: Client Error for url: {url}, {cause} request_id={request}"


def openstacksdk_dotted(url: str, cause: str, _: str) -> str:
    return f"openstack.exceptions.ForbiddenException: 403: Client Error for url: {url}, {cause}"


def requests(url: str, cause: str, _: str) -> str:
    return f"403 Client Error: Forbidden for url: {url} {cause}"


def keystoneauth(url: str, cause: str, request: str) -> str:
    return f"{cause} (HTTP 401) (Request-ID: {request}) at {url}"


def urllib3(url: str, cause: str, _: str) -> str:
    pool = "HTTPSConnectionPool(host='nova.cloud-a.example', port=8774): Max retries exceeded with "
    made = "<urllib3.connection.HTTPSConnection object at 0x7f2b3c4d5e>: Failed to connect"
    return f"{cause}: {pool}url: /v2.1 (Caused by NewConnectionError('{made}: [Errno 111] {url}'))"


def traceback(url: str, cause: str, _: str) -> str:
    frames = '  File "/opt/nova/manager.py", line 3, in spawn\n    self.driver.spawn()\n'
    return f"{url}\nTraceback (most recent call last):\n{frames}nova.exception.QuotaError: {cause}"


def html(url: str, cause: str, _: str) -> str:
    head = "<html><head><title>403 Forbidden</title><style>h1 {color: red}</style></head>"
    return f"{url}: {head}<body><h1>403 Forbidden</h1>{cause}<br/><hr>nginx/1.18.0</body></html>"


def html_title(url: str, cause: str, _: str) -> str:
    head = f"<!DOCTYPE html><HTML><HEAD><TITLE>{cause}</TITLE></HEAD>"
    return f"{head}<!-- {url} --><BODY></BODY></HTML>"


def xml(url: str, cause: str, _: str) -> str:
    inner = f"<message>{cause}</message></forbidden>"
    return f"<?xml version='1.0'?><forbidden xmlns='{url}' code='403'>{inner}"


def go_get(url: str, cause: str, _: str) -> str:
    return f'{cause}: Get "{url}": dial tcp 10.11.12.13:8774: connect: connection refused'


def go_quoted(url: str, cause: str, _: str) -> str:
    why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    return f'{cause}: Post \\"{url}\\": {why}'


def go_lookup(url: str, cause: str, _: str) -> str:
    asked = "dial tcp: lookup nova.cloud-a.example on 10.11.12.13:53: no such host"
    return f"reconcile error: {cause}: {asked} {url}"


def go_read(url: str, cause: str, _: str) -> str:
    ends = "10.11.12.13:6443->10.11.12.13:40112"
    return f"{cause}: read tcp {ends}: read: connection reset by peer {url}"


def go_unix(url: str, cause: str, _: str) -> str:
    return f"{cause} dial unix /var/run/cloud-a.sock: connect: no such file or directory {url}"


def grpc(url: str, cause: str, _: str) -> str:
    return f"rpc error: code = Unavailable desc = {cause} {url}"


def helm(url: str, cause: str, _: str) -> str:
    return f"Error: UPGRADE FAILED: {cause}: unreachable {url}"


def plain(url: str, cause: str, request: str) -> str:
    return f"{cause} {url} {request}"


WRAPPERS = (
    gophercloud,
    gophercloud_nested,
    gophercloud_plain,
    openstacksdk,
    openstacksdk_dotted,
    requests,
    keystoneauth,
    urllib3,
    traceback,
    html,
    html_title,
    xml,
    go_get,
    go_quoted,
    go_lookup,
    go_read,
    go_unix,
    grpc,
    helm,
    plain,
)
wrapped = st.builds(
    lambda wrap, url, cause, request: (wrap(url, cause, request), cause),
    st.sampled_from(WRAPPERS),
    st.sampled_from(ADDRESSES),
    st.sampled_from(CAUSES),
    st.sampled_from(IDS),
)


#: The functions through which a message may go, and those that only look at one.
THROUGH = frozenset({"public", "first_sentence", "cause_of", "search"})
LOOKED_AT = {
    "causes/root_cause.py:_fault_of_machine": "words by which a cause is found: told by none",
    "health.py:_of_machine": "its first line, told through the function in the next one",
}


def _goes_through(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether a message is an argument of one of the functions, or part of a question."""
    while node in parents and not isinstance(node, ast.stmt):
        above = parents[node]
        called = ast.unparse(above.func) if isinstance(above, ast.Call) else ""
        if called.rpartition(".")[2] in THROUGH and node is not getattr(above, "func", None):
            return True
        if isinstance(above, ast.Compare):
            return True
        if isinstance(above, (ast.If, ast.IfExp)) and node is above.test:
            return True
        if isinstance(above, ast.BoolOp) and isinstance(above.op, ast.And):
            return True
        node = above
    return False


def _function(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    while node in parents and not isinstance(node, ast.FunctionDef):
        node = parents[node]
    return node.name if isinstance(node, ast.FunctionDef) else ""


class TestWords(testtools.TestCase):
    @hypothesis.settings(max_examples=400)
    @hypothesis.given(wrapped)
    def test_nothing_of_the_cloud_gets_out_and_nothing_of_the_cause_is_lost(self, case) -> None:
        text, cause = case
        told = public(text)
        self.assertIsNone(LEAKS.search(told), told)
        self.assertIn(cause.strip(" ."), told)
        self.assertEqual(told, public(told))
        self.assertEqual(told, public_text(told))

    @hypothesis.settings(max_examples=300)
    @hypothesis.given(wrapped, st.sampled_from(WRAPPERS), st.sampled_from(ADDRESSES))
    def test_wrapped_twice(self, case, wrap, url: str) -> None:
        """A library passes on what another one has said."""
        told = public(wrap(url, case[0], IDS[0]))
        self.assertIsNone(LEAKS.search(told), told)
        self.assertEqual(told, public(told))

    @hypothesis.settings(max_examples=300)
    @hypothesis.given(wrapped, st.integers(1, 400))
    def test_cut_in_the_middle(self, case, length: int) -> None:
        """Kubernetes and Cluster API cut long messages; half an address is one all the same."""
        told = public(case[0][:length])
        for word in (
            "://",
            "10.11.12.13:",
            "sesame",
            "req-5e1b2c3d",
            ".sock",
            "HTTPConnectionPool",
        ):
            self.assertNotIn(word, told)
        self.assertEqual(told, public(told))

    def test_every_wrapper_with_every_address(self) -> None:
        cause = CAUSES[0]
        for wrap in WRAPPERS:
            for url in ADDRESSES:
                told = public(wrap(url, cause, IDS[0]))
                self.assertIsNone(LEAKS.search(told), (wrap.__name__, url, told))
                self.assertIn(cause, told, (wrap.__name__, url))

    def test_what_a_tenant_needs_stays_as_it_is(self) -> None:
        for text in (
            *CAUSES,
            'Back-off pulling image "registry.example.org/team/app"',
            "image registry.example.org:5000/team/app@sha256:0a1b2c is missing",
            "waiting for 203.0.113.9, floating IP of 10.6.0.12",
            "kubeletVersion v1.30.0, v1.34.4 required",
            "label '' is invalid: expected a/b or (none)",
            "* EtcdPodHealthy: Pod kube-system/etcd-x is not ready",
            "id for these ports is: 0a1b2c3d-1111-2222-3333-444455556666.",
        ):
            self.assertEqual(text, public(text))

    def test_service_and_status_stay(self) -> None:
        asked = "Expected HTTP response code [200] when accessing [GET {}], but got 503 instead"
        for url, service in (
            ("http://10.0.0.1/compute/v2.1/servers", "Nova answered "),
            ("https://[fd00::1]:9696/v2.0/ports", "Neutron answered "),
            ("https://api.example/load-balancer/v2", "Octavia answered "),
            ("https://api.example/x", ""),
        ):
            self.assertEqual(f"{service}HTTP 503", public(asked.format(url)))

    def test_no_preposition_is_left_of_an_address(self) -> None:
        page = "<html><body><h1>403 Forbidden</h1>nginx at http://10.1.2.3:8774/v2.1</body></html>"
        self.assertEqual("403 Forbidden", public(page))

    @hypothesis.given(st.text(), st.sampled_from(ADDRESSES), st.text())
    def test_any_text_around_an_address(self, before: str, url: str, behind: str) -> None:
        told = public(f"{before} {url} {behind}")
        self.assertNotIn("cloud-a.example", told.lower())
        self.assertNotIn("10.11.12.13:", told)
        self.assertEqual(told, public(told))

    @hypothesis.given(st.text(alphabet="htp:/%2Fx.a1 []<>\"'()\\@-,req", max_size=120))
    def test_what_was_made_for_it_is_as_it_is_the_second_time(self, text: str) -> None:
        told = public_text(text)
        self.assertNotIn("://", told)
        self.assertEqual(told, public_text(told))

    def test_a_text_of_addresses_alone_says_where_its_words_are(self) -> None:
        self.assertEqual(WITHHELD, public("https://nova.cloud-a.example/v2.1"))
        self.assertEqual("", public(""))
        self.assertLessEqual(len(public("a" * 10 * LONGEST)), LONGEST)


class TestPaths(testtools.TestCase):
    """Every way by which words of others come to a tenant."""

    URL = ADDRESSES[0]
    TOLD = (
        f"Expected HTTP response code [201] when accessing [POST {URL}], but got 403 instead: "
        "<html><body><h1>403 Forbidden</h1></body></html>"
    )

    def check(self, *texts: str | None) -> None:
        for text in texts:
            self.assertIsNone(LEAKS.search(text or ""), text)

    def judged(self, look: model.Observed, word: str = "UPDATE_IN_PROGRESS") -> model.Verdict:
        verdict = status.evaluate(look, builders.state(word), builders.NOW)
        self.check(verdict.reason, *verdict.health_reason.values())
        self.check(*(one.reason for one in verdict.groups))
        return verdict

    def test_conditions_of_every_object(self) -> None:
        told = 0
        whole = builders.observed()
        things = [
            whole.cluster,
            whole.infrastructure,
            whole.control_plane,
            whole.machines[0],
            whole.machines[-1],
            whole.servers[-1],
        ]
        for number, thing in enumerate(things):
            kinds = [one["type"] for one in (thing["status"].get("conditions") or [])]
            for kind in kinds:
                for word in ("UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "UPDATE_COMPLETE"):
                    look = builders.observed()
                    same = [
                        look.cluster,
                        look.infrastructure,
                        look.control_plane,
                        look.machines[0],
                        look.machines[-1],
                        look.servers[-1],
                    ][number]
                    builders.say(same, kind, "False", f"InstanceDeleteFailed: {self.TOLD}")
                    verdict = self.judged(look, word)
                    texts = (verdict.reason or "", *verdict.health_reason.values())
                    told += any("answered HTTP 403" in one for one in texts)
        self.assertGreater(told, 10)

    def test_faults_of_nova_and_of_the_openstack_cluster(self) -> None:
        look = builders.observed()
        look.infrastructure["status"]["failureMessage"] = self.TOLD
        look.infrastructure["status"]["ready"] = False
        self.judged(look)
        look = builders.observed()
        server = look.servers[-1]
        builders.say(server, "InstanceReady", "False", "")
        server["status"]["instanceState"] = "ERROR"
        server["status"]["instanceID"] = "s1"
        verdict = self.judged(dataclasses.replace(look, server_faults={"s1": self.TOLD}))
        self.assertIn("Nova answered HTTP 403", verdict.reason or "")

    def test_services_of_openstack(self) -> None:
        for error in (
            sdk_exceptions.ForbiddenException(
                "403: Client Error", http_status=403, details=self.TOLD
            ),
            sdk_exceptions.HttpException(
                f"403: Client Error for url: {self.URL}, no", http_status=403
            ),
            sdk_exceptions.SDKException(f"no endpoint at {self.URL}"),
        ):
            try:
                with services.translate_errors("Nova", "flavors"):
                    raise error
            except errors.DriverError as found:
                self.check(str(found))
                self.assertTrue(str(found).startswith("Nova refused a request (flavors). "), found)
                self.assertIn("nova.cloud-a.example", found.detail)
            else:
                self.fail("nothing was raised")

    def test_the_whole_is_for_the_operator(self) -> None:
        look = builders.observed()
        builders.say(look.servers[-1], "InstanceReady", "False", self.TOLD)
        builders.say(look.machines[0], "Ready", "False", "as everybody may read")
        verdict = self.judged(look)
        self.assertEqual(
            (self.TOLD,), complete_messages.withheld_messages(look, (verdict.reason or "",))
        )
        self.assertEqual((), complete_messages.withheld_messages(look, ("", "something else")))

    def test_what_the_operator_gets_is_bounded(self) -> None:
        """A tenant's cluster has a log of its own to fill."""
        look = builders.observed({"default-worker": 30})
        for number, one in enumerate(look.machines):
            builders.say(one, "Ready", "False", f"{self.TOLD} {number} " + "x" * 1_000_000)
        texts = [f"{public(self.TOLD)} {number} " for number in range(40)]
        found = complete_messages.withheld_messages(look, texts)
        self.assertLess(0, len(found))
        self.assertLess(sum(map(len, found)), 100_000)

    def test_helm(self) -> None:
        for words in (
            f'Error: UPGRADE FAILED: admission webhook "a.b" denied the request: {self.TOLD}',
            f"Error: UPGRADE FAILED: execution error at (c/templates/x.yaml:1:2): see {self.URL}",
            f'Error: INSTALLATION FAILED: Machine "m" is invalid: spec: {self.URL} is taken',
        ):
            self.check(str(failures.error_of(words, words)))

    def test_no_condition_gets_by(self) -> None:
        """In the judge a message is told through one function, or only looked at."""
        broken = []
        for source in sources(ROOT / "status"):
            parents = {
                child: node
                for node in ast.walk(source.tree)
                for child in ast.iter_child_nodes(node)
            }
            for node in ast.walk(source.tree):
                if isinstance(node, ast.Attribute) and node.attr == "message":
                    place = f"{source.name}:{_function(node, parents)}"
                    if not _goes_through(node, parents) and place not in LOOKED_AT:
                        broken.append(place)
        self.assertEqual([], broken)

    def test_messages_of_the_recordings_lose_nothing_that_they_say(self) -> None:
        seen = 0
        for path in recordings_player.own():
            for line in recordings_player.lines(path):
                listed = (line.get("object") or {}).get("status", {}).get("conditions") or ()
                for one in listed:
                    message = one.get("message") or ""
                    told = public(message)
                    leak = LEAKS.search(told.replace("openstack:///", ""))
                    self.assertIsNone(leak, (message, told))
                    if "http" not in message.lower() and "{" not in message:
                        self.assertEqual(" ".join(message.split()), told)
                    seen += bool(message)
        self.assertGreater(seen, 100)
