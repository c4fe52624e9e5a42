# SPDX-License-Identifier: Apache-2.0
"""Made-up advisories against made-up versions: which are vulnerable, and what is said of them."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
from pathlib import Path
import sys
import tempfile
from typing import Any
import unittest
import zipfile

TOOL = Path(__file__).resolve().parents[5] / "tools" / "audit.py"
spec = importlib.util.spec_from_file_location("audit", TOOL)
assert spec is not None and spec.loader is not None
audit = importlib.util.module_from_spec(spec)
sys.modules["audit"] = audit
spec.loader.exec_module(audit)


def advisory(
    name: str = "demo",
    events: list[dict[str, str]] | None = None,
    ecosystem: str = "PyPI",
    kind: str = "ECOSYSTEM",
    **more: Any,
) -> dict[str, Any]:
    part: dict[str, Any] = {"package": {"name": name, "ecosystem": ecosystem}}
    if events is not None:
        part["ranges"] = [{"type": kind, "events": events}]
    part.update(more.pop("part", {}))
    return {"id": "TEST-1", "affected": [part], **more}


def hits(one: dict[str, Any], *versions: str, ecosystem: str = "pypi", name: str = "demo") -> Any:
    packages = [audit.Package(ecosystem, name, version, "here") for version in versions]
    found, _, unclear = audit.compare(packages, [("file", one)])
    assert not unclear, unclear
    return {hit.package.version for hit in found}


class TestRanges(unittest.TestCase):
    """Events of a range, as OSV's page evaluates them."""

    def test_from_introduced_to_fixed(self) -> None:
        one = advisory(events=[{"introduced": "1.2"}, {"fixed": "2.0"}])
        versions = ("1.1", "1.2", "1.10", "2.0rc1", "2.0", "3")
        self.assertEqual({"1.2", "1.10", "2.0rc1"}, hits(one, *versions))

    def test_from_the_beginning(self) -> None:
        one = advisory(events=[{"introduced": "0"}, {"fixed": "1.0"}])
        self.assertEqual({"0.0.0.dev1", "0.9"}, hits(one, "0.0.0.dev1", "0.9", "1.0"))

    def test_never_fixed(self) -> None:
        self.assertEqual({"1", "99"}, hits(advisory(events=[{"introduced": "0"}]), "1", "99"))

    def test_the_last_that_is_affected_is(self) -> None:
        one = advisory(events=[{"introduced": "1"}, {"last_affected": "1.5"}])
        self.assertEqual({"1.0", "1.5"}, hits(one, "0.9", "1.0", "1.5", "1.5.1"))

    def test_several_in_any_order(self) -> None:
        events = [{"fixed": "2.3"}, {"introduced": "2.0"}, {"fixed": "1.4"}, {"introduced": "0"}]
        self.assertEqual(
            {"1.3", "2.0", "2.2"}, hits(advisory(events=events), "1.3", "1.4", "2.0", "2.2", "2.3")
        )

    def test_an_end_and_a_beginning_at_one_version(self) -> None:
        events = [{"introduced": "0"}, {"introduced": "2"}, {"fixed": "2"}, {"fixed": "3"}]
        self.assertEqual({"1", "2"}, hits(advisory(events=events), "1", "2", "3"))

    def test_listed_versions(self) -> None:
        one = advisory(part={"versions": ["1.0", "not a version", "2.0.0"]})
        self.assertEqual({"1.0", "1.0.0", "2.0"}, hits(one, "1.0", "1.0.0", "2.0", "2.1"))

    def test_commits_say_nothing_about_versions(self) -> None:
        self.assertEqual(set(), hits(advisory(events=[{"introduced": "0"}], kind="GIT"), "1"))

    def test_what_was_withdrawn_counts_no_more(self) -> None:
        one = advisory(events=[{"introduced": "0"}], withdrawn="2026-01-01T00:00:00Z")
        self.assertEqual(set(), hits(one, "1"))

    def test_names_are_compared_as_the_index_does(self) -> None:
        one = advisory("Demo_Thing", events=[{"introduced": "0"}])
        self.assertEqual({"1"}, hits(one, "1", name="demo.thing"))
        self.assertEqual(set(), hits(one, "1", name="demo"))
        self.assertEqual(set(), hits(one, "v1.0.0", name="Demo_Thing", ecosystem="go"))

    def test_versions_that_cannot_be_compared_are_said(self) -> None:
        package = audit.Package("go", "demo", "latest", "here")
        one = advisory(events=[{"introduced": "0"}, {"fixed": "1.0.0"}], ecosystem="Go")
        self.assertEqual(
            ([], 1, ["demo latest with file"]), audit.compare([package], [("file", one)])
        )


