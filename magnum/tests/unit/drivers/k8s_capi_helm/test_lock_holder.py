# SPDX-License-Identifier: Apache-2.0
"""Whether the holder of a lock has ended: asked of the kernel, about real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import testtools

from magnum.drivers.k8s_capi_helm.lease import holder
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.suites import release_lease

#: A process that says what it is called as a holder, and waits until it is killed.
_HOLDER = """
import sys
from magnum.drivers.k8s_capi_helm.lease import holder
print(holder.holder_identity(), flush=True)
sys.stdin.read()
"""


class HolderCase(testtools.TestCase):
    """Starts processes that hold locks."""

    def start(self) -> tuple[subprocess.Popen[str], str]:
        """A process that is alive, and what it is called as a holder."""
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _HOLDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(self.stop, process)
        assert process.stdout is not None
        return process, process.stdout.readline().strip()

    @staticmethod
    def stop(process: subprocess.Popen[str]) -> None:
        process.kill()
        process.communicate()

    @staticmethod
    def changed(identity: str, field: int, text: str) -> str:
        """The identity with another text in one field of the process."""
        host, process, random = identity.split("/")
        fields = process.split("-")
        fields[field] = text
        return f"{host}/{'-'.join(fields)}/{random}"


class TestProcesses(HolderCase):
    """What the kernel says of processes."""

    def test_this_process_has_not_ended(self) -> None:
        identity = holder.holder_identity()
        self.assertIn(f"/{os.getpid()}-", identity)
        self.assertFalse(holder.has_ended(identity))
        self.assertFalse(holder.has_ended(f"{identity}/1a2b3c4d"))

    def test_no_two_identities_are_the_same(self) -> None:
        self.assertNotEqual(holder.holder_identity(), holder.holder_identity())

    def test_a_process_that_is_killed(self) -> None:
        process, identity = self.start()
        self.assertFalse(holder.has_ended(identity))
        self.stop(process)
        self.assertTrue(holder.has_ended(identity))
        self.assertTrue(holder.has_ended(f"{identity}/1a2b3c4d"))

    def test_a_process_that_is_frozen_has_not_ended(self) -> None:
        process, identity = self.start()
        process.send_signal(signal.SIGSTOP)
        self.assertFalse(holder.has_ended(identity))

    def test_a_later_process_of_the_same_number_is_another_one(self) -> None:
        self.assertTrue(holder.has_ended(self.changed(holder.holder_identity(), 1, "1")))

    def test_a_process_of_another_container_or_boot_is_not_known(self) -> None:
        process, identity = self.start()
        self.stop(process)
        for field, text in ((2, "1"), (3, 32 * "0")):
            self.assertFalse(holder.has_ended(self.changed(identity, field, text)), text)

    def test_what_is_no_identity_is_not_known(self) -> None:
        for text in (
            "",
            "dead/1",
            "host/1/2",
            f"host/{os.getpid()}/1a2b3c4d/5e6f7a8b",
            f"host/{10**30}-1-1-{32 * '0'}/1a2b3c4d",
            "host/1-2-3/4",
            "/-/",
        ):
            self.assertFalse(holder.has_ended(text), text)


class TestLock(release_lease.OperationsSuite, HolderCase):
    """A lock whose holder has died on this host is taken at once."""

    def setUp(self) -> None:
        super().setUp()
        self.kube = FakeKube()

    def held_by(self, identity: str) -> str:
        """A namespace where a process holds the lock of the release."""
        _, namespace = self.opened()
        lease = self.kube.get(names.LEASE, namespace, names.lease(release_lease.RELEASE))
        lease["spec"] = {
            "holderIdentity": f"{identity}/1a2b3c4d",
            "leaseDurationSeconds": release_lease.DURATION,
            "renewTime": "2040-01-01T00:00:00.000000Z",
        }
        self.kube.replace(names.LEASE, lease)
        return namespace

    def test_a_dead_one_is_not_waited_for(self) -> None:
        process, identity = self.start()
        namespace = self.held_by(identity)
        next_one = self.conductor("two")
        self.assertBusy(next_one, namespace, wait=0)
        self.stop(process)
        with next_one.acquire(namespace, release_lease.RELEASE, wait=0) as lock:
            self.assertFalse(lock.is_lost())
            self.assertTrue(lock.record.holder.startswith("two/"))

    def test_one_of_another_host_is(self) -> None:
        process, identity = self.start()
        self.stop(process)
        namespace = self.held_by(self.changed(identity, 3, 32 * "0"))
        self.assertBusy(self.conductor("two"), namespace, wait=0)
