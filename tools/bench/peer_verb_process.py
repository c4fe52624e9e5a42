# SPDX-License-Identifier: Apache-2.0
"""Start a conductor that carries verbs out with one of the drivers that are compared."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
import sys
from typing import Any

from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.functional.k8s_capi_helm.adoption import facts, setting
from sandbox.cloud.ini import ini
from tools.bench import pass_costs, pass_process
from tools.bench.pass_costs import OWN
from tools.bench.pass_process import CONFIGURATION

#: The module with the played OpenStack of each driver.
_PLAYED = {True: "tools.bench.peer_verb_own", False: "predecessor"}
_PROJECT = "p1"


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """What a conductor needs.

    :ivar driver: :data:`OWN`, or a peer.
    :ivar place: an empty directory of its own.
    :ivar kubeconfig: of the management cluster.
    :ivar programs: the directory with Helm.
    :ivar chart: directory of the chart.
    """

    driver: str
    place: Path
    kubeconfig: Path
    programs: Path
    chart: Path

    @property
    def prefix(self) -> str:
        """Of its namespaces."""
        word = "".join(one for one in self.driver.lower() if one.isalnum())
        return f"{pass_costs.CLUSTERS}{word}"

    @property
    def namespace(self) -> str:
        """Of its clusters."""
        return names.namespace(self.prefix, _PROJECT)

    @property
    def own_database(self) -> Path:
        """Where its rows are."""
        return self.place / "magnum.sqlite"

    @property
    def command(self) -> list[str]:
        """What runs, in the Python that has the driver."""
        is_own = self.driver == OWN
        python = sys.executable if is_own else setting.predecessor()
        module = [python, "-W", "ignore", "-m", "tools.bench.peer_verb_conductor"]
        return [*module, _PLAYED[is_own], str(self.place / CONFIGURATION), str(self.own_database)]

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the process."""
        return _environment(self)

    def write(self) -> None:
        """Write what the process finds in its directory."""
        _write(self)


class Process(pass_process.Process):
    """A conductor whose verbs may fail.

    :ivar setting: what it has been given.
    """

    def __init__(self, given: Setting) -> None:
        super().__init__(given)
        self.setting = given

    def ask(self, verb: str, /, **arguments: Any) -> Any:
        """Let it do one thing.

        :raises RuntimeError: it could not, or has ended; the text ends with what it said.
        """
        answer = super().ask(verb, **arguments)
        if "error" in answer:
            driver = self.setting.driver
            raise RuntimeError(f"{driver}: {verb}: {answer['error']}: {self.said()}")
        return answer["answer"]


def _write(given: Setting) -> None:
    """What the process finds in its directory."""
    place = given.place
    (place / "tools").symlink_to(Path(__file__).parent.parent)
    (place / "cloud.json").write_text(json.dumps(facts.START))
    options: dict[str, dict[str, object]] = {
        "DEFAULT": {"transport_url": "fake:/", "state_path": place},
        "database": {
            "connection": f"sqlite:///{given.own_database}?timeout=60",
            "sqlite_synchronous": False,
        },
        "oslo_messaging_notifications": {"driver": "noop"},
        "certificates": {"cert_manager_type": "x509keypair"},
        "capi_helm": {
            "kubeconfig_file": given.kubeconfig,
            "namespace_prefix": given.prefix,
            "helm_chart_repo": "",
            "helm_chart_name": given.chart,
            "default_helm_chart_version": "",
        },
    }
    (place / CONFIGURATION).write_text(ini(options))


def _environment(given: Setting) -> dict[str, str]:
    found = pass_process.environment(given.place)
    search = os.pathsep.join((str(given.place), str(setting.HERE)))
    path = os.pathsep.join((str(given.programs), found.get("PATH", os.defpath)))
    variables = {"PYTHONPATH": search, "PATH": path}
    return {**found, **variables, facts.VARIABLE: str(given.place / "cloud.json")}
