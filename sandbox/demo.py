# SPDX-License-Identifier: Apache-2.0
"""The demo: a tenant creates, uses, changes and deletes a cluster.

Everything is done as the tenant, through ``openstack coe`` and ``kubectl``; only the fault is the
operator's, and the proof at the end looks everywhere.
"""

from collections.abc import Callable, Iterator
import contextlib
import dataclasses
import json
import os
from pathlib import Path
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

from sandbox import faults, inventory, processes, progress, stack
from sandbox.state import SandboxError, State

CLUSTER = "demo"
TEMPLATE = "demo"
IMAGE = "ubuntu-kube-v1.34.4"
KUBE_TAG = "v1.34.4"
NODE_COLUMNS = (
    "NAME:.metadata.name,VERSION:.status.nodeInfo.kubeletVersion,"
    "READY:.status.conditions[?(@.type=='Ready')].status"
)

# Whoever watches should not wait for the healing longer than a machine needs to come up here.
SERVER_START_TIMEOUT = "50"
COMMAND_TIMEOUT = 120
CLUSTER_TIMEOUT = 900
EMPTY_TIMEOUT = 120


def run(state: State, keep: bool) -> int:
    """Play the demo; returns 0 when every step did what it promises and nothing was left.

    :param keep: leave the sandbox up. A sandbox that ran before is always left up.
    """
    os.environ.setdefault("SANDBOX_SERVER_START_TIMEOUT", SERVER_START_TIMEOUT)
    ran_before = processes.alive(state, "magnum")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the end below is reached
    demo = Demo(state)
    try:
        with demo.step("start the sandbox"):
            stack.up(state) if ran_before else stack.reset(state)
        demo.play()
    except (SandboxError, subprocess.TimeoutExpired) as error:
        progress.say(f"FAILED: {error}")
    except KeyboardInterrupt:
        progress.say("interrupted")
    finally:
        if keep or ran_before:
            _say_how_to_talk(state)
        else:
            stack.down(state)
        demo.summary()
        if demo.failed:
            progress.say(f"logs: {state.path('log', 'x').parent}")
    return 1 if demo.failed else 0


