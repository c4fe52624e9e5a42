# SPDX-License-Identifier: Apache-2.0
"""Debian packages are unpacked and never installed; what is missing is said."""

import os
from pathlib import Path
from unittest import mock

from sandbox import debian
from sandbox.state import SandboxError
from sandbox.tests.test_state import StateCase

SIMULATION = """\
Reading package lists...
The following NEW packages will be installed:
  erlang-base socat
Inst erlang-base (1:25.2.3+dfsg-1+deb12u4 Debian:12.15/oldstable [amd64])
Inst socat (1.7.4.4-2 Debian:12.15/oldstable [amd64])
Conf erlang-base (1:25.2.3+dfsg-1+deb12u4 Debian:12.15/oldstable [amd64])
"""

APT = """#!/bin/sh
case "$*" in
  *" -s install "*) echo "Inst one (1 Debian:12)" ;;
  *" download one") mkdir -p one && touch one.deb ;;
  *" update") {update} ;;
  *) exit 9 ;;
esac
"""
DPKG = """#!/bin/sh
mkdir -p "$3/usr/bin" && touch "$3/usr/bin/$(basename "$2" .deb)"
"""


class TestDebian(StateCase):
    def setUp(self) -> None:
        super().setUp()
        self.tools = self.place / "tools"
        self.tools.mkdir()
        path = f"{self.tools}:/usr/bin:/bin"
        cache = str(self.place / "cache")
        patch = mock.patch.dict(os.environ, PATH=path, K8S_CAPI_HELM_CACHE=cache)
        patch.start()
        self.addCleanup(patch.stop)

    def tool(self, name: str, text: str) -> None:
        (self.tools / name).write_text(text)
        (self.tools / name).chmod(0o700)

    def test_what_is_to_be_installed_is_read(self) -> None:
        self.assertEqual(["erlang-base", "socat"], debian.needed(SIMULATION))

    def test_what_is_installed_is_taken(self) -> None:
        self.assertEqual(Path("/"), debian.tree("dash", "bin/sh"))

    def test_libraries_are_found(self) -> None:
        for name in ("lib/systemd", "lib/riscv64-linux-gnu", "usr/lib/riscv64-linux-gnu"):
            (self.place / "tree" / name).mkdir(parents=True)
        found = debian.libraries(self.place / "tree")
        self.assertEqual(
            ["lib/riscv64-linux-gnu", "usr/lib/riscv64-linux-gnu"],
            [str(path.relative_to(self.place / "tree")) for path in found],
        )
        self.assertEqual([], debian.libraries(Path("/")))

    def test_packages_are_unpacked_once(self) -> None:
        self.tool("apt-get", APT.format(update="exit 0"))
        self.tool("dpkg-deb", DPKG)
        place = debian.tree("one", "usr/bin/one")
        self.assertTrue((place / "usr/bin/one").exists())
        self.assertEqual([place], [path for path in place.parent.iterdir() if path.is_dir()])
        self.tool("apt-get", APT.format(update="exit 7"))
        self.assertEqual(place, debian.tree("one", "usr/bin/one"))

    def test_apts_own_words_are_shown(self) -> None:
        self.tool("apt-get", APT.format(update="echo no network; exit 100"))
        self.tool("dpkg-deb", DPKG)
        with self.assertRaisesRegex(
            SandboxError, "(?s)apt-get exited with 100: no network.*apt so"
        ):
            debian.tree("one", "usr/bin/one")

    def test_elsewhere_than_on_debian_it_is_said(self) -> None:
        with (
            mock.patch.dict(os.environ, PATH=str(self.tools)),
            self.assertRaisesRegex(SandboxError, "one is not installed here, and without apt-get"),
        ):
            debian.tree("one", "usr/bin/one")