class TestGo(unittest.TestCase):
    """Semantic versions, with a v in go.mod and without one in advisories."""

    def test_precedence(self) -> None:
        # The example of semver.org, clause 11.
        versions = "1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 "
        versions += "1.0.0-beta.11 1.0.0-rc.1 1.0.0 1.0.1-0 1.0.1 1.2.0 1.10.0 2.0.0"
        listed = versions.split()
        self.assertEqual(listed, sorted([*listed[6:], *listed[:6]], key=audit.semver))
        self.assertEqual(audit.semver("v1.2.3+incompatible"), audit.semver("1.2.3"))
        with self.assertRaises(ValueError):
            audit.semver("main")

    def test_commits_between_releases_come_before_the_next(self) -> None:
        events = [{"introduced": "0"}, {"fixed": "0.31.0"}]
        one = advisory("golang.org/x/net", events=events, ecosystem="Go", kind="SEMVER")
        pseudo = "v0.31.0-0.20250101000000-abcdefabcdef"
        self.assertEqual(
            {pseudo, "v0.9.0"},
            hits(one, pseudo, "v0.9.0", "v0.31.0", ecosystem="go", name="golang.org/x/net"),
        )

    def test_modules_of_a_file(self) -> None:
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "go.mod"
            path.write_text(
                "module demo\n\ngo 1.26.0\n\nrequire one.example/a v1.0.0\n\n"
                "require (\n\ttwo.example/b/v2 v2.1.0 // indirect\n\tthree.example/c v0.1.0\n"
                "\tfour.example/d v0.2.0\n)\n\n"
                "replace three.example/c => five.example/c v0.9.0\n"
                "replace four.example/d v0.2.0 => ./local\n"
            )
            found = [(one.name, one.version) for one in audit.go_modules(path, "go.mod")]
        expected = [("one.example/a", "v1.0.0"), ("two.example/b/v2", "v2.1.0")]
        self.assertEqual([*expected, ("five.example/c", "v0.9.0")], found)


class TestSources(unittest.TestCase):
    """What this repository names is found."""

    def test_this_repository(self) -> None:
        packages = audit.everything(audit.ROOT)
        named = {(one.ecosystem, one.name) for one in packages}
        for one in (
            ("pypi", "magnum"),
            ("go", "helm.sh/helm/v3"),
            ("go", "sigs.k8s.io/cluster-api"),
            ("helm", "tigera-operator"),
            ("oci", "registry.k8s.io/etcd"),
        ):
            self.assertIn(one, named)
        self.assertIn("installed", {one.source for one in packages})
        for one in packages:
            if one.ecosystem in ("pypi", "go"):
                audit.order_of(one.ecosystem)(one.version)

    def test_floors_of_the_wheel(self) -> None:
        found = {one.name: one.version for one in audit.floors(audit.ROOT / "pyproject.toml")}
        self.assertEqual("20.0.0", found["magnum"])
        self.assertIn("cryptography", found)


class TestCommand(unittest.TestCase):
    """What is printed, and the exit status."""

    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)
        for name in ("sandbox/go", "charts/one"):
            (self.root / name).mkdir(parents=True)
        (self.root / "sandbox/constraints.txt").write_text("# pins\ndemo==1.0\nother==2.0 ; x\n")
        (self.root / "charts/one/values.yaml").write_text("image: {repository: r/a, tag: v1.2.3}\n")
        project = '[project]\nname = "x"\ndependencies = ["lib>=0.5,<2"]\n'
        (self.root / "pyproject.toml").write_text(project)
        self.data = self.root / "data"
        self.data.mkdir()

    def run_it(self, *arguments: str) -> tuple[int, str]:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = audit.main(list(arguments), self.root)
        return status, said.getvalue()

    def write(self, name: str, one: Any) -> None:
        (self.data / name).write_text(json.dumps(one))

    def test_without_a_file_it_says_what_to_do(self) -> None:
        for arguments in ((), (str(self.root / "absent"),), (str(self.data),)):
            status, said = self.run_it(*arguments)
            self.assertEqual(2, status)
            self.assertIn("make audit ADVISORIES=", said)

    def test_what_cannot_be_read_is_no_clean_bill(self) -> None:
        for name, text in (("one.json", "{"), ("one.yaml", "a: ["), ("one.zip", "no")):
            (self.data / name).write_text(text)
            status, said = self.run_it(str(self.data))
            self.assertEqual(2, status)
            self.assertIn(name, said)
            (self.data / name).unlink()

    def test_a_hit_is_named(self) -> None:
        events = [{"introduced": "0"}, {"fixed": "1.1"}]
        self.write("one.json", advisory(events=events, aliases=["CVE-2026-1", "GHSA-x"]))
        status, said = self.run_it(str(self.data))
        line = "demo 1.0 (sandbox/constraints.txt): TEST-1 (CVE-2026-1, GHSA-x), fixed in 1.1"
        self.assertEqual((1, True), (status, line in said), said)
        self.assertIn("1 advisories, 1 known vulnerabilities", said)

    def test_archive_and_yaml(self) -> None:
        text = "id: PYSEC-1\naffected:\n- package: {ecosystem: PyPI, name: other}\n"
        text += "  versions: ['2.0']\n"
        with zipfile.ZipFile(self.data / "all.zip", "w") as archive:
            archive.writestr("vulns/other/PYSEC-1.yaml", text)
        status, said = self.run_it(str(self.data / "all.zip"))
        self.assertEqual(1, status)
        self.assertIn("PYSEC-1, no fixed version is named", said)

    def test_images(self) -> None:
        events = [{"introduced": "0"}, {"fixed": "1.3.0"}]
        self.write("one.json", advisory("r/a", events=events, ecosystem="OCI", kind="SEMVER"))
        status, said = self.run_it(str(self.data))
        self.assertEqual((1, True), (status, "r/a v1.2.3 (charts/one/values.yaml)" in said))

    def test_no_hit(self) -> None:
        self.write("one.json", advisory(events=[{"introduced": "0"}, {"fixed": "1.0"}]))
        status, said = self.run_it(str(self.data))
        self.assertEqual(0, status, said)
        self.assertIn("1 advisories, 0 known vulnerabilities", said)

    def test_what_the_wheel_allows_is_told_and_no_failure(self) -> None:
        events = [{"introduced": "0"}, {"fixed": "0.6"}]
        self.write("one.json", advisory("lib", events=events))
        status, said = self.run_it(str(self.data))
        self.assertEqual(0, status, said)
        self.assertIn("Note: lib 0.5 (oldest that the wheel allows): TEST-1, fixed in 0.6", said)
