# SPDX-License-Identifier: Apache-2.0
"""Run tests and write down with which versions they ran: tested TABLE[,TABLE...] WHAT COMMAND...

With ``K8S_CAPI_HELM_TESTED=1`` the result goes into doc/source/install/tested.yaml, from which the
page "What is tested with what" is made: the versions that were there, what ran, the date, and how
many tests passed and failed. Without it the command just runs. A run that was interrupted, or that
tested nothing, leaves no result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
import dataclasses
from importlib import metadata
import os
from pathlib import Path
import platform
import subprocess
import sys
from typing import Any

from oslo_utils import timeutils
import yaml

from tools import stages, tested_programs

DATA = Path(__file__).resolve().parents[1] / "doc" / "source" / "install" / "tested.yaml"
VARIABLE = "K8S_CAPI_HELM_TESTED"
HEAD = (
    "# Results of test runs, written by tools/tested.py and shown on the page support.rst.\n"
    "# Nothing here is written by hand.\n"
)
#: As stestr calls tests that did not run.
SKIPPED = "Skipped"
Subject = dict[str, str]


@dataclasses.dataclass(frozen=True)
class Result:
    """What came of one run with these versions.

    :ivar subject: versions by the name of what has them, in the order of the columns.
    :ivar ran: which tests.
    :ivar date: of the run, UTC.
    """

    table: str
    subject: Subject
    ran: str
    date: str
    result: str

    @property
    def key(self) -> tuple[str, tuple[int, ...], str, str]:
        """What a later run of the same replaces, in the order of the page."""
        text = " ".join(self.subject.values())
        numbers = tuple(int(part) for part in text.replace(".", " ").split() if part.isdigit())
        return self.table, numbers, text, self.ran


def magnum() -> list[Subject]:
    """Magnum and what comes with its release, in the environment of this process."""
    versions = {name: metadata.version(name) for name in ("magnum", "kubernetes", "SQLAlchemy")}
    found = {"Magnum": versions["magnum"], "Python": platform.python_version()}
    return [{**found, "kubernetes": versions["kubernetes"], "SQLAlchemy": versions["SQLAlchemy"]}]


def cluster_api() -> list[Subject]:
    """Cluster API and its OpenStack provider of the sandbox, and what they run on."""
    from sandbox import cli
    from sandbox.cloud.conductor_layout import Layout
    from sandbox.management import binaries
    from sandbox.management.releases import Providers
    from sandbox.state import State

    state = State(cli.default_directory())
    providers = Providers.of(state)
    return [
        {
            "Cluster API": providers.capi.version,
            "OpenStack provider": providers.capo.version,
            "Kubernetes below them": binaries.KUBERNETES,
            "Magnum": Layout.of(state).magnum or metadata.version("magnum"),
        }
    ]


def kubernetes() -> list[Subject]:
    """Versions of the tenants' clusters in the sandbox, and the Cluster API that made them."""
    from sandbox.cloud import seed

    (pair,) = cluster_api()
    kept = ("Cluster API", "OpenStack provider", "Magnum")
    return [
        {"Kubernetes": version.removeprefix("v"), **{key: pair[key] for key in kept}}
        for version in seed.IMAGES.values()
        if version
    ]


def kubeadm() -> list[Subject]:
    """The releases of Kubernetes whose kubeadm reads what Cluster API makes of the charts."""
    from sandbox.management import kubernetes_releases
    from sandbox.management.releases import INITIAL_CAPI

    return [
        {"Kubernetes": release.version, "Cluster API": INITIAL_CAPI.version}
        for release in kubernetes_releases.selected()
    ]


def newest_kubernetes() -> list[Subject]:
    """The newest of them, with which the core of the scenarios makes all of its clusters."""
    return kubernetes()[-1:]


def helm() -> list[Subject]:
    """The releases of Helm with which charts are tested."""
    from sandbox.management import binaries

    return [{"Helm": program.version} for program in (binaries.HELM, binaries.HELM4)]


def sandbox_helm() -> list[Subject]:
    """The Helm that the sandbox's conductor runs."""
    from sandbox.management import binaries

    return [{"Helm": binaries.HELM.version}]


