# SPDX-License-Identifier: Apache-2.0
"""Start a conductor with one of the drivers that the benchmark of a pass compares."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from pathlib import Path
import sqlite3
import subprocess
import sys
from typing import Any, Protocol, TYPE_CHECKING

from sandbox.cloud.ini import ini
from tools import conversation
from tools.bench.pass_costs import NOTHING, OTHER_PEER, OWN, PEER

if TYPE_CHECKING:
    from typing import Self

Json = dict[str, Any]
#: Names the Python that has the peer driver: tox.ini's environment "predecessor".
VARIABLE = "K8S_CAPI_HELM_PREDECESSOR"
#: Names the Python that has the other peer: tox.ini's environment "cluster-api-driver".
OTHER_VARIABLE = "K8S_CAPI_HELM_CLUSTER_API_DRIVER"
_PYTHONS = {NOTHING: VARIABLE, PEER: VARIABLE, OTHER_PEER: OTHER_VARIABLE}
_OTHER_MODULE = "magnum_cluster_api.driver"
#: Magnum's configuration, in the directory of a conductor.
CONFIGURATION = "magnum.conf"
#: Longest time for one request.
_TIMEOUT = 1800.0
_TOOLS = Path(__file__).parent.parent
#: This driver with an OpenStack that takes requests, too.
OWN_WITH_CLOUD = f"{OWN} with a cloud"
#: Classes that are in Magnum's place for the driver that is installed.
_CLASSES = {
    NOTHING: "tools.bench.idle_driver:Driver",
    OWN: "tools.bench.own_driver:Driver",
    OWN_WITH_CLOUD: "tools.bench.verb_driver:Driver",
}
INSTALLED = "k8s_capi_helm_v1"
#: With one of these set, the peer does not use the kubeconfig's authority.
_BUNDLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """What a conductor needs.

    :ivar driver: of :data:`tools.bench.pass_costs.DRIVERS`.
    :ivar place: an empty directory of its own.
    :ivar kubeconfig: of the management cluster.
    :ivar database: with the rows that it begins with; None for an empty one.
    :ivar url: of a database that is there, as SQLAlchemy has it; "" for one of its own.
    :ivar module: what runs, with a ``main`` as :mod:`tools.bench.pass_conductor` has it.
    :ivar programs: directory with a helm; None where no request is carried out.
    """

    driver: str
    place: Path
    kubeconfig: Path
    database: Path | None = None
    url: str = ""
    module: str = "tools.bench.pass_conductor"
    programs: Path | None = None

    @property
    def own_database(self) -> Path:
        """Where the rows of this conductor are, if it has a database of its own."""
        return self.place / "magnum.sqlite"

    @property
    def connection(self) -> str:
        """The URL of its database."""
        return self.url or f"sqlite:///{self.own_database}?timeout=60"

    @property
    def command(self) -> list[str]:
        """What runs: with a database of its own, every driver but this one in the peer's Python."""
        is_own = bool(self.url) or self.driver == OWN
        python = sys.executable if is_own else _python(self.driver)
        paths = (str(self.place / CONFIGURATION), "" if self.url else str(self.own_database))
        return [python, "-W", "ignore", "-m", self.module, *paths]

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the process."""
        found = {**environment(self.place), **_kubeconfig(self)}
        if self.programs is not None:
            found["PATH"] = os.pathsep.join((str(self.programs), found.get("PATH", os.defpath)))
        return found

    def write(self) -> None:
        """Write what the process finds in its directory."""
        _write(self)


class Started(Protocol):
    """What a conductor's process needs: its driver, its directory, and how it is started."""

    @property
    def driver(self) -> str: ...
    @property
    def place(self) -> Path: ...
    @property
    def own_database(self) -> Path: ...
    @property
    def command(self) -> list[str]: ...
    @property
    def environment(self) -> dict[str, str]: ...

    def write(self) -> None:
        """Write what the process finds in its directory."""


class Process:
    """A conductor in a process of its own; a context that ends it."""

    def __init__(self, setting: Started) -> None:
        self._setting = setting
        self._log = setting.place / "conductor.log"
        setting.write()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                setting.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=setting.place,
                env=setting.environment,
            )

    @property
    def database(self) -> Path:
        """Where its rows are."""
        return self._setting.own_database

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def ask(self, verb: str, /, **arguments: Any) -> Any:
        """Let it do one thing.

        :raises RuntimeError: it has ended; the text ends with what it said.
        """
        try:
            return conversation.ask(self._process, [verb, arguments], _TIMEOUT)
        except EOFError:
            raise RuntimeError(
                f"{self._setting.driver} has ended with {verb}: {self.said()}"
            ) from None

    def said(self) -> str:
        """The end of its log."""
        return self._log.read_text(errors="replace")[-3000:]


def unavailable(driver: str) -> str:
    """Why no conductor can have a driver, as its import says it; empty where one can."""
    if driver != OTHER_PEER:
        return ""
    if not os.environ.get(OTHER_VARIABLE):
        return f"{OTHER_VARIABLE} is not set"
    # It reads a kubeconfig when it is created, not yet when it is imported.
    command = [_python(driver), "-W", "ignore", "-c", f"import {_OTHER_MODULE}"]
    try:
        done = subprocess.run(command, capture_output=True, check=False, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return said[-1] if done.returncode else ""


def _python(driver: str) -> str:
    return sys.executable if driver == OWN else os.environ[_PYTHONS[driver]]


def _kubeconfig(setting: Setting) -> dict[str, str]:
    """A variable of the process for the driver that has no option for it."""
    return {"KUBECONFIG": str(setting.kubeconfig)} if setting.driver == OTHER_PEER else {}


def _write(setting: Setting) -> None:
    """What the process finds in its directory."""
    place = setting.place
    install(setting.driver, place)
    disabled = INSTALLED if setting.driver in _CLASSES else ""
    options: dict[str, dict[str, object]] = {
        "DEFAULT": {"transport_url": "fake:/", "state_path": place},
        "database": {
            "connection": setting.connection,
            "sqlite_synchronous": False,
        },
        "drivers": {"disabled_drivers": disabled},
        "oslo_messaging_notifications": {"driver": "noop"},
        "certificates": {"cert_manager_type": "x509keypair"},
        "capi_helm": {"kubeconfig_file": setting.kubeconfig},
    }
    (place / CONFIGURATION).write_text(ini(options))
    if setting.database is not None:
        copy_database(setting.database, setting.own_database)


def install(driver: str, place: Path) -> None:
    """Let a Python with :func:`environment` find a driver of the benchmark, as an entry point.

    The one that its environment has by itself is to be disabled.
    """
    for one in (_TOOLS, _TOOLS.with_name("sandbox")):
        (place / one.name).symlink_to(one)
    if driver in _CLASSES:
        about = place / "benchmark-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: benchmark\nVersion: 1\n")
        points = f"[magnum.drivers]\nbenchmark = {_CLASSES[driver]}\n"
        (about / "entry_points.txt").write_text(points)


def copy_database(source: Path, target: Path) -> None:
    """Copy one that somebody has open, with what its write-ahead log still has."""
    with contextlib.closing(sqlite3.connect(source)) as connection:
        connection.execute("vacuum into ?", (str(target),))


def environment(place: Path) -> dict[str, str]:
    """Variables for a Python that looks into a directory first."""
    kept = {key: text for key, text in os.environ.items() if key not in _BUNDLES}
    # Nothing stays in the caches of the user, and all processes have the same order of hashes.
    return {**kept, "PYTHONPATH": str(place), "XDG_CACHE_HOME": str(place), "PYTHONHASHSEED": "0"}
