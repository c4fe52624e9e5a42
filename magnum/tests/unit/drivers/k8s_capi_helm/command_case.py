# SPDX-License-Identifier: Apache-2.0
"""The operator's command, run as a whole by its program over the fakes of the driver's tests."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
import dataclasses
import io
import json
import logging
import pathlib
from typing import Any

import fixtures

from magnum import objects
from magnum.drivers.k8s_capi_helm.commands.app import OperatorApp
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase
from magnum_k8s_capi_helm.conductor import MagnumConductor

OK, WARNING, CRITICAL, UNKNOWN = 0, 1, 2, 3
#: Fields of a cluster that its copy has of its own, or that are computed.
_OWN = frozenset("id uuid name stack_id project_id cluster_template created_at updated_at".split())
KUBECONFIG = """\
current-context: a
clusters: [{name: a, cluster: {server: "https://127.0.0.1:6443"}}]
contexts: [{name: a, context: {cluster: a, user: b}}]
users: [{name: b, user: {token: the-token-of-the-kubeconfig}}]
"""


@dataclasses.dataclass
class Printed:
    """What a run of the program ends with, and what it has printed."""

    status: int
    out: str
    error: str

    def rows(self) -> list[dict[str, Any]]:
        """The rows of JSON."""
        listed: list[dict[str, Any]] = json.loads(self.out)
        return listed


class CommandCase(DriverCase):
    """Base of the command's tests.

    :ivar installation_checks: what the distribution finds on this host.
    :ivar conductor: Magnum's.
    :ivar problem: what keeps the program from its configuration.
    """

    def setUp(self) -> None:
        super().setUp()
        self.installation_checks: list[tuple[str, Callable[[Any], Iterator[tuple[bool, str]]]]] = []
        self.conductor = MagnumConductor()
        self.problem: Exception | None = None
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "kubeconfig"
        path.write_text(KUBECONFIG)
        self.kubeconfig = path
        self.kube.kubeconfig_path = str(path)
        root = logging.getLogger()
        self.addCleanup(root.setLevel, root.level)
        self.addCleanup(setattr, root, "handlers", list(root.handlers))

    def begin(self, options: argparse.Namespace) -> Reconciliation:
        if self.problem:
            raise self.problem
        return self.periodic()

    def command(self, *argv: str) -> Printed:
        """Run the program."""
        out, error = io.StringIO(), io.StringIO()
        app = OperatorApp(
            self.begin,
            self.installation_checks,
            lambda: self.conductor,
            version="1.2.3",
            stdout=out,
            stderr=error,
        )
        status = app.run(list(argv))
        return Printed(int(status), out.getvalue(), error.getvalue())

    def copy_row(self, number: int) -> Any:
        """Another cluster in Magnum's database like the first one, in one of six projects."""
        first = self.cluster()
        fields = {
            field: first[field]
            for field in objects.Cluster.fields
            if field not in _OWN and first.obj_attr_is_set(field)
        }
        copy = objects.Cluster(
            self.context,
            **fields,
            uuid=f"{number:08d}-8888-4777-8666-555555555555",
            name=f"other-{number}",
            stack_id=f"other-{number:012d}",
            project_id=f"p{number % 6}",
        )
        copy.create()
        return copy
