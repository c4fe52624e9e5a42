# SPDX-License-Identifier: Apache-2.0
"""Which chart a cluster gets and which one it has, found in the store first."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import dataclasses
import pathlib
import re
import shutil
import tempfile

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors, names
from magnum.drivers.k8s_capi_helm.chart_store import files
from magnum.drivers.k8s_capi_helm.helm_client import HelmClient
from magnum.drivers.k8s_capi_helm.model import Chart, LiveRelease

LOG = logging.getLogger(__name__)


class ChartStore:
    """Charts on this host. Nothing is read before the first call.

    The source of new charts is, in this order: the operator's repository (an ``http(s)://`` or
    ``oci://`` URL, or a directory), the operator's chart name when it is itself an ``oci://``
    reference or a path, the charts bundled with the driver.

    :param bundled: directory with the bundled charts, each in a directory of its name.
    :param directory: the store, made when needed; it may be lost at any time.
    :param helm: fetches from repositories; None where there are none.
    :param default_version: for clusters that do not ask for one; None for the source's own.
    """

    def __init__(
        self,
        *,
        bundled: pathlib.Path,
        directory: pathlib.Path,
        helm: HelmClient | None,
        repository: str | None,
        name: str | None,
        default_version: str | None,
    ) -> None:
        self._bundled = bundled
        self._directory = directory
        self._helm = helm
        self._repository = repository
        self._name = name
        self._default_version = default_version

    @property
    def origin(self) -> str:
        """Where new charts come from, for the record: ``bundled``, or repository and name.

        A user and password in a repository's URL are left out.
        """
        places = " ".join(filter(None, (self._repository, self._name)))
        return re.sub(r"//[^/@ ]*@", "//", places) or "bundled"

    def wanted(self, version_label: str | None) -> Chart:
        """The chart for a new cluster.

        :param version_label: the label ``capi_helm_chart_version``, None without.
        :raises errors.ChartNotFound: the source does not have it.
        :raises errors.DriverError: helm or the repository cannot be used.
        """
        version = version_label or self._default_version
        with self._source(version) as source:
            chart = files.read(source)
            if version is not None and _plain(chart.version) != _plain(version):
                raise errors.ChartNotFound(
                    f"Chart '{chart.name}' is here in version {chart.version}, not {version}. "
                    "Correct the label 'capi_helm_chart_version', or ask the operator for that "
                    "version.",
                    f"{source}",
                )
            return files.keep(source, self._directory)

    def of_release(self, live: LiveRelease, digest: str) -> Chart:
        """The very chart that a release has now.

        :param digest: of the chart when it was applied, "" when nobody wrote that down.
        :raises errors.ChartNotFound: it is neither in the store nor at the source.
        :raises errors.DriverError: helm or the repository cannot be used.
        """
        kept = self._kept(live, digest)
        if kept is not None:
            return kept
        try:
            chart = self.wanted(live.chart_version)
        except errors.ChartNotFound as error:
            raise _lost(live, digest, error.detail) from None
        if chart.name != live.chart_name or chart.family != live.chart_family:
            raise _lost(live, digest, f"the source has {chart.family} {chart.name}")
        if digest and chart.digest != digest:
            raise _lost(live, digest, f"the source has other contents: {chart.digest}")
        return chart

    # ---------------------------------------------------------------------------------------------
    def _kept(self, live: LiveRelease, digest: str) -> Chart | None:
        """The chart of a release from the store."""
        if digest:
            place = files.place_of(self._directory, live.chart_name, live.chart_version, digest)
            with contextlib.suppress(errors.ChartNotFound):
                chart = files.read(place)
                if files.has_digest(place, digest):
                    return dataclasses.replace(chart, digest=digest)
                LOG.warning("%s has been changed; it is fetched again", place)
                shutil.rmtree(place, ignore_errors=True)
        return None

    @contextlib.contextmanager
    def _source(self, version: str | None) -> Iterator[pathlib.Path]:
        """The directory of the chart at its source; a fetched one is there only meanwhile."""
        name = self._name or names.CLUSTER_CHART
        repository = (self._repository or "").rstrip("/")
        if repository.startswith(("http://", "https://")):
            reference, remote = name, repository
        elif repository.startswith("oci://"):
            reference, remote = f"{repository}/{name}", None
        elif repository or name.startswith("/"):
            with self._local(pathlib.Path(repository) / name, version) as directory:
                yield directory
            return
        elif name.startswith("oci://"):
            reference, remote = name, None
        else:
            yield self._bundled / name
            return
        if self._helm is None or version is None:
            raise files.absent(
                "A chart from a repository needs a version",
                f"{reference} in {remote or 'an OCI registry'}, version {version}",
            )
        with self._scratch() as scratch:
            yield files.chart_in(
                self._helm.pull(reference, repository=remote, version=version, into=scratch)
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
                with self._scratch() as scratch:
                    yield files.unpack(archive, scratch)
                return
        raise files.absent(
            "There is no chart where this Magnum looks for one",
            ", ".join(str(archive) for archive in archives),
        )

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[pathlib.Path]:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            scratch = tempfile.TemporaryDirectory(prefix=".fetched-", dir=self._directory)
        except OSError as error:
            raise files.absent(
                "This Magnum conductor cannot keep the chart of this cluster", str(error)
            ) from None
        with scratch as path:
            yield pathlib.Path(path)


def _plain(version: str) -> str:
    return version.removeprefix("v")


def _lost(live: LiveRelease, digest: str, detail: str) -> errors.ChartNotFound:
    return errors.ChartNotFound(
        f"The chart '{live.chart_name}' {live.chart_version} that this cluster was made with is "
        "not to be had here in the same form, and another one could replace its machines. Ask the "
        "operator to make it available again.",
        f"wanted family '{live.chart_family}', digest {digest or 'unknown'}: {detail}",
    )
