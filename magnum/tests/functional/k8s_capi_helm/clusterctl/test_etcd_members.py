# SPDX-License-Identifier: Apache-2.0
"""A snapshot of one etcd is restored as three members, with the flags of the page about it.

The members start with kubeadm's flags of machines that joined one after the other: only a member
whose data exist already ignores that these name other clusters.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
import subprocess
import tempfile
from typing import ClassVar
import unittest

from magnum.tests.functional.k8s_capi_helm.clusterctl import program
from sandbox import processes
from sandbox.management import backup, binaries
from sandbox.state import State

NAMES = ("machine-1", "machine-2", "machine-3")
KEY, VALUE = "/registry/configmaps/default/one", "at the snapshot"
TIMEOUT = 60.0


class TestEtcdMembers(unittest.TestCase):
    state: ClassVar[State]
    place: ClassVar[Path]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        if why := program.missing(backup.ETCDCTL, backup.ETCDUTL):
            raise unittest.SkipTest(why)
        temporary = tempfile.TemporaryDirectory(prefix="members-")
        cls.addClassCleanup(temporary.cleanup)
        cls.place = Path(temporary.name)
        cls.state = cls.enterClassContext(processes.throw_away(cls.place / "state"))

    def address(self, name: str) -> str:
        return f"http://127.0.0.1:{self.state.port(name)}"

    def peers(self, *names: str) -> str:
        return ",".join(f"{name}={self.address(f'{name}-peers')}" for name in names)

    def spawn(self, name: str, *flags: str) -> None:
        """An etcd with a directory of its name."""
        clients, peers = self.address(name), self.address(f"{name}-peers")
        argv = [
            binaries.require(binaries.build(), "etcd"),
            *(f"--name={name}", f"--data-dir={self.place / name}", "--unsafe-no-fsync"),
            *(f"--listen-client-urls={clients}", f"--advertise-client-urls={clients}"),
            *(f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}"),
            *flags,
        ]
        processes.start(self.state, name, argv)

    def etcdctl(self, names: tuple[str, ...], *words: str) -> str:
        endpoints = ",".join(self.address(name) for name in names)
        command = [str(binaries.one(backup.ETCDCTL)), f"--endpoints={endpoints}", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=True)
        return done.stdout

    def healthy(self, name: str) -> bool:
        try:
            self.etcdctl((name,), "endpoint", "health", "--dial-timeout=1s", "--command-timeout=1s")
        except subprocess.CalledProcessError:
            return False
        return True

    def restore(self, snapshot: Path, name: str) -> None:
        """As on one machine: the data come into a directory that is moved into its place."""
        done = subprocess.run(
            [
                str(binaries.one(backup.ETCDUTL)),
                *("snapshot", "restore", str(snapshot), "--data-dir", str(self.place / name)),
                *("--name", name, "--initial-advertise-peer-urls", self.address(f"{name}-peers")),
                *("--initial-cluster", self.peers(*NAMES)),
                *("--initial-cluster-token", "restored-1"),
                *("--bump-revision", str(backup.BUMP), "--mark-compacted"),
            ],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        self.assertEqual(0, done.returncode, done.stderr)

    def test_three_members_out_of_one_snapshot(self) -> None:
        self.spawn("former", f"--initial-cluster={self.peers('former')}")
        processes.wait_ready(self.state, "former", lambda: self.healthy("former"), TIMEOUT)
        self.etcdctl(("former",), "put", KEY, VALUE)
        snapshot = self.place / "snapshot.db"
        self.etcdctl(("former",), "snapshot", "save", str(snapshot))
        self.etcdctl(("former",), "put", KEY, "later")

        for name in NAMES:
            self.restore(snapshot, name)
        self.spawn(NAMES[0], f"--initial-cluster={self.peers(NAMES[0])}")
        for count, name in enumerate(NAMES[1:], 2):
            joined = f"--initial-cluster={self.peers(*NAMES[:count])}"
            self.spawn(name, joined, "--initial-cluster-state=existing")
        for name in NAMES:
            ready = functools.partial(self.healthy, name)
            processes.wait_ready(self.state, name, ready, TIMEOUT)
            found = self.etcdctl((name,), "get", KEY, "--print-value-only")
            self.assertEqual(VALUE, found.strip())
        members = json.loads(self.etcdctl(NAMES[:1], "member", "list", "-w", "json"))["members"]
        self.assertEqual(set(NAMES), {member["name"] for member in members})
        after = json.loads(self.etcdctl(NAMES[:1], "get", KEY, "-w", "json"))
        self.assertGreater(after["header"]["revision"], backup.BUMP)
        processes.stop(self.state, NAMES[0])
        self.etcdctl(NAMES[1:], "put", KEY, "two of three are enough")
