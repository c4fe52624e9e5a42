# SPDX-License-Identifier: Apache-2.0
"""What the API server refuses of an addon, by the patterns in the CRDs."""

import importlib
from pathlib import Path
from typing import Any
import unittest

import yaml

import sandbox.addons
from sandbox.tests.addons.builders import addon

jsonschema: Any = importlib.import_module("jsonschema")  # it has no types
CRDS = Path(sandbox.addons.__file__).parent / "crds"


def schema(plural: str) -> Any:
    crd = yaml.safe_load((CRDS / f"{plural}.yaml").read_text())
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def problems(plural: str, spec: dict[str, Any]) -> list[Any]:
    return list(jsonschema.Draft7Validator(schema(plural)).iter_errors({"spec": spec}))


def chart(**different: str) -> dict[str, str]:
    return {"repo": "https://example.org", "name": "ccm", "version": "1.2.3"} | different


class TestHelmRelease(unittest.TestCase):
    refused = {
        "a registry instead of a repository": addon(chart=chart(repo="oci://example.org/charts")),
        "a chart name with a slash": addon(chart=chart(name="charts/ccm")),
        "a chart name in capitals": addon(chart=chart(name="CCM")),
        "a range of versions": addon(chart=chart(version=">=1.0.0")),
        "a version of two numbers": addon(chart=chart(version="1.2")),
        "a release name with a dot": addon(releaseName="a.b"),
        "a namespace with a dot": addon(targetNamespace="kube.system"),
        "no cluster": addon(clusterName=""),
        "a source name with a dot": addon(valuesSources=[{"secret": {"name": "a.b"}}]),
        "a source that is two": addon(
            valuesSources=[{"template": "a: 1", "secret": {"name": "a"}}]
        ),
        "an unknown action of a hook": addon(
            lifecycleHooks={
                "preUpgrade": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "action": "kill"}]
            }
        ),
    }
    accepted = {
        "a pre-release": addon(chart=chart(version="v1.2.3-rc.1+build.5")),
        "plain http": addon(chart=chart(repo="http://127.0.0.1:8080")),
        "no release name": addon(releaseName=None),
        "all sources": addon(
            valuesSources=[
                {"template": "a: 1"},
                {"secret": {"name": "a", "key": "b"}},
                {"configMap": {"name": "c"}},
            ]
        ),
    }

    def test_refused(self) -> None:
        for what, document in self.refused.items():
            with self.subTest(what):
                self.assertNotEqual([], self.problems(document))

    def test_accepted(self) -> None:
        for what, document in self.accepted.items():
            with self.subTest(what):
                self.assertEqual([], self.problems(document))

    def problems(self, document: dict[str, Any]) -> list[Any]:
        spec = {key: value for key, value in document["spec"].items() if value is not None}
        return problems("helmreleases", spec)


class TestBothKinds(unittest.TestCase):
    def test_status_is_a_subresource_and_phases_are_those_of_the_rules(self) -> None:
        from sandbox.addons.rules import KINDS, Phase

        for plural in KINDS.values():
            with self.subTest(plural):
                crd = yaml.safe_load((CRDS / f"{plural}.yaml").read_text())
                (version,) = crd["spec"]["versions"]
                self.assertIn("status", version["subresources"])
                status = schema(plural)["properties"]["status"]["properties"]
                self.assertEqual([str(phase) for phase in Phase], status["phase"]["enum"])

    def test_manifests_need_no_chart(self) -> None:
        spec = addon("Manifests", manifestSources=[{"template": "kind: A"}])["spec"]
        self.assertEqual([], problems("manifests", spec))
