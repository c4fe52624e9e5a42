# SPDX-License-Identifier: Apache-2.0
"""devstack's plugin does its work in each phase, however often a phase is repeated.

devstack itself is played by a few functions with its names; pip, Helm's archive with its digest,
``install`` and the check of the installation are real.
"""

from __future__ import annotations

import configparser
import getpass
import hashlib
import io
from pathlib import Path
import stat
import subprocess
import sys
import tarfile
import unittest

from test_installation import (
    CHECKOUT,
    Target,
    tracked,
    workshop,
)

PLUGIN = CHECKOUT / "devstack"
SHELLCHECK = Path(sys.executable).with_name("shellcheck")
#: devstack's functions and variables, as the plugin uses them; sudo is not needed here.
DEVSTACK = """
set -o errexit
declare -A GITDIR=([magnum-k8s-capi-helm]={source})
DEST={place}
STACK_USER={user}
MAGNUM_CONF_DIR={place}/etc
MAGNUM_CONF={place}/etc/magnum.conf
MAGNUM_CAPI_HELM_KUBECONFIG={place}/admin.conf
MAGNUM_CAPI_HELM_BIN_DIR={place}/bin
MAGNUM_CAPI_HELM_HELM_URL=file://{place}/helm.tar.gz
MAGNUM_CAPI_HELM_HELM_SHA256={digest}
define_plugin() {{ test "$1" = magnum-k8s-capi-helm; }}
plugin_requires() {{ test "$1 $2" = "magnum-k8s-capi-helm magnum"; }}
is_service_enabled() {{ true; }}
echo_summary() {{ echo "$@"; }}
die() {{ shift; echo "$@" >&2; exit 1; }}
sudo() {{ "$@"; }}
get_extra_file() {{ echo "${{1#file://}}"; }}
get_python_exec_prefix() {{ echo {bin}; }}
pip_() {{ {python} -m pip -q --python {bin}/python "$@"; }}
setup_develop() {{ pip_ install --no-index --no-deps --no-build-isolation -e "$1"; }}
pip_uninstall() {{ pip_ uninstall -y "$1"; }}
iniset() {{ {python} -c '
import configparser, sys
path, group, name, value = sys.argv[1:]
conf = configparser.ConfigParser(interpolation=None)
conf.read(path)
conf.has_section(group) or conf.add_section(group)
conf.set(group, name, value)
with open(path, "w") as file:
    conf.write(file)
' "$@"; }}
PATH={place}/bin:$PATH
source {plugin}/settings
"""
KUBECONFIG = """\
current-context: a
clusters: [{name: a, cluster: {server: "https://127.0.0.1:6443"}}]
contexts: [{name: a, context: {cluster: a, user: b}}]
users: [{name: b, user: {token: t}}]
"""


class TestShellcheck(unittest.TestCase):
    def test_it_has_nothing_to_say(self) -> None:
        files = [str(PLUGIN / name) for name in ("plugin.sh", "settings")]
        done = subprocess.run(
            [str(SHELLCHECK), *files], capture_output=True, check=False, text=True, timeout=60
        )
        self.assertEqual((0, ""), (done.returncode, done.stdout))


class TestPlugin(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        name = self.id().rpartition(".")[2]
        self.place = workshop() / name
        for part in ("etc", "bin"):
            (self.place / part).mkdir(parents=True)
        (self.place / "admin.conf").write_text(KUBECONFIG)
        self.digest = self.archive()
        self.target: Target | None = None

    def archive(self) -> str:
        """An archive in the form of Helm's; its digest."""
        program = b"#!/bin/sh\necho v3.19.0\n"
        path = self.place / "helm.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            member = tarfile.TarInfo("linux-amd64/helm")
            member.size, member.mode = len(program), 0o755
            archive.addfile(member, io.BytesIO(program))
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def plugin(self, *modes: str, more: str = "") -> subprocess.CompletedProcess[str]:
        """Run phases as stack.sh does, in one shell."""
        target = self.target
        script = DEVSTACK.format(
            place=self.place,
            source=self.place / "source",
            user=getpass.getuser(),
            digest=self.digest,
            plugin=PLUGIN,
            python=sys.executable,
            bin=(target.root if target else self.place) / "bin",
        )
        lines = [script, more, *(f"source {PLUGIN}/plugin.sh {mode}" for mode in modes)]
        return subprocess.run(
            ["bash", "-c", "\n".join(lines)],
            capture_output=True,
            check=False,
            text=True,
            timeout=300,
            cwd=self.place,
        )

    def test_a_run_a_second_run_and_the_end(self) -> None:
        self.target = Target("devstack-target")
        tracked(self.place / "source")
        phases = ("pre-install", "install", "post-config", "extra", "test-config")
        stack = [f"stack {phase}" for phase in phases]
        for number in ("first", "second"):
            with self.subTest(number):
                done = self.plugin(*stack)
                self.assertEqual(0, done.returncode, done.stdout + done.stderr)
                self.assertNotRegex(done.stdout, "Warning|Failure")
                self.assertEqual(9, done.stdout.count("Result: Success"), done.stdout)
        kubeconfig = self.place / "etc" / "kubeconfig"
        self.assertEqual(0o600, stat.S_IMODE(kubeconfig.stat().st_mode))
        self.assertEqual(KUBECONFIG, kubeconfig.read_text())
        self.assertTrue((self.place / "bin" / "helm").is_file())
        conf = configparser.ConfigParser(interpolation=None)
        conf.read(self.place / "etc" / "magnum.conf")
        self.assertEqual({"kubeconfig_file": str(kubeconfig)}, dict(conf["capi_helm"]))
        self.assertEqual({"capi_helm", "cluster_template"}, set(conf.sections()))
        self.assertNotIn("token", done.stdout + done.stderr)
        for _ in range(2):
            done = self.plugin("unstack", "clean")
            self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertFalse(kubeconfig.exists())
        self.assertEqual([], list(self.target.site.glob("magnum_k8s_capi_helm-*")))

    def test_nothing_is_done_without_magnum(self) -> None:
        done = self.plugin(
            "stack pre-install", more="is_service_enabled() { false; }\nrm admin.conf"
        )
        self.assertEqual((0, "", ""), (done.returncode, done.stdout, done.stderr))

    def test_a_missing_kubeconfig_is_named_before_anything_is_installed(self) -> None:
        (self.place / "admin.conf").unlink()
        done = self.plugin("stack pre-install", "stack install")
        self.assertEqual(1, done.returncode)
        self.assertIn(f"MAGNUM_CAPI_HELM_KUBECONFIG is {self.place}/admin.conf", done.stderr)
        self.assertIn("Set it in local.conf", done.stderr)

    def test_another_archive_is_not_unpacked(self) -> None:
        self.digest = "0" * 64
        done = self.plugin("stack install", more="setup_develop() { true; }")
        self.assertEqual(1, done.returncode)
        self.assertIn(f"does not have the SHA-256 {self.digest}", done.stderr)
        self.assertEqual([], list((self.place / "bin").iterdir()))

    def test_a_failure_of_the_check_ends_the_run(self) -> None:
        check = self.place / "bin" / "magnum-k8s-capi-helm-status"
        for status, expected in ((0, 0), (1, 0), (2, 1), (255, 1)):
            with self.subTest(status):
                check.write_text(f"#!/bin/sh\nexit {status}\n")
                check.chmod(0o755)
                self.assertEqual(expected, self.plugin("stack extra").returncode)
