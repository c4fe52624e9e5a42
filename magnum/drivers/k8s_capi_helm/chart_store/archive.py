# SPDX-License-Identifier: Apache-2.0
"""Charts as files: read their metadata, unpack them, add them to the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import contextlib
import dataclasses
import functools
import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import tarfile
import tempfile
import zlib

import yaml

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.chart_store.directory import write_error
from magnum.drivers.k8s_capi_helm.model import Chart, clock, names

# Not part of what is installed, and not in every package of the same chart.
_IGNORED = frozenset({"tests", "ci"})
_UNPACKED_LIMIT = 64 << 20
_DRAFT = ".draft-"
#: Seconds after which nobody is at work any more at what has no final name yet.
_ABANDONED = 24 * 3600.0
#: Texts of Chart.yaml that are remembered; a chart has one, and each chart inside has one.
_KNOWN_TEXTS = 16


def read_chart(directory: pathlib.Path) -> Chart:
    """The chart in a directory.

    :raises errors.ChartNotFound: there is none, or its Chart.yaml says nothing useful.
    """
    try:
        name, version, family = _identity((directory / "Chart.yaml").read_text())
        return Chart(
            name=name,
            version=version,
            path=str(directory),
            family=family,
            digest=digest(directory),
        )
    except (OSError, yaml.YAMLError, TypeError, KeyError, AttributeError) as error:
        raise chart_not_found(
            "This Magnum service has no usable chart",
            f"{directory}: {type(error).__name__}: {error}",
        ) from None


def digest(directory: pathlib.Path) -> str:
    """SHA-256 over the names and contents of a chart's files, its tests left out.

    It says the same of a chart in a directory and of the package that Helm makes of it: of a
    Chart.yaml, which Helm writes anew, only what it says counts, and not how.
    """
    return _sum(
        (relative, _meaning(content) if _is_metadata(relative) else content)
        for relative, content in _contents(directory, archive_paths(directory))
    )


def has_digest(directory: pathlib.Path, recorded_digest: str) -> bool:
    """Whether a chart is the one whose digest was written down, be it by a driver of before."""
    if recorded_digest == digest(directory):
        return True
    # The first drivers counted the tests of charts inside a chart, and each byte of a Chart.yaml.
    everything = sorted(_relative_paths(directory, inner_tests=True))
    return recorded_digest == _sum(_contents(directory, everything))


def store_chart(directory: pathlib.Path, store: pathlib.Path, chart: Chart | None = None) -> Chart:
    """Copy the chart in *directory* into the store, unless it is there already.

    Readers never see half a chart: the copy gets its final name when it is complete.

    :param chart: as :func:`read_chart` has read it there a moment ago; None to read it.
    :returns: the chart in the store.
    :raises errors.ChartNotFound: no chart there, or the store cannot be written.
    """
    chart = chart or read_chart(directory)
    target = directory_of(store, chart.name, chart.version, chart.digest)
    if not _is_whole(target, chart):
        try:
            if target.is_dir():
                shutil.rmtree(target, ignore_errors=True)
            _copy(directory, target)
        except OSError as error:
            raise write_error(target, error) from None
    return dataclasses.replace(chart, path=str(target))


def _is_whole(directory: pathlib.Path, chart: Chart) -> bool:
    """Whether the store has this chart; cleaners of temporary directories take files one by one."""
    try:
        return read_chart(directory).digest == chart.digest
    except errors.ChartNotFound:
        return False


def archive_paths(directory: pathlib.Path) -> list[str]:
    """The files that are a chart's, its tests left out, in an order that is always the same."""
    return sorted(_relative_paths(directory))


def directory_of(store: pathlib.Path, name: str, version: str, digest: str) -> pathlib.Path:
    """Where the store has a chart."""
    return store / name / version / digest


def unpack(archive: pathlib.Path, into: pathlib.Path) -> pathlib.Path:
    """Unpack a packaged chart; returns the chart's directory below *into*.

    :raises errors.ChartNotFound: it is not a packaged chart, or far too large for one.
    """
    try:
        with tarfile.open(archive, "r:gz") as tar:
            if sum(member.size for member in tar.getmembers()) > _UNPACKED_LIMIT:
                raise tarfile.TarError(f"more than {_UNPACKED_LIMIT} bytes")
            # The filter refuses links and paths that lead out of the directory.
            tar.extractall(into, filter="data")
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise chart_not_found(
            "This Magnum service has no usable chart",
            f"{archive}: {type(error).__name__}: {error}",
        ) from None
    return only_chart(into)