@dataclasses.dataclass
class Demo:
    """The steps of the demo, with the duration of each.

    :ivar pause: seconds between two polls.
    :ivar last: what was shown of the cluster last.
    """

    state: State
    pause: float = 3.0
    last: str = ""
    times: list[tuple[str, float]] = dataclasses.field(default_factory=list)
    failed: bool = True  # until the last step has said otherwise

    def play(self) -> None:
        """All steps from the template to the proof.

        :raises SandboxError: a step did not end as promised.
        """
        before = inventory.inventory(self.state)
        with tempfile.TemporaryDirectory() as folder:
            self._create(Path(folder))
            self._grow()
            self._fault()
        with self.step("delete the cluster"):
            self.openstack("coe", "cluster", "delete", CLUSTER)
            self.watch(until=lambda seen: seen is None)
            self.openstack("coe", "cluster", "template", "delete", TEMPLATE)
        with self.step("verify that no resource is left"):
            self._prove_empty(before)
        self.failed = False

    def _create(self, folder: Path) -> None:
        with self.step("create a cluster template"):
            self.openstack(
                *("coe", "cluster", "template", "create", TEMPLATE, "--coe", "kubernetes"),
                *("--image", IMAGE, "--labels", f"kube_tag={KUBE_TAG}"),
                *("--external-network", "public", "--network-driver", "calico"),
                *("--flavor", "m1.small", "--master-flavor", "m1.medium"),
                *("--keypair", "demo", "--master-lb-enabled"),
            )
        with self.step("create a cluster: 1 control plane machine, 1 worker"):
            self.openstack(
                *("coe", "cluster", "create", CLUSTER, "--cluster-template", TEMPLATE),
                *("--master-count", "1", "--node-count", "1"),
            )
            self.watch(until=complete("CREATE"))
        with self.step("kubectl get nodes, with a certificate signed by Magnum's CA"):
            self.openstack("coe", "cluster", "config", CLUSTER, "--dir", str(folder), "--force")
            self.kubeconfig = folder / "config"
            self.nodes(expected=2)

    def _grow(self) -> None:
        with self.step("add a second nodegroup"):
            self.openstack(
                *("coe", "nodegroup", "create", CLUSTER, "extra", "--role", "extra"),
                *("--node-count", "1"),
            )
            self.watch(until=complete("UPDATE"))
            self.nodes(expected=3)
        with self.step("resize the default workers from 1 to 2"):
            self.openstack("coe", "cluster", "resize", CLUSTER, "2")
            self.watch(until=complete("UPDATE"))
            self.nodes(expected=4)

    def _fault(self) -> None:
        with self.step(
            "fault: no quota for another server; Magnum refuses the resize with the numbers"
        ):
            progress.say(f"operator: {faults.switch(self.state, 'quota', True)}")
            self.openstack("coe", "cluster", "resize", CLUSTER, "3")
            self.watch(until=lambda seen: "quota" in str(seen and seen["status_reason"]).lower())
        with self.step("the fault is off; the same resize succeeds"):
            progress.say(f"operator: {faults.switch(self.state, 'quota', False)}")
            self.openstack("coe", "cluster", "resize", CLUSTER, "3")
            self.watch(until=complete("UPDATE"))
            self.nodes(expected=5)

    def _prove_empty(self, before: inventory.Inventory) -> None:
        deadline = time.monotonic() + EMPTY_TIMEOUT
        while True:
            now = inventory.inventory(self.state)
            left = inventory.added(before, now)
            if not left:
                break
            if time.monotonic() > deadline:
                raise SandboxError(f"remaining resources: {json.dumps(left, default=sorted)}")
            time.sleep(self.pause)
        progress.say(f"no resource is left: {', '.join(now)}")

    @contextlib.contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Announce a step and take its time."""
        progress.say(f"---- {len(self.times) + 1}. {text}")
        begin = time.monotonic()
        try:
            yield
        finally:
            self.times.append((text, time.monotonic() - begin))

    def openstack(self, *arguments: str) -> str:
        """Run ``openstack`` as the tenant and show the command.

        :raises SandboxError: it failed; the text is what it said.
        """
        progress.say(f"$ openstack {shlex.join(arguments)}")
        done = self._run(["openstack", *arguments], {})
        if done.returncode != 0:
            raise SandboxError(f"openstack {shlex.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def watch(self, until: Callable[[dict[str, Any] | None], bool]) -> None:
        """Show the cluster's status and reason as they change, until ``until`` is content.

        The failure at which an earlier watch ended is an earlier request's.

        :param until: is given what ``coe cluster show`` says, None when there is no cluster.
        :raises SandboxError: the cluster failed, or it took too long.
        """
        shown, before = "", self.last
        deadline = time.monotonic() + CLUSTER_TIMEOUT
        while True:
            seen = self._show()
            line = f"  {seen['status']}  {seen['status_reason'] or ''}" if seen else "  gone"
            if line != shown:
                progress.say(line)
            shown = self.last = line
            if until(seen):
                return
            if seen and seen["status"].endswith("_FAILED") and line != before:
                raise SandboxError(f"the cluster is {seen['status']}: {seen['status_reason']}")
            if time.monotonic() > deadline:
                raise SandboxError(f"still {shown.strip()} after {CLUSTER_TIMEOUT} s")
            time.sleep(self.pause)

    def nodes(self, expected: int) -> None:
        """Show the nodes as the tenant sees them.

        :raises SandboxError: there are not as many as expected, or not all are ready.
        """
        command = ["kubectl", "get", "nodes", "-o", f"custom-columns={NODE_COLUMNS}"]
        progress.say("$ kubectl get nodes -o custom-columns=...")
        done = self._run([*command, "--request-timeout=20s"], {"KUBECONFIG": str(self.kubeconfig)})
        rows = done.stdout.splitlines()
        print("\n".join(f"             {row}" for row in rows), flush=True)
        if done.returncode != 0:
            raise SandboxError(f"kubectl get nodes: {done.stderr.strip()}")
        ready = [row for row in rows[1:] if row.endswith("True")]
        if len(rows) - 1 != expected or len(ready) != expected:
            raise SandboxError(f"{expected} ready nodes are expected, {len(ready)} are ready")

    def summary(self) -> None:
        """Print the table of all steps."""
        print(f"\n{'step':70} seconds")
        for text, seconds in self.times:
            print(f"{text:70} {seconds:7.1f}")
        print(f"{'all':70} {sum(seconds for _, seconds in self.times):7.1f}")
        print(f"\ndemo {'FAILED' if self.failed else 'passed'}", flush=True)

    def _show(self) -> dict[str, Any] | None:
        done = self._run(["openstack", "coe", "cluster", "show", CLUSTER, "-f", "json"], {})
        if done.returncode == 0:
            answer: dict[str, Any] = json.loads(done.stdout)
            return answer
        if "404" in done.stderr or "could not be found" in done.stderr:
            return None
        raise SandboxError(f"openstack coe cluster show {CLUSTER}: {done.stderr.strip()}")

    def _run(
        self, command: list[str], variables: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        # `coe cluster config` wants to know for which shell it prints.
        environment = os.environ | {"SHELL": "/bin/sh"} | stack.environment(self.state) | variables
        return subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT,
            check=False,
        )


def complete(verb: str) -> Callable[[dict[str, Any] | None], bool]:
    """Whether a cluster's status is ``<verb>_COMPLETE``."""
    return lambda seen: seen is not None and seen["status"] == f"{verb}_COMPLETE"


def _say_how_to_talk(state: State) -> None:
    here = f"{Path(sys.executable)} -m sandbox --dir {state.root}"
    progress.say("the sandbox is still running; use it as the tenant with")
    print(f'  eval "$({here} env)"\n  openstack coe cluster list')
    print(f"and stop it with\n  {here} down", flush=True)
