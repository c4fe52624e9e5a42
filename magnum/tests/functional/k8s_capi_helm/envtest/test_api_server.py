# SPDX-License-Identifier: Apache-2.0
"""A real kube-apiserver starts with the flags and files that the chart gives a control plane.

Its own parsers decide whether the files are right: admission, audit, authorization and encryption.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
import contextlib
import http.client
import json
import os
from pathlib import Path
import socket
import ssl
import subprocess
import tempfile
import time
from typing import Any
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.control_plane import bodies, flags, kubeadm
from sandbox.management import binaries

START_TIMEOUT = 90.0
STOP_TIMEOUT = 30.0
TIMEOUT = 15.0
ON_A_MACHINE = "/etc/kubernetes"
SECRETS = "/api/v1/namespaces/default/secrets"


def free_ports(number: int) -> list[int]:
    """Ports of loopback that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Machine:
    """A control plane machine: its files, etcd and API server, in a directory.

    :ivar patience: seconds in which an API server has to be ready.
    """

    patience = START_TIMEOUT

    def __init__(self, place: Path) -> None:
        self.place = place
        self.programs = binaries.build()
        self.keys = {f"key{n}": base64.b64encode(os.urandom(32)).decode() for n in (1, 2)}
        self.etcd, peers, self.port = free_ports(3)
        self.token = os.urandom(16).hex()
        (place / "tokens.csv").write_text(f"{self.token},admin,admin,system:masters\n")
        subprocess.run(
            ["openssl", "genrsa", "-out", place / "sa.key", "2048"], check=True, capture_output=True
        )
        client, peer = f"http://127.0.0.1:{self.etcd}", f"http://127.0.0.1:{peers}"
        self.stack = contextlib.ExitStack()
        self.run(
            "etcd",
            f"--data-dir={place / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            stack=self.stack,
        )

    def run(
        self, name: str, *arguments: str, stack: contextlib.ExitStack
    ) -> subprocess.Popen[bytes]:
        """Start a program, which the stack ends."""
        log = stack.enter_context((self.place / f"{name}.log").open("wb"))
        argv = [binaries.require(self.programs, name), *arguments]
        found = subprocess.Popen(argv, stdout=log, stderr=log)
        stack.callback(self.stop, found)
        return found

    @staticmethod
    def stop(program: subprocess.Popen[bytes]) -> None:
        """End a program."""
        program.terminate()
        try:
            program.wait(STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait(STOP_TIMEOUT)

    def here(self, text: str) -> str:
        """A text that names paths of a machine, for this directory."""
        return text.replace(ON_A_MACHINE, f"{self.place}{ON_A_MACHINE}")

    def write(self, spec: Any, files: Mapping[str, str]) -> None:
        """Do what cloud-init does with the files and the commands for the encryption."""
        for one in spec["files"]:
            path = Path(f"{self.place}{one['path']}")
            path.parent.mkdir(parents=True, exist_ok=True)
            text = files.get(one["path"])
            path.write_text(self.keys[path.name] if text is None else self.here(text))
            path.chmod(int(one["permissions"], 8))
        for command in spec["preKubeadmCommands"]:
            if "encryption" in command:
                subprocess.run(self.here(command).split(), check=True)

    @contextlib.contextmanager
    def server(self, change: Mapping[str, Any]) -> Any:
        """The API server of the values, up and ready.

        :raises AssertionError: it does not start; the text ends with its log.
        """
        values = rendering.scenarios(rendering.CLUSTER)["oidc-and-audit"].values
        objects = rendering.render(rendering.CLUSTER, rendering.changed(values, change))
        spec = kubeadm(objects)
        self.write(spec, bodies(objects))
        given = {
            **flags(spec["clusterConfiguration"]["apiServer"]),
            "audit-log-path": str(self.place / "audit.log"),
            "etcd-servers": f"http://127.0.0.1:{self.etcd}",
            "bind-address": "127.0.0.1",
            "secure-port": str(self.port),
            "cert-dir": str(self.place / "pki"),
            "token-auth-file": str(self.place / "tokens.csv"),
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": str(self.place / "sa.key"),
            "service-account-signing-key-file": str(self.place / "sa.key"),
            "service-cluster-ip-range": "10.0.0.0/24",
            "endpoint-reconciler-type": "none",
        }
        arguments = [f"--{name}={self.here(value)}" for name, value in given.items()]
        with contextlib.ExitStack() as stack:
            program = self.run("kube-apiserver", *arguments, stack=stack)
            self.wait(program)
            yield

    def wait(self, program: subprocess.Popen[bytes]) -> None:
        """Until the API server is ready."""
        deadline = time.monotonic() + self.patience
        while time.monotonic() < deadline and program.poll() is None:
            with contextlib.suppress(OSError):
                if self.ask("/readyz") == b"ok":
                    return
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(0.5)
        log = (self.place / "kube-apiserver.log").read_text()
        raise AssertionError(f"kube-apiserver does not start: {log[-2000:]}")

    def ask(self, path: str, body: Any = None) -> bytes:
        """Answer of the API server to the administrator."""
        # The API server made this certificate itself.
        context = ssl.create_default_context(cafile=self.place / "pki" / "apiserver.crt")
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=TIMEOUT, context=context
        )
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        with contextlib.closing(connection):
            method = "GET" if body is None else "POST"
            connection.request(method, path, body and json.dumps(body), headers)
            return connection.getresponse().read()

    def make_secret(self, name: str) -> None:
        """Make a Secret that says its name."""
        self.ask(SECRETS, {"metadata": {"name": name}, "stringData": {"says": f"it-is-{name}"}})

    def says(self, name: str) -> str:
        """What a Secret says."""
        found = json.loads(self.ask(f"{SECRETS}/{name}"))
        return base64.b64decode(found["data"]["says"]).decode()

    def stored(self) -> bytes:
        """All that etcd has written."""
        return b"".join(path.read_bytes() for path in (self.place / "etcd").rglob("*.wal"))


class ApiServerTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        place = self.enterContext(tempfile.TemporaryDirectory())
        self.machine = Machine(Path(place))
        self.addCleanup(self.machine.stack.close)

    def test_keys_rotate_and_nothing_is_lost_on_the_way(self) -> None:
        """Admission, audit and the issuer of the scenario are there all the time."""
        machine, made = self.machine, list[str]()
        for name, encryption, prefix in (
            ("plain", {"enabled": False}, b""),
            ("first-step", {"enabled": True, "writePlain": True}, b""),
            ("encrypted", {"enabled": True}, b"k8s:enc:secretbox:v1:key1:"),
            ("both", {"enabled": True, "keys": ["key1", "key2"]}, b"k8s:enc:secretbox:v1:key1:"),
            ("turned", {"enabled": True, "keys": ["key2", "key1"]}, b"k8s:enc:secretbox:v1:key2:"),
            (
                "other-provider",
                {
                    "enabled": True,
                    "provider": "aescbc",
                    "keys": ["key1"],
                    "otherProviders": {"secretbox": ["key2", "key1"]},
                },
                b"k8s:enc:aescbc:v1:key1:",
            ),
        ):
            with self.subTest(step=name), machine.server({"etcd.encryption": encryption}):
                machine.make_secret(name)
                made.append(name)
                self.assertEqual([f"it-is-{one}" for one in made], list(map(machine.says, made)))
                self.assertEqual(not prefix, f"it-is-{name}".encode() in machine.stored())
                self.assertIn(prefix, machine.stored())
        log = (machine.place / "audit.log").read_text()
        self.assertIn('"level":"Metadata"', log)

    def test_the_authorization_webhook(self) -> None:
        webhook = rendering.scenarios(rendering.CLUSTER)["azimuth-webhook"].values
        keys = ("authWebhook", "azimuthAuthorizationWebhook")
        with self.machine.server({key: webhook[key] for key in keys}):
            self.machine.make_secret("made-by-an-administrator")

    def test_keystone(self) -> None:
        with self.machine.server({"authWebhook": "k8s-keystone-auth"}):
            self.machine.make_secret("made-by-an-administrator")

    def test_a_wrong_file_is_seen(self) -> None:
        """Or else the tests above would prove nothing."""
        policy = {"rules": [{"level": "Metadata", "omitStages": ["Nonsense"]}]}
        with (
            self.assertRaisesRegex(AssertionError, "Nonsense"),
            self.machine.server({"apiServer.audit.policy": policy}),
        ):
            pass