def pack_chart(directory: pathlib.Path, name: str) -> bytes:
    """The chart as ``helm package`` would lay it out; the same files give the same bytes.

    :param name: of the directory in the package.
    """
    raw = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for relative in archive_paths(directory):
            entry = tarfile.TarInfo(f"{name}/{relative}")
            content = (directory / relative).read_bytes()
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return raw.getvalue()


def only_chart(directory: pathlib.Path) -> pathlib.Path:
    """The only chart directly below a directory.

    :raises errors.ChartNotFound: there is none, or more than one.
    """
    charts = sorted(directory.glob("*/Chart.yaml"))
    if len(charts) != 1:
        raise chart_not_found(
            "This Magnum service has no usable chart",
            f"{directory}: {len(charts)} charts instead of one",
        )
    return charts[0].parent


def delete_chart(directory: pathlib.Path) -> None:
    """Delete a chart of the store, and what is empty then.

    It loses its name first, so that readers never see half a chart.

    :raises errors.ChartNotFound: the store cannot be written.
    """
    draft = directory.with_name(f"{_DRAFT}{directory.name}")
    try:
        directory.rename(draft)
        shutil.rmtree(draft)
    except OSError as error:
        raise write_error(directory, error) from None
    for parent in (directory.parent, directory.parent.parent):
        with contextlib.suppress(OSError):
            parent.rmdir()


def delete_abandoned(directory: pathlib.Path, pattern: str) -> None:
    """Take away what conductors have left in the making that were killed long ago."""
    for path in directory.glob(pattern):
        with contextlib.suppress(OSError):
            if clock.utc_now().timestamp() - path.stat().st_mtime > _ABANDONED:
                shutil.rmtree(path, ignore_errors=True)


def chart_not_found(subject: str, detail: str) -> errors.ChartNotFound:
    """The error for a chart that cannot be had; *subject* is the beginning of its sentence."""
    return errors.ChartNotFound(
        f"{subject}. Ask the operator to check the options [capi_helm] helm_chart_repo, "
        "helm_chart_name and default_helm_chart_version.",
        detail,
    )


def _sum(contents: Iterable[tuple[str, bytes]]) -> str:
    total = hashlib.sha256()
    for relative, content in contents:
        total.update(f"{relative}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()


def _contents(directory: pathlib.Path, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    return ((path, pathlib.Path(f"{directory}/{path}").read_bytes()) for path in paths)


def _is_chart(relative: str) -> bool:
    """Whether this is the directory of the chart, "", or of one inside."""
    parent, _, _ = relative.rpartition("/")
    return not relative or parent.rpartition("/")[2] == "charts"


def _is_metadata(relative: str) -> bool:
    parent, _, name = relative.rpartition("/")
    return name == "Chart.yaml" and _is_chart(parent)


# A chart is read in each verb, and Python takes longer to parse its Chart.yaml than to read the
# whole of it; what a text says is always the same.
@functools.lru_cache(maxsize=_KNOWN_TEXTS)
def _identity(text: str) -> tuple[str, str, str]:
    """Name, version and family in a Chart.yaml; it raises what a text that has none leads to."""
    metadata = yaml.safe_load(text)
    name, version = str(metadata["name"]), str(metadata["version"])
    annotations = metadata.get("annotations") or {}
    return name, version, str(annotations.get(names.CHART_FAMILY_ANNOTATION, ""))


@functools.lru_cache(maxsize=_KNOWN_TEXTS)
def _meaning(content: bytes) -> bytes:
    """What a YAML file says; its bytes if it is none."""
    try:
        return json.dumps(yaml.safe_load(content), sort_keys=True, default=str).encode()
    except (yaml.YAMLError, UnicodeDecodeError, TypeError):
        return content


def _relative_paths(directory: pathlib.Path, *, inner_tests: bool = False) -> Iterator[str]:
    top = str(directory)
    # A subchart may be a link to its neighbour in a checkout.
    for parent, directories, files in os.walk(top, followlinks=True):
        here = parent.removeprefix(top).strip("/")
        if not here or (_is_chart(here) and not inner_tests):
            directories[:] = [name for name in directories if name not in _IGNORED]
        for name in files:
            yield f"{here}/{name}" if here else name


def _copy(directory: pathlib.Path, target: pathlib.Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    delete_abandoned(target.parent, f"{_DRAFT}*")
    draft = pathlib.Path(tempfile.mkdtemp(prefix=_DRAFT, dir=target.parent))
    try:
        copy = draft / "chart"
        for relative in _relative_paths(directory):
            (copy / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(directory / relative, copy / relative)
        try:
            copy.rename(target)
        except OSError:
            # Another worker was faster; its copy has the same digest.
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
