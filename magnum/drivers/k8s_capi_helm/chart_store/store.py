# SPDX-License-Identifier: Apache-2.0
"""The chart of a new or an existing cluster, from the local store first."""

from __future__ import annotations

from collections.abc import Collection, Iterator
import contextlib
import dataclasses
import pathlib
import re
import shutil
import tempfile
from typing import Protocol

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.chart_store import archive as chart_archive
from magnum.drivers.k8s_capi_helm.chart_store import autoscaler_image
from magnum.drivers.k8s_capi_helm.chart_store import source as chart_source
from magnum.drivers.k8s_capi_helm.chart_store.configmap import ChartConfigMaps
from magnum.drivers.k8s_capi_helm.chart_store.directory import ChartDirectory, write_error
from magnum.drivers.k8s_capi_helm.chart_store.inventory import ChartInventory
from magnum.drivers.k8s_capi_helm.labels.value_types.versions import plain
from magnum.drivers.k8s_capi_helm.model import Chart, LiveRelease

LOG = logging.getLogger(__name__)

_FETCHED = ".fetched-"


class ChartPuller(Protocol):
    """What fetches charts from repositories; ``helm.HelmClient`` does."""

    def pull(
        self, reference: str, *, repository: str | None, version: str | None, into: pathlib.Path
    ) -> pathlib.Path:
        """Fetch a chart and unpack it in a new directory below *into*."""


