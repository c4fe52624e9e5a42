# SPDX-License-Identifier: Apache-2.0
"""Recipes are read by the programs that they are for, as far as these run without a cloud.

kolla-build renders its Dockerfiles; the steps of our own one run one by one, with a virtual
environment for the image's; ansible-playbook installs Helm and a kubeconfig below a directory.
"""

from __future__ import annotations

from collections.abc import Iterator
import getpass
import grp
import gzip
import hashlib
import io
import os
from pathlib import Path
import re
import stat
import string
import subprocess
import sys
import tarfile
import unittest

from test_installation import (
    CHECKOUT,
    DISTRIBUTION,
    Target,
    wheel,
    workshop,
)

RECIPES = CHECKOUT / "recipes"
BIN = Path(sys.executable).parent
KUBECONFIG = "apiVersion: v1\nkind: Config\nusers: [{name: a, user: {token: not-to-be-shown}}]\n"


def helm_archive(path: Path) -> str:
    """An archive in the form of Helm's, whose program says its version; returns its digest."""
    program = b"#!/bin/sh\necho v3.19.0\n"
    # Without the time in its header, the same bytes each time.
    with (
        gzip.GzipFile(path, "wb", mtime=0) as file,
        tarfile.open(fileobj=file, mode="w") as archive,
    ):
        member = tarfile.TarInfo("linux-amd64/helm")
        member.size, member.mode = len(program), 0o755
        archive.addfile(member, io.BytesIO(program))
    return hashlib.sha256(path.read_bytes()).hexdigest()


