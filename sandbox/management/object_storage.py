# SPDX-License-Identifier: Apache-2.0
"""rclone, and a server of S3 to which it copies, with which snapshots of etcd are tested.

No sandbox runs them: they are built when a test needs them, and kept as other programs are.
"""

from pathlib import Path
import socket

from sandbox import processes
from sandbox.management import binaries
from sandbox.management.binaries import Program
from sandbox.management.pki import Pki
from sandbox.state import State

VERSION = "1.76.0"
#: Its own commands and backends, of which sandbox/go/rclone picks a few.
RCLONE = Program(
    "rclone",
    "rclone",
    "./rclone",
    VERSION,
    ("version",),
    f"-X github.com/rclone/rclone/fs.Version=v{VERSION}",
)
#: It prints no version where it is built from its module, so none is looked for.
VERSITYGW = Program("versitygw", "versitygw", "github.com/versity/versitygw/cmd/versitygw", "1.8.0")
ACCESS_KEY, SECRET_KEY, REGION = "tenant", "secret-of-the-tenant", "us-east-1"


def url(state: State) -> str:
    """Address of the server; its certificate is of the sandbox's own authority."""
    return f"https://127.0.0.1:{state.port('s3')}"


def start(state: State) -> Path:
    """Start the server with one user; returns the directory whose directories are its buckets.

    :raises SandboxError: it cannot be built, or does not come up in time.
    """
    pki = Pki(state)
    pki.ensure()
    buckets, metadata = state.path("s3", "buckets"), state.path("s3", "metadata")
    for directory in (buckets, metadata):
        directory.mkdir(exist_ok=True)
    argv = [
        str(binaries.one(VERSITYGW)),
        *(f"--port=127.0.0.1:{state.port('s3')}", f"--region={REGION}", "--quiet"),
        *(f"--access={ACCESS_KEY}", f"--secret={SECRET_KEY}"),
        *(f"--cert={pki.certificate}", f"--key={pki.key}"),
        # Not every file system has the extended attributes that it would use otherwise.
        *("posix", f"--sidecar={metadata}", str(buckets)),
    ]
    processes.start(state, "s3", argv, ready=lambda: _listens(state.port("s3")))
    return buckets


def _listens(port: int) -> bool:
    with socket.socket() as connection:
        connection.settimeout(1.0)
        return connection.connect_ex(("127.0.0.1", port)) == 0