class ChartStore:
    """Charts on this host. Nothing is read before the first call.

    The source of new charts is, in this order: what the template names, if the operator allows it;
    the operator's repository (an ``http(s)://`` or ``oci://`` URL, or a directory); the operator's
    chart name when it is itself an ``oci://`` reference or a path; the charts bundled with the
    driver.

    :param bundled_charts: directory with the bundled charts, each in a directory of its name.
    :param directory: the store, made when needed; it may be lost at any time.
    :param helm: fetches from repositories; None where there are none.
    :param copies: applied charts on the management cluster; None where there are none.
    """

    def __init__(
        self,
        *,
        bundled_charts: pathlib.Path,
        directory: pathlib.Path,
        choice: chart_source.ChartChoice = chart_source.ONLY_BUNDLED,
        helm: ChartPuller | None = None,
        copies: ChartConfigMaps | None = None,
    ) -> None:
        self._bundled = bundled_charts
        self._directory = ChartDirectory(directory)
        self.inventory = ChartInventory(self._directory)
        self._helm = helm
        self._own = chart_source.source_of_options(choice.repository, choice.name)
        self._default_version = choice.default_version
        self._allowed = tuple(choice.allowed_sources)
        self._versions = tuple(choice.versions)
        self._copies = copies

    def for_new_cluster(
        self, version: str | None, *, name: str | None = None, repository: str | None = None
    ) -> Chart:
        """The chart for a new cluster.

        :param version: the label ``capi_helm_chart_version``, None without.
        :param name: the label ``capi_helm_chart_name``, None without.
        :param repository: the label ``capi_helm_chart_repo``, None without.
        :raises errors.InvalidRequest: the operator does not let templates name it.
        :raises errors.ChartNotFound: the source does not have it.
        :raises errors.DriverError: helm or the repository cannot be used.
        """
        source = chart_source.source_of(name, repository, self._own, self._others())
        if version and self._versions:
            chart_source.check_version(version, (*self._versions, self._default_version or ""))
        return self._without_prefix(self._fetch(source, version or self._default_version))

    def secure(self, namespace: str, chart: Chart) -> None:
        """Keep a chart that is about to be applied where every conductor finds it.

        :raises errors.DriverError: the management cluster does not answer.
        """
        if self._copies is not None:
            self._copies.keep(namespace, chart)

    def delete_unused(self, namespace: str, used: Collection[str]) -> None:
        """Take away the copies of charts in a namespace that none of the digests *used* is of.

        :raises errors.DriverError: the management cluster does not answer, or refuses.
        """
        if self._copies is not None:
            self._copies.delete_unused(namespace, used)

    def of_release(self, live: LiveRelease, digest: str) -> Chart:
        """The very chart that a release has now, but for the image of its autoscaler.

        :param digest: of the chart when it was applied, "" when nobody wrote that down.
        :raises errors.ChartNotFound: it is neither in the store nor at the source.
        :raises errors.DriverError: helm or the repository cannot be used.
        """
        stored = self._stored(live, digest) or self._restored(live.namespace, digest)
        if stored is not None:
            return self._without_prefix(stored)
        details = []
        for source in self._sources(live, digest):
            try:
                chart = self._fetch(source, live.chart_version)
                mended = self._without_prefix(chart)
            except errors.ChartNotFound as error:
                details.append(error.detail)
                continue
            if chart.name != live.chart_name or chart.family != live.chart_family:
                details.append(f"the source has {chart.family} {chart.name}")
            elif digest not in ("", chart.digest, mended.digest):
                details.append(f"the source has other contents: {chart.digest}")
            else:
                return mended
        raise _lost(live, digest, "; ".join(details))

    def recorded_chart(self, namespace: str, digest: str) -> Chart | None:
        """The chart that was applied in a namespace under a digest; None if it is not cached.

        :raises errors.DriverError: the management cluster does not answer.
        """
        for path in self._cached(digest) if digest else ():
            if chart_archive.has_digest(path, digest):
                return self._without_prefix(
                    dataclasses.replace(chart_archive.read_chart(path), digest=digest)
                )
        restored = self._restored(namespace, digest)
        return restored and self._without_prefix(restored)

    def has_stored(self, digest: str) -> bool:
        """Whether the store on this host has the chart with a digest."""
        return any(chart_archive.has_digest(path, digest) for path in self._cached(digest))

    def named_chart(
        self, version: str | None, *, name: str | None = None, repository: str | None = None
    ) -> tuple[str, str]:
        """Name and version of the chart of a new cluster; arguments as of :meth:`for_new_cluster`.

        Nothing is fetched from a repository: there a chart has a version.

        :raises errors.DriverError: as :meth:`for_new_cluster`.
        """
        source = chart_source.source_of(name, repository, self._own, self._others())
        wanted = version or self._default_version
        if wanted is not None:
            return source.name, plain(wanted)
        with self._source(source, None) as directory:
            chart = chart_archive.read_chart(directory)
        return chart.name, plain(chart.version)

    # ---------------------------------------------------------------------------------------------
    def _stored(self, live: LiveRelease, digest: str) -> Chart | None:
        """The chart of a release from the store."""
        for directory in self._directory.read_paths() if digest else ():
            path = chart_archive.directory_of(
                directory, live.chart_name, live.chart_version, digest
            )
            with contextlib.suppress(errors.ChartNotFound):
                chart = chart_archive.read_chart(path)
                if digest == chart.digest or chart_archive.has_digest(path, digest):
                    return dataclasses.replace(chart, digest=digest)
                LOG.warning("Chart %s has changed and is fetched again", path)
                shutil.rmtree(path, ignore_errors=True)
        return None

    def _cached(self, digest: str) -> Iterator[pathlib.Path]:
        """Where a chart with this digest may be cached, whatever its name."""
        for directory in self._directory.read_paths():
            yield from directory.glob(f"*/*/{digest}")

    def _restored(self, namespace: str, digest: str) -> Chart | None:
        """The chart of a release from the management cluster, if it is the very one."""
        if not digest or self._copies is None:
            return None
        with contextlib.suppress(errors.ChartNotFound), self._scratch() as directory:
            path = self._copies.restore(namespace, digest, directory)
            if path is not None and chart_archive.has_digest(path, digest):
                return dataclasses.replace(
                    chart_archive.store_chart(path, self._directory.write_path()), digest=digest
                )
        return None

    def _without_prefix(self, chart: Chart) -> Chart:
        """A chart as it may be given to Helm."""
        if not autoscaler_image.needs_operators_image(chart):
            return chart
        with self._scratch() as directory:
            return autoscaler_image.with_operators_image(
                chart, self._directory.write_path(), directory
            )

    def _others(self) -> tuple[chart_source.ChartSource, ...]:
        return chart_source.allowed_sources(self._allowed, self._own)

    def _sources(self, live: LiveRelease, digest: str) -> Iterator[chart_source.ChartSource]:
        """Where the chart of a release may come from; without its digest only the usual place."""
        yield self._own
        for source in self._others() if digest else ():
            if source.name == live.chart_name and source != self._own:
                yield source

    def _fetch(self, chart_source_used: chart_source.ChartSource, version: str | None) -> Chart:
        """The chart at a place in a version, put into the store."""
        with self._source(chart_source_used, version) as source:
            chart = chart_archive.read_chart(source)
            if version is not None and plain(chart.version) != plain(version):
                raise errors.ChartNotFound(
                    "The chart is not available in the wanted version. Chart "
                    f"'{chart.name}' is available in version {chart.version}, not {version}. "
                    "Correct the label 'capi_helm_chart_version', or ask the operator for that "
                    "version.",
                    f"{source}",
                )
            try:
                chart = chart_archive.store_chart(source, self._directory.write_path(), chart)
            except errors.ChartNotFound:
                # A bundled one stays where it is, and can be used there.
                if chart_source_used.repository != chart_source.BUNDLED:
                    raise
            return dataclasses.replace(chart, source=_public_source(chart_source_used))

    @contextlib.contextmanager
    def _source(
        self, origin: chart_source.ChartSource, version: str | None
    ) -> Iterator[pathlib.Path]:
        """The directory of the chart at its source; a fetched one is there only meanwhile."""
        name, repository = origin.name, origin.repository
        if repository.startswith(("http://", "https://")):
            reference, remote = name, repository
        elif repository.startswith("oci://"):
            reference, remote = f"{repository}/{name}", None
        elif repository == chart_source.BUNDLED:
            yield self._bundled / name
            return
        else:
            with self._local(pathlib.Path(repository) / name, version) as directory:
                yield directory
            return
        if self._helm is None or version is None:
            raise chart_archive.chart_not_found(
                "A chart from a repository needs a version",
                f"{_public_source(origin)}, version {version}",
            )
        with self._scratch() as work_directory:
            yield chart_archive.only_chart(
                self._helm.pull(reference, repository=remote, version=version, into=work_directory)
            )

    @contextlib.contextmanager
    def _local(self, path: pathlib.Path, version: str | None) -> Iterator[pathlib.Path]:
        """A chart in a directory, in an archive, or in an archive named with its version."""
        archives = [path, *([path.with_name(f"{path.name}-{version}.tgz")] if version else [])]
        if path.is_dir():
            yield path
            return
        for archive in archives:
            if archive.is_file():
                with self._scratch() as work_directory:
                    yield chart_archive.unpack(archive, work_directory)
                return
        raise chart_archive.chart_not_found(
            "This Magnum service has no chart",
            ", ".join(str(archive) for archive in archives),
        )

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[pathlib.Path]:
        directory = self._directory.write_path()
        try:
            chart_archive.delete_abandoned(directory, f"{_FETCHED}*")
            temporary = tempfile.TemporaryDirectory(prefix=_FETCHED, dir=directory)
        except OSError as error:
            raise write_error(directory, error) from None
        with temporary as path:
            yield pathlib.Path(path)


def _public_source(source: chart_source.ChartSource) -> str:
    """A place for the record, without the user and password in a repository's URL."""
    if source.repository == chart_source.BUNDLED:
        return chart_source.BUNDLED
    return re.sub(r"//[^/@ ]*@", "//", f"{source.repository} {source.name}")


def _lost(live: LiveRelease, digest: str, detail: str) -> errors.ChartNotFound:
    return errors.ChartNotFound(
        "The chart that this cluster was created with is not available any more, or has changed. "
        f"Any other chart than '{live.chart_name}' {live.chart_version} could replace its "
        "machines. Ask the operator to make it available again.",
        f"wanted family '{live.chart_family}', digest {digest or 'unknown'}: {detail}",
    )
