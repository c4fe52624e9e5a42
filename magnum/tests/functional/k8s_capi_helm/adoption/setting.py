# SPDX-License-Identifier: Apache-2.0
"""One Magnum, two drivers, an API server: what the tests of this package stand on."""

from __future__ import annotations

import os
from pathlib import Path
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Any
import unittest
import uuid

from magnum.tests.functional.k8s_capi_helm.adoption import facts
from magnum.tests.functional.k8s_capi_helm.adoption.objects import (
    Change,
    Key,
    ObjectStore,
    Snapshot,
    told,
)
from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.envtest import kubeconfig
from sandbox.cloud.ini import ini
from tools import conversation

HERE = Path(__file__).parent
CONTRACT = HERE / "contract-chart"
PREDECESSOR, SUCCESSOR = "predecessor", "successor"
VERSION = "1.34.4"
#: Longest time for one request: two runs of helm on a busy machine.
TIMEOUT = 600
#: What an answer does not mean to be applied yet.
REQUESTS = ("resize", "upgrade", "add_group", "drop_group")
TEMPLATE = {
    "uuid": "11111111-2222-4333-8444-555555555555",
    "name": "kube",
    "image_id": "ubuntu-kube",
    "flavor_id": "small",
    "master_flavor_id": "small",
    "external_network_id": "public",
    "network_driver": "calico",
    "cluster_distro": "ubuntu",
    "coe": "kubernetes",
    "server_type": "vm",
    "labels": {},
    "master_lb_enabled": True,
    "floating_ip_enabled": True,
    "dns_nameserver": "192.0.2.53",
}
CLUSTER = {
    "uuid": "99999999-8888-4777-8666-555555555555",
    "name": "Demo Cluster",
    "cluster_template_id": TEMPLATE["uuid"],
    "flavor_id": "small",
    "master_flavor_id": "small",
    "keypair": "mine",
    "create_timeout": 60,
    "floating_ip_enabled": True,
    "master_lb_enabled": True,
    "labels": {},
}
GROUP = {"image_id": "ubuntu-kube", "flavor_id": "large", "labels": {}, "min_node_count": 1}


def predecessor() -> str:
    """The Python that has magnum-capi-helm."""
    path = os.environ.get("K8S_CAPI_HELM_PREDECESSOR", "")
    if not path:
        raise AssertionError(
            "K8S_CAPI_HELM_PREDECESSOR is not set: these tests need a Python with "
            "magnum-capi-helm (tox -e adoption makes one)."
        )
    return path


_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


class Refused(Exception):
    """A conductor answered with an error; the text is its."""


