# SPDX-License-Identifier: Apache-2.0
"""Charts, their scenarios, and what helm makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent import futures
import copy
from dataclasses import dataclass, field
import functools
import json
import os
from pathlib import Path
import subprocess
from typing import Any

import yaml

from magnum.drivers.k8s_capi_helm.helm import cli

CHARTS = Path(__file__).resolve().parents[5] / "charts"
CLUSTER = CHARTS / "openstack-cluster"
ADDONS = CHARTS / "cluster-addons"
#: The cluster's named templates, in a chart of which Helm keeps nothing.
COMMON = CLUSTER / "charts" / "common"
NAMESPACE = "magnum-p1"
TIMEOUT = 60.0

#: The same language, ten times as fast where libyaml is there.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Values = dict[str, Any]
Object = dict[str, Any]


class HelmRefused(Exception):
    """helm ended with an error; the text is what it said."""


def template_files(chart: Path) -> list[Path]:
    """The templates of a chart, and for the cluster's the named ones beside them."""
    charts = (chart, COMMON) if chart == CLUSTER else (chart,)
    return sorted(
        path for one in charts for path in (one / "templates").rglob("*") if path.is_file()
    )


@functools.cache
def helm() -> str:
    """The helm program: $HELM, or else one of the sandbox's version, found or built.

    :raises RuntimeError: there is none and it cannot be built.
    """
    return _program("HELM")


@functools.cache
def helm4() -> str:
    """Helm of the next generation: $HELM4, or else one of the pinned version, found or built.

    :raises RuntimeError: there is none and it cannot be built.
    """
    return _program("HELM4")


def _program(name: str) -> str:
    from sandbox.management import binaries

    wanted = getattr(binaries, name)
    try:
        return os.environ.get(name) or str(binaries.one(wanted))
    except Exception as error:
        raise RuntimeError(
            f"The charts are tested with Helm {wanted.version}, which is not here ({error}): put "
            f"it into PATH, or name it in the environment variable {name}."
        ) from error


def run(*arguments: str | Path, stdin: str | None = None, program: str = "") -> str:
    """Output of helm.

    :param program: another helm than :func:`helm`.
    :raises HelmRefused: helm failed.
    """
    done = subprocess.run(
        [program or helm(), *map(str, arguments)],
        # A process that lives for so short a time need not collect its garbage.
        env={**os.environ, "GOGC": "off"},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    if done.returncode:
        raise HelmRefused(done.stderr)
    return done.stdout


def render(
    chart: Path,
    values: Values,
    *,
    release: str = "demo",
    served: Sequence[str] = (),
    upgrade: bool = False,
) -> list[Object]:
    """The objects of a release.

    :param served: group versions that the management cluster is said to serve.
    :param upgrade: of one that is there already.
    :raises HelmRefused: schema or rules of the chart refuse the values.
    """
    flags = ("--is-upgrade",) if upgrade else ()
    return documents(text(chart, values, release=release, served=served, flags=flags))


def text(
    chart: Path,
    values: Values,
    *,
    release: str = "demo",
    served: Sequence[str] = (),
    program: str = "",
    flags: Sequence[str] = (),
) -> str:
    """What helm prints for a release, as for :func:`render`."""
    asked = (*(f"--api-versions={version}" for version in served), *flags)
    return _rendered(chart, json.dumps(values), release, asked, program)


@functools.cache
def _rendered(chart: Path, values: str, release: str, flags: tuple[str, ...], program: str) -> str:
    asked = ("--values=-", f"--namespace={NAMESPACE}", *flags)
    given = cli.check_readable(values.encode()).decode()
    return run("template", release, chart, *asked, stdin=given, program=program)


def texts(
    wanted: Sequence[tuple[Path, Values]], *, program: str = "", flags: Sequence[str] = ()
) -> list[futures.Future[str]]:
    """What helm prints for each chart with its values, in their order, made several at a time.

    The result of values that are refused raises :class:`HelmRefused`.
    """
    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [pool.submit(text, *one, program=program, flags=flags) for one in wanted]


def documents(text: str) -> list[Object]:
    """The documents of a YAML text, without empty ones."""
    return [found for found in yaml.load_all(text, Loader=_LOADER) if found]


def openstack_id(number: int) -> str:
    """An id as OpenStack gives its things."""
    return f"00000000-0000-4000-8000-{number:012x}"


@dataclass(frozen=True)
class Scenario:
    """One supported shape of a cluster: a file ci/<name>-values.yaml of a chart."""

    chart: Path
    name: str
    values: Values = field(hash=False)

    @property
    def golden(self) -> Path:
        """Directory with one file per object that the scenario renders."""
        return self.chart / "tests" / "golden" / self.name

    @functools.cached_property
    def objects(self) -> list[Object]:
        """What the scenario renders."""
        return render(self.chart, self.values)


@functools.cache
def scenarios(chart: Path) -> Mapping[str, Scenario]:
    """All scenarios of a chart by name."""
    suffix = "-values.yaml"
    return {
        path.name.removesuffix(suffix): Scenario(
            chart, path.name.removesuffix(suffix), yaml.safe_load(path.read_text())
        )
        for path in sorted((chart / "ci").glob(f"*{suffix}"))
    }


def every_scenario() -> Iterator[Scenario]:
    """The scenarios of all charts."""
    for chart in (CLUSTER, ADDONS):
        yield from scenarios(chart).values()


def changed(values: Values, change: Mapping[str, Any]) -> Values:
    """Values with other ones at dotted paths; a number in a path is a place in a list."""
    result = copy.deepcopy(values)
    for path, value in change.items():
        *above, last = path.split(".")
        place: Any = result
        for step in above:
            place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
        place[int(last) if isinstance(place, list) else last] = value
    return result


def identity(found: Object) -> tuple[str, str]:
    """Kind and name of an object."""
    return found["kind"], found["metadata"]["name"]


def by_kind(objects: Sequence[Object], kind: str) -> list[Object]:
    """The objects of a kind."""
    return [found for found in objects if found["kind"] == kind]


def only(objects: Sequence[Object], kind: str) -> Object:
    """The one object of a kind.

    :raises ValueError: there is none, or more than one.
    """
    (found,) = by_kind(objects, kind)
    return found
