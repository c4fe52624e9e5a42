# SPDX-License-Identifier: Apache-2.0
"""What an API server says that it has: all kinds in namespaces, or that this is not known."""

from __future__ import annotations

from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube.discovery import Discovery
from magnum.drivers.k8s_capi_helm.kube.http import response
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests import base


def resource(kind: str, plural: str, **changes: Any) -> dict[str, Any]:
    """As an API server describes it."""
    return {
        "resource": plural,
        "responseKind": {"group": "", "version": "v1", "kind": kind},
        "scope": "Namespaced",
        "verbs": ["create", "get", "list"],
        **changes,
    }


def discovery(*versions: dict[str, Any], group: str = "apps") -> dict[str, Any]:
    """One group, best version first."""
    metadata = {"name": group} if group else {}
    items = [{"metadata": metadata, "versions": list(versions)}]
    return {"kind": "APIGroupDiscoveryList", "items": items}


class TestNamespacedKinds(base.TestCase):
    def test_kinds_in_namespaces_that_can_be_listed(self) -> None:
        body = discovery(
            {
                "version": "v1",
                "freshness": "Current",
                "resources": [
                    resource("Pod", "pods"),
                    resource("Node", "nodes", scope="Cluster"),
                    resource("Binding", "bindings", verbs=["create"]),
                ],
            },
            group="",
        )
        self.assertEqual("", response.not_a_discovery(body))
        self.assertEqual([names.Kind("", "Pod", "pods", ("v1",))], response.namespaced_kinds(body))

    def test_each_kind_once_in_the_best_version(self) -> None:
        """One that only an older version has counts too."""
        body = discovery(
            {"version": "v2", "resources": [resource("A", "as")]},
            {"version": "v1", "resources": [resource("A", "as"), resource("B", "bs")]},
            {"version": "v1alpha1"},
        )
        self.assertEqual(
            [names.Kind("apps", "A", "as", ("v2",)), names.Kind("apps", "B", "bs", ("v1",))],
            response.namespaced_kinds(body),
        )

    def test_an_api_that_does_not_answer_is_not_an_empty_one(self) -> None:
        stale = {"version": "v1beta1", "freshness": "Stale", "resources": []}
        body = discovery(stale, group="metrics.k8s.io")
        self.assertEqual("metrics.k8s.io/v1beta1 does not answer", response.not_a_discovery(body))

    def test_what_is_cut_or_of_another_form_is_not_known(self) -> None:
        """The client has no error but the driver's for it."""

        class Wire:
            def __init__(self, body: Any) -> None:
                self.body = body

            def send(self, request: Any) -> Any:
                return self

            def json(self, request: Any) -> Any:
                return self.body

        cut = discovery({"version": "v1", "resources": [{"scope": "Namespaced"}]})
        kind = {"kind": "APIGroupDiscoveryList"}
        for body in (kind, {**kind, "items": [{}]}, {**kind, "items": ["x"]}, cut):
            with self.subTest(body=body):
                client = Discovery(Wire(body))  # type: ignore[arg-type]
                self.assertRaises(errors.ManagementUnreachable, client.namespaced_kinds)

    def test_other_answers_are_no_discovery(self) -> None:
        for body in (None, [], {}, {"kind": "APIGroupList", "groups": []}, {"kind": "Status"}):
            with self.subTest(body=body):
                self.assertIn("no aggregated discovery", response.not_a_discovery(body))