class Process:
    """A conductor in a process of its own."""

    def __init__(self, python: str, which: str, directory: Path) -> None:
        self._log = (directory / f"{which}.log").open("ab")
        self._process = subprocess.Popen(
            [python, "-W", "ignore", str(HERE / f"{which}.py"), str(directory / "magnum.conf")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            # With one of these set, magnum-capi-helm does not use the kubeconfig's authority.
            env={
                **{key: text for key, text in os.environ.items() if key not in _BUNDLES},
                facts.VARIABLE: str(directory / "cloud.json"),
            },
        )

    def ask(self, verb: str, **arguments: Any) -> Any:
        """Let it do one thing.

        :raises Refused: it could not.
        """
        try:
            answer = conversation.ask(self._process, [verb, arguments], TIMEOUT)
        except EOFError:
            said = Path(self._log.name).read_text(errors="replace")[-3000:]
            raise AssertionError(
                f"the conductor has gone while it did {verb}; it said: {said}"
            ) from None
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["answer"]

    def end(self) -> None:
        """Stop it, as an operator stops a service."""
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            assert pipe is not None
            pipe.close()
        self._process.terminate()
        self._process.wait(TIMEOUT)


class HandoverCase(unittest.TestCase):
    """Two conductors over one database; each starts when it is first asked."""

    def setUp(self) -> None:
        super().setUp()
        self.directory = Path(tempfile.mkdtemp(prefix="adoption-"))
        self.addCleanup(shutil.rmtree, self.directory)
        os.environ[facts.VARIABLE] = str(self.directory / "cloud.json")
        facts.write(facts.START)
        self.prefix = f"adopt-{uuid.uuid4().hex[:8]}"
        self.store = ObjectStore(kubeconfig(), f"{self.prefix}-p1")
        self.addCleanup(self.store.close)
        self.running: dict[str, Process] = {}
        self.addCleanup(self.stop)
        self.chart: Path = rendering.CLUSTER
        self.options: dict[str, dict[str, str]] = {}
        self.configure()

    def configure(self, **groups: dict[str, str]) -> None:
        """Write magnum.conf; conductors read it when they start."""
        settled = {
            "DEFAULT": {"transport_url": "fake:/", "state_path": str(self.directory)},
            "database": {"connection": f"sqlite:///{self.directory}/magnum.sqlite?timeout=60"},
            "oslo_messaging_notifications": {"driver": "noop"},
            "certificates": {"cert_manager_type": "x509keypair"},
            "capi_helm": {
                "kubeconfig_file": kubeconfig(),
                "namespace_prefix": self.prefix,
                "helm_chart_repo": "",
                "helm_chart_name": str(self.chart),
                "default_helm_chart_version": "",
            },
        }
        for group, options in groups.items():
            settled.setdefault(group, {}).update(options)
        (self.directory / "magnum.conf").write_text(ini(settled))

    def stop(self, which: str | None = None) -> None:
        """Stop a conductor, or all."""
        for name in [which] if which else list(self.running):
            if name in self.running:
                self.running.pop(name).end()

    def ask(self, which: str, verb: str, **arguments: Any) -> Any:
        """Let a conductor do one thing; it starts when it is first asked.

        :raises Refused: it could not.
        """
        if which not in self.running:
            python = predecessor() if which == PREDECESSOR else sys.executable
            self.running[which] = Process(python, which, self.directory)
        answer = self.running[which].ask(verb, **arguments)
        if which == SUCCESSOR and verb in REQUESTS:
            self._wait_for_lock()
        return answer

    def _wait_for_lock(self) -> None:
        """Wait, but not for ever, until no pass applies what was asked for.

        A request that finds the lock held, by a pass that a watch event has triggered, leaves its
        work to that one and ends. Who has given the lock back may take it once more at once.
        """
        deadline, free = time.monotonic() + TIMEOUT, 0
        while free < 3 and time.monotonic() < deadline:
            leases = [one for (kind, _), one in self.objects().items() if kind == "Lease"]
            held = any(one["spec"].get("holderIdentity") for one in leases)
            free = 0 if held else free + 1
            time.sleep(0.1)

    def found(self, which: str, **cluster: Any) -> None:
        """A Magnum with one cluster, made by a driver, as it is when it is complete."""
        template = {**TEMPLATE, **cluster.pop("template", {})}
        self.ask(which, "make_database")
        self.ask(which, "template", **template)
        self.ask(which, "create", **{"masters": 1, "workers": 2, **CLUSTER, **cluster})
        self.ask(which, "settle")

    def row(self) -> dict[str, Any]:
        """The only cluster of Magnum."""
        (found,) = self.rows()
        return found

    def rows(self) -> list[dict[str, Any]]:
        """The clusters of Magnum; whichever driver is there, the rows are Magnum's."""
        found: list[dict[str, Any]] = next(iter(self.running.values())).ask("rows")
        return found

    def release(self) -> str:
        return str(self.row()["stack_id"])

    @staticmethod
    def show(what: str, found: dict[Key, list[Change]]) -> None:
        """Print what has changed; whoever reads the run sees it."""
        sys.stdout.write(f"{what}:\n{told(found)}\n")

    def objects(self) -> Snapshot:
        """Everything in the project's namespace."""
        return self.store.snapshot()