class ProgramCase(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.place = workshop() / "-".join(self.id().split(".")[-2:])
        self.place.mkdir()

    def program(
        self, *command: str | Path, status: int = 0, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in the test's directory."""
        done = subprocess.run(
            [str(part) for part in command],
            capture_output=True,
            check=False,
            text=True,
            timeout=600,
            cwd=self.place,
            env={"PATH": os.environ["PATH"], "HOME": str(self.place), "LC_ALL": "C.UTF-8"}
            | variables,
        )
        self.assertEqual(status, done.returncode, done.stdout[-4000:] + done.stderr[-4000:])
        return done


def instructions(dockerfile: Path) -> Iterator[tuple[str, str]]:
    """Instructions of a Dockerfile, without comments, each on one line."""
    lines = [line for line in dockerfile.read_text().splitlines() if not line.startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, rest = line.partition(" ")
            yield name, rest


class TestImage(ProgramCase):
    """The steps of the Dockerfile, in a virtual environment that stands for the image's."""

    def build(self, digest: str, *, status: int = 0) -> tuple[Target, list[str]]:
        target = Target(f"{self.place.name}-image")
        (self.place / "bin").mkdir()
        self.wheel_directory = wheel().parent
        arguments: dict[str, str] = {}
        given = {"HELM_SHA256": digest}
        seen = []
        for name, rest in instructions(RECIPES / "image" / "Dockerfile"):
            seen.append(name)
            if name == "ARG":
                key, _, default = rest.partition("=")
                arguments[key] = given.get(key, default)
            elif name == "ADD":
                source, path = string.Template(rest).substitute(arguments).split()
                self.assertEqual("https://get.helm.sh/helm-v3.19.0-linux-amd64.tar.gz", source)
                helm_archive(self.place / Path(path).name)
            elif name == "RUN":
                is_last = "helm" in rest and "HELM" in rest
                self.step(target, rest, arguments, status if is_last else 0)
        return target, seen

    def step(self, target: Target, text: str, arguments: dict[str, str], status: int) -> None:
        moved = text.replace("/tmp/", f"{self.place}/").replace("/usr/local/bin", "bin")
        path = f"{target.root / 'bin'}:{self.place / 'bin'}:{os.environ['PATH']}"
        offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheel_directory)}
        variables = {**arguments, **offline, "PATH": path, "PYTHONWARNINGS": "ignore"}
        self.program("sh", "-c", moved, status=status, **variables)

    def test_the_image_has_driver_and_helm_and_its_packages_keep_their_versions(self) -> None:
        digest = helm_archive(self.place / "helm.tar.gz")
        target, seen = self.build(digest)
        self.assertEqual(
            ["ARG", "FROM", "USER", "ARG", "RUN", "ARG", "ARG", "ARG", "ADD", "RUN", "ARG", "USER"],
            seen,
        )
        self.assertEqual("Driver", target.answers()["driver"])
        self.assertTrue((self.place / "bin" / "helm").is_file())
        installed = {path.name.partition("-")[0] for path in target.site.glob("*.dist-info")}
        self.assertEqual({"magnum", DISTRIBUTION.replace("-", "_")}, installed)
        left = [path.name for path in self.place.iterdir() if path.is_file()]
        self.assertEqual([], left)

    def test_another_archive_of_helm_is_not_unpacked(self) -> None:
        self.build("0" * 64, status=1)
        self.assertEqual([], list((self.place / "bin").iterdir()))


class TestKolla(ProgramCase):
    def test_kolla_build_puts_the_driver_into_both_images(self) -> None:
        recipe = RECIPES / "kolla"
        self.program(
            BIN / "kolla-build",
            *("--config-file", recipe / "kolla-build.conf"),
            *("--template-override", recipe / "template-overrides.j2"),
            *("--template-only", "--work-dir", self.place, "^magnum"),
        )
        images = self.place / "docker" / "magnum"
        text = {
            name: (images / name / "Dockerfile").read_text()
            for name in ("magnum-base", "magnum-api", "magnum-conductor")
        }
        installs = re.findall(r"-m pip .*install .*", text["magnum-base"])
        self.assertEqual(1, len(installs))
        self.assertIn("/magnum", installs[0])
        self.assertRegex(installs[0], r" magnum-k8s-capi-helm==[\d.]+ ")
        for name in ("magnum-api", "magnum-conductor"):
            self.assertRegex(text[name], r"(?m)^FROM .*magnum-base:")
        self.assertIn("/usr/local/bin/helm", text["magnum-conductor"])

    def test_kolla_knows_the_source_of_helm(self) -> None:
        from kolla.common import config

        conf = config.cfg.ConfigOpts()
        file = str(RECIPES / "kolla" / "kolla-build.conf")
        config.parse(conf, ["--config-file", file], prog="kolla-build")
        source = conf["magnum-conductor-plugin-helm"]
        self.assertEqual("v3.19.0", source.version)
        self.assertEqual({"amd64", "arm64"}, set(source.sha256))


class TestOpenStackAnsible(ProgramCase):
    """The playbook runs on this host, with directories of the test for those of the system."""

    def play(self, *more: str, status: int = 0) -> str:
        inventory = self.place / "inventory.ini"
        local = f"localhost ansible_connection=local ansible_python_interpreter={sys.executable}"
        inventory.write_text(f"[magnum_all]\n{local}\n")
        (self.place / "kubeconfig").write_text(KUBECONFIG)
        for part in ("bin", "etc"):
            (self.place / part).mkdir(exist_ok=True)
        digest = helm_archive(self.place / "helm.tar.gz")
        variables = {
            "capi_helm_kubeconfig": self.place / "kubeconfig",
            "capi_helm_kubeconfig_dest": self.place / "etc" / "kubeconfig",
            "capi_helm_owner": getpass.getuser(),
            "capi_helm_group": grp.getgrgid(os.getgid()).gr_name,
            "capi_helm_bin": self.place / "bin",
            "capi_helm_helm_sha256": digest,
            "capi_helm_helm_url": f"file://{self.place}/helm.tar.gz",
            "capi_helm_archive": self.place / "downloaded.tar.gz",
        }
        extra = [f"{name}={value}" for name, value in variables.items()] + list(more)
        done = self.program(
            BIN / "ansible-playbook",
            *("-v", "-i", inventory),
            *(part for one in extra for part in ("-e", one)),
            RECIPES / "openstack-ansible" / "magnum-management-cluster.yml",
            status=status,
            ANSIBLE_LOCAL_TEMP=str(self.place),
        )
        return done.stdout + done.stderr

    def test_helm_and_the_kubeconfig_are_installed(self) -> None:
        said = self.play()
        kubeconfig = self.place / "etc" / "kubeconfig"
        self.assertEqual(KUBECONFIG, kubeconfig.read_text())
        self.assertEqual(0o600, stat.S_IMODE(kubeconfig.stat().st_mode))
        version = subprocess.run(
            [str(self.place / "bin" / "helm")], capture_output=True, check=True, timeout=60
        )
        self.assertEqual(b"v3.19.0\n", version.stdout)
        self.assertNotIn("not-to-be-shown", said)

    def test_a_second_run_changes_nothing(self) -> None:
        self.assertIn("changed=3", self.play())
        self.assertIn("changed=0", self.play())

    def test_another_archive_is_not_unpacked(self) -> None:
        said = self.play(f"capi_helm_helm_sha256={'0' * 64}", status=2)
        self.assertIn("did not match", said)
        self.assertEqual([], list((self.place / "bin").iterdir()))
        self.assertEqual([], list((self.place / "etc").iterdir()))