def given_helm() -> list[Subject]:
    """The Helm that $HELM names."""
    from sandbox.management import binaries

    return [{"Helm": binaries.ask_version(Path(os.environ["HELM"]), binaries.HELM)}]


def reference() -> list[Subject]:
    """The reference's chart that $REFERENCE_CHART names; nothing without it."""
    given = os.environ.get("REFERENCE_CHART")
    if not given:
        return []
    name = "openstack-cluster"
    charts = (Path(given, *below, "Chart.yaml") for below in ((), (name,), ("charts", name)))
    text = next(chart for chart in charts if chart.exists()).read_text(encoding="utf-8")
    return [{"openstack-cluster": str(yaml.safe_load(text)["version"])}]


def mariadb() -> list[Subject]:
    """The database server, as it calls itself, and the Magnum whose records it keeps."""
    import sqlalchemy

    engine = sqlalchemy.create_engine(os.environ["K8S_CAPI_HELM_DATABASE"])
    with engine.connect() as connection:
        version = str(connection.scalar(sqlalchemy.text("SELECT VERSION()")))
    return [{"MariaDB": version.partition("-")[0], "Magnum": metadata.version("magnum")}]


#: Who knows the versions of a table's rows, by how the command line calls it. What stands before a
#: dot is the table.
SUBJECTS: dict[str, Callable[[], list[Subject]]] = {
    "magnum": magnum,
    "cluster-api": cluster_api,
    "kubernetes": kubernetes,
    "kubernetes.newest": newest_kubernetes,
    "kubernetes.kubeadm": kubeadm,
    "helm": helm,
    "helm.sandbox": sandbox_helm,
    "helm.given": given_helm,
    "reference": reference,
    "mariadb": mariadb,
    "programs.sandbox": tested_programs.sandbox,
    "programs.janitor": tested_programs.janitor,
    "programs.addon-provider": tested_programs.addon_provider,
    "programs.kubeadm": tested_programs.kubeadm,
    "programs.clusterctl": tested_programs.clusterctl,
    "programs.backup": tested_programs.backup,
    "programs.snapshots": tested_programs.snapshots,
    "programs.tenant": tested_programs.tenant,
    "programs.prometheus": tested_programs.prometheus,
}


def read(path: Path) -> list[Result]:
    """All results of a file; none without one."""
    if not path.exists():
        return []
    found: list[dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    return [Result(**entry) for entry in found]


def write(path: Path, results: Iterable[Result]) -> None:
    """Replace a file; of two results of the same the later one stays."""
    kept = {result.key: result for result in results}
    entries = [dataclasses.asdict(kept[key]) for key in sorted(kept)]
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(HEAD + yaml.safe_dump(entries, sort_keys=False, width=100), encoding="utf-8")
    draft.replace(path)


def run(command: list[str]) -> tuple[int, str]:
    """Run a command, let its output be seen, and return its exit status and output."""
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return process.returncode, "".join(lines)


def record(path: Path, names: Iterable[str], ran: str, status: int, output: str) -> None:
    """Write down what a run has shown about the versions that are here."""
    counts = [int(number) for outcome, number in stages.TOTAL.findall(output) if outcome != SKIPPED]
    if not any(counts):
        return
    tally = stages.tally(output, status, counts=True)
    today = timeutils.utcnow().date().isoformat()
    new = [
        Result(name.partition(".")[0], subject, ran, today, str(tally))
        for name in names
        for subject in SUBJECTS[name]()
    ]
    write(path, [*read(path), *new])


def main(arguments: list[str]) -> int:
    names = arguments[0].split(",") if arguments else []
    if len(arguments) < 3 or not set(names) <= set(SUBJECTS):
        print(f"usage: tested TABLE[,TABLE...] WHAT COMMAND...\ntables: {', '.join(SUBJECTS)}")
        return 2
    if os.environ.get(VARIABLE, "0") in ("", "0"):
        os.execvp(arguments[2], arguments[2:])  # noqa: S606
    status, output = run(arguments[2:])
    record(DATA, names, arguments[1], status, output)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
