# SPDX-License-Identifier: Apache-2.0
"""``charts bundle`` with the real Helm and a real registry: what is listed can be copied, whole."""

from __future__ import annotations

import base64
import functools
import hashlib
import http.server
import json
import os
from pathlib import Path
import tempfile
import threading
from typing import Any
import uuid

import bcrypt
import fixtures
import yaml

from magnum.drivers.k8s_capi_helm.commands.registry.client import RegistryClient
from magnum.drivers.k8s_capi_helm.commands.registry.image_reference import (
    parse_reference,
)
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import BUNDLED
from magnum.tests.functional.k8s_capi_helm.charts import registry_program, rendering
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CommandCase,
    CRITICAL,
    UNKNOWN,
    WARNING,
)

_USER, _PASSWORD = "mirror", "the-password-of-the-mirror"


#: An object whose operator knows more than its manifest.
_INSTALLATION = {
    "apiVersion": "operator.tigera.io/v1",
    "kind": "Installation",
    "metadata": {"name": "default"},
}


class _Files(http.server.SimpleHTTPRequestHandler):
    """The files of a chart repository."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""


class TestBundle(CommandCase):
    """A cloud whose addons are small charts, with images in a registry of the test."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        # Each test has another home, where these would be looked for in vain.
        rendering.helm()
        registry_program.program()

    def setUp(self) -> None:
        super().setUp()
        self.directory = Path(self.useFixture(fixtures.TempDir()).path)
        binaries = self.directory / "bin"
        binaries.mkdir()
        (binaries / "helm").symlink_to(rendering.helm())
        path = f"{binaries}{os.pathsep}{os.environ['PATH']}"
        self.useFixture(fixtures.EnvironmentVariable("PATH", path))
        self.host = self.enter(registry_program.running(self.directory / "source"))
        self.client = RegistryClient(plain_hosts=(self.host,))
        self.work = self.directory / "work"
        self.work.mkdir()
        self.cloud.images = {"ubuntu-kube": (_uuid("ubuntu-kube"), builders.VERSION)}
        self.cloud.external = _uuid("public")
        self.digests: dict[str, str] = {}
        #: Further objects by chart.
        self.further: dict[str, list[dict[str, Any]]] = {"tigera-operator": [_INSTALLATION]}
        self.overlay: dict[str, Any] = {"addons": {"etcdDefrag": {"enabled": False}}}
        self.serve_addons()
        self.kubeadm = self.directory / "kubeadm.txt"
        text = f"{self.host}/kube-apiserver:v{builders.VERSION}"
        self.push(text)
        self.kubeadm.write_text(f"{text}\n", encoding="utf-8")
        self._template(
            uuid="31111111-2222-4333-8444-555555555555",
            name="k8s",
            driver=names.DRIVER,
            public=True,
        )

    def enter(self, manager: Any) -> Any:
        entered = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return entered

    def push(self, text: str) -> None:
        """An image in the registry of the test."""
        reference = parse_reference(text)
        self.digests[text] = registry_program.push(self.client, reference, self.work, text)

    def serve_addons(self) -> None:
        """A repository with a chart for each addon, which the operator's overlay names."""
        charts = self.directory / "charts"
        charts.mkdir()
        handler = functools.partial(_Files, directory=str(charts))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        values = yaml.safe_load((BUNDLED / "cluster-addons/values.yaml").read_text())
        for path, chart in _charts(values):
            self.package(charts, chart)
            place = self.overlay["addons"]
            for step in path:
                place = place.setdefault(step, {})
            place["chart"] = {"repo": f"http://127.0.0.1:{server.server_port}"}
        rendering.run("repo", "index", charts)
        overlays = self.directory / "overlays"
        overlays.mkdir()
        (overlays / "site.yaml").write_text(yaml.safe_dump(self.overlay), encoding="utf-8")
        self.config(group="capi_helm", overlay_directory=str(overlays))

    def package(self, charts: Path, chart: dict[str, str]) -> None:
        """A chart of one Deployment, whose image has the name and the version of the chart."""
        image = f"{self.host}/addons/{chart['name']}:{chart['version']}"
        container = {"name": "one", "image": image}
        if image not in self.digests:
            self.push(image)
        with tempfile.TemporaryDirectory() as work:
            directory = Path(work, chart["name"])
            (directory / "templates").mkdir(parents=True)
            metadata = {"apiVersion": "v2", "name": chart["name"], "version": chart["version"]}
            (directory / "Chart.yaml").write_text(yaml.safe_dump(metadata), encoding="utf-8")
            deployment = {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": chart["name"]},
                "spec": {"template": {"spec": {"containers": [container]}}},
            }
            text = yaml.safe_dump_all([deployment, *self.further.get(chart["name"], ())])
            (directory / "templates" / "one.yaml").write_text(text, encoding="utf-8")
            rendering.run("package", directory, "--destination", charts)

    @property
    def options(self) -> tuple[str, ...]:
        return ("--kubeadm-images", str(self.kubeadm), "--plain-http", self.host)

    def bundle(self, *argv: str, status: int = WARNING) -> list[dict[str, Any]]:
        printed = self.command("charts", "bundle", "-f", "json", "k8s", *self.options, *argv)
        self.assertEqual(status, printed.status, printed.out + printed.error)
        return printed.rows()

    def images(self, rows: list[dict[str, Any]]) -> dict[str, str]:
        """Digests by name of the images."""
        return {row["Name"]: row["Digest"] for row in rows if row["Kind"] == "image"}

    def test_what_is_listed_has_digests(self) -> None:
        rows = self.bundle()
        charts = [row["Name"].split()[0] for row in rows if row["Kind"] == "chart"]
        self.assertEqual("openstack-cluster", charts[0])
        self.assertTrue({"tigera-operator", "openstack-cinder-csi"} <= set(charts), charts)
        images = self.images(rows)
        self.assertEqual({name: self.digests[name] for name in images}, images)
        self.assertIn(f"{self.host}/kube-apiserver:v{builders.VERSION}", images)
        # Each addon of a chart has one image.
        self.assertEqual(len(charts) - 1, len(images) - 1, rows)
        self.assertEqual(rows, self.bundle())
        [note] = [row["Finding"] for row in rows if row["Kind"] == "note"]
        self.assertIn("its operator chooses images that no manifest names", note)

    def test_a_directory(self) -> None:
        output = self.directory / "output"
        text = f"{self.host}/more:1"
        reference = parse_reference(text)
        digests = registry_program.push_index(self.client, reference, self.work, "amd64", "arm64")
        rows = self.bundle("--output", str(output), "--image", text)
        self.assertEqual(digests[""], self.images(rows)[text])
        listed = json.loads((output / "bundle.json").read_text())
        self.assertEqual(builders.VERSION, listed["kubernetesVersion"])
        for chart in listed["charts"]:
            content = (output / "charts" / chart["file"]).read_bytes()
            self.assertEqual(f"sha256:{hashlib.sha256(content).hexdigest()}", chart["digest"])
        found = {one["name"]: one["digest"] for one in listed["images"]}
        self.assertEqual(self.images(rows), found)
        self.check_layout(output / "images", found)
        blobs = self.blobs(output)
        self.assertTrue({digests["amd64"], digests["arm64"]} <= set(blobs), blobs)
        self.bundle("--output", str(output), "--image", text)
        self.assertEqual(blobs, self.blobs(output))

    def blobs(self, output: Path) -> dict[str, int]:
        """The content of a directory by digest, with the number of the file."""
        files = (output / "images" / "blobs" / "sha256").iterdir()
        return {f"sha256:{file.name}": file.stat().st_ino for file in files}

    def check_layout(self, layout: Path, images: dict[str, str]) -> None:
        """The directory is one that container tools read, and each file is what its name says."""
        version = json.loads((layout / "oci-layout").read_text())
        self.assertEqual({"imageLayoutVersion": "1.0.0"}, version)
        manifests = json.loads((layout / "index.json").read_text())["manifests"]
        name = "org.opencontainers.image.ref.name"
        self.assertEqual(images, {one["annotations"][name]: one["digest"] for one in manifests})
        for file in (layout / "blobs" / "sha256").iterdir():
            self.assertEqual(file.name, hashlib.sha256(file.read_bytes()).hexdigest())

    def test_one_platform(self) -> None:
        text = f"{self.host}/more:1"
        reference = parse_reference(text)
        digests = registry_program.push_index(self.client, reference, self.work, "amd64", "arm64")
        rows = self.bundle("--image", text, "--platform", "linux/arm64")
        self.assertEqual(digests["arm64"], self.images(rows)[text])
        rows = self.bundle("--image", text, "--platform", "linux/s390x", status=CRITICAL)
        [row] = [row for row in rows if row["Name"] == text]
        self.assertIn("is not for this platform", row["Finding"])

    def test_a_mirror(self) -> None:
        with registry_program.running(self.directory / "mirror") as mirror:
            target = f"{mirror}/kept"
            rows = self.bundle("--to", target, "--plain-http", mirror)
            client = RegistryClient(plain_hosts=(mirror,))
            for name, digest in self.images(rows).items():
                host, _, rest = name.partition("/")
                copied = parse_reference(f"{target}/{host.replace(':', '-')}/{rest}")
                self.assertEqual(digest, client.manifest(copied).digest)
            place = self.directory / "pulled"
            title = next(row["Name"] for row in rows if row["Kind"] == "chart")
            name, version = title.split()
            reference = f"oci://{target}/charts/{name}"
            where = ("--version", version, "--plain-http", "--destination", place)
            place.mkdir()
            rendering.run("pull", reference, *where)
            [package] = place.iterdir()
            digest = f"sha256:{hashlib.sha256(package.read_bytes()).hexdigest()}"
            self.assertEqual(digest, rows[0]["Digest"])

    def test_a_mirror_with_a_login(self) -> None:
        hashed = bcrypt.hashpw(_PASSWORD.encode(), bcrypt.gensalt(4)).decode()
        authfile = self.directory / "auth.json"
        with registry_program.running(self.directory / "mirror", f"{_USER}:{hashed}\n") as mirror:
            options = ("--to", mirror, "--plain-http", mirror, "--authfile", str(authfile))
            for password, status in (("another one", UNKNOWN), (_PASSWORD, WARNING)):
                login = base64.b64encode(f"{_USER}:{password}".encode()).decode()
                authfile.write_text(json.dumps({"auths": {mirror: {"auth": login}}}))
                arguments = ("charts", "bundle", "k8s", *self.options, *options)
                printed = self.command(*arguments)
                self.assertEqual(status, printed.status, printed.out + printed.error)
                self.assertNotIn(password, printed.out + printed.error)
            client = RegistryClient({mirror: (_USER, _PASSWORD)}, (mirror,))
            name = f"{mirror}/{self.host.replace(':', '-')}/kube-apiserver:v{builders.VERSION}"
            self.assertTrue(client.manifest(parse_reference(name)).digest)

    def test_an_image_that_the_registry_lacks(self) -> None:
        text = f"{self.host}/nothing:1"
        output = self.directory / "output"
        rows = self.bundle("--image", text, "--output", str(output), status=CRITICAL)
        [row] = [row for row in rows if row["Name"] == text]
        self.assertEqual("", row["Digest"])
        self.assertIn("HTTP 404", row["Finding"])
        listed = json.loads((output / "bundle.json").read_text())["images"]
        self.assertIn(None, [one["digest"] for one in listed])

    def test_refused_calls(self) -> None:
        for options, words in (
            (("--kubernetes", "1.34"), "--kubernetes takes a full version"),
            (("--kubernetes", "1.35.1"), "has no kube-apiserver of v1.35.1"),
            (("--image", "Not an image"), "This is not the name of an image"),
            (("--authfile", str(self.directory)), "logins of registries cannot be read"),
            (("--to", "nowhere/at-all"), "--to takes a registry with its domain or port"),
            (("--to", "registry.example.org/UPPER"), "This is not the name of an image"),
        ):
            with self.subTest(words):
                printed = self.command("charts", "bundle", "k8s", *self.options, *options)
                self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))
                self.assertIn(words, printed.error)


def _uuid(name: str) -> str:
    """An id as OpenStack has it."""
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))


def _charts(values: Any, path: tuple[str, ...] = ()) -> Any:
    """Each chart in the values of addons, with where it stands."""
    for key, value in values.items() if isinstance(values, dict) else ():
        if key == "chart" and isinstance(value, dict) and value.get("name"):
            yield path, value
        else:
            yield from _charts(value, (*path, key))
