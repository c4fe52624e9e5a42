# SPDX-License-Identifier: Apache-2.0
"""Back up and restore the management cluster's etcd, as its operator does, with etcd's own tools.

https://etcd.io/docs/v3.6/op-guide/recovery/ and
https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/
"""

from pathlib import Path
import shutil
import subprocess

from sandbox import processes, progress
from sandbox.management import binaries, controllers, server
from sandbox.management.binaries import Program
from sandbox.management.pki import Pki
from sandbox.state import SandboxError, State

VERSION = "3.6.6"
ETCDCTL = Program(
    "etcdctl", "etcdtools", "go.etcd.io/etcd/etcdctl/v3", VERSION, ("version",), also="etcdctl"
)
ETCDUTL = Program("etcdutl", "etcdtools", "go.etcd.io/etcd/etcdutl/v3", VERSION, ("version",))
TIMEOUT = 120.0
#: What was read before a restore must never look newer than what is written after it.
BUMP = 1_000_000_000
#: What has to read everything anew, and ends before the API server does.
_CLIENTS = (
    *controllers.NAMES,
    "kube-controller-manager",
    controllers.MACHINES,
    controllers.ADDONS,
    controllers.ELECTIONS,
)


def save(state: State) -> Path:
    """``etcdctl snapshot save``; returns the file.

    :raises SandboxError: it fails.
    """
    pki = Pki(state)
    path = state.path("management", "backup.db")
    path.unlink(missing_ok=True)
    _run(
        ETCDCTL,
        f"--endpoints=https://127.0.0.1:{state.port('etcd')}",
        f"--cacert={pki.authority}",
        f"--cert={pki.certificate}",
        f"--key={pki.key}",
        *("snapshot", "save", str(path)),
    )
    return path


def restore(state: State, path: Path) -> None:
    """``etcdutl snapshot restore`` in place of the data of etcd, and start the API server again.

    Controllers are ended before it, and stay so: an operator looks first.

    :raises SandboxError: it fails, or the API server does not come up in time.
    """
    peers = f"http://127.0.0.1:{state.port('etcd-peers')}"
    data = state.path("management", "etcd")
    for name in (*_CLIENTS, "kube-apiserver", "etcd"):
        processes.stop(state, name)
    shutil.rmtree(data)
    _run(
        ETCDUTL,
        *("snapshot", "restore", str(path)),
        f"--data-dir={data}",
        f"--initial-cluster=default={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--bump-revision={BUMP}",
        "--mark-compacted",
    )
    with progress.step("etcd and kube-apiserver from the backup (real)"):
        server.start(state, binaries.build(state))


def start_controllers(state: State) -> None:
    """Start all controllers after a restore.

    :raises SandboxError: one does not come up in time.
    """
    place = binaries.build(state)
    server.start_controller_manager(state, place)
    controllers.start_managers(state, place)
    controllers.start_players(state, place)


def _run(program: Program, *arguments: str) -> None:
    command = [str(binaries.one(program)), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr).splitlines()[-10:]
        raise SandboxError("\n".join([f"{program.name} failed:", *said]))
