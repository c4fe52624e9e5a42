# SPDX-License-Identifier: Apache-2.0
"""The charts that the store on this host has, for who tidies it up."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.chart_store import archive
from magnum.drivers.k8s_capi_helm.chart_store.directory import ChartDirectory
from magnum.drivers.k8s_capi_helm.model import Chart


@dataclasses.dataclass(frozen=True, slots=True)
class StoredChart:
    """A chart in the store.

    :ivar chart: its digest is that under which it is stored.
    :ivar size: in bytes.
    :ivar stored_at: seconds since the epoch.
    """

    chart: Chart
    size: int
    stored_at: float

    def has_digest(self, recorded_digest: str) -> bool:
        """Whether it is the chart whose digest a release has recorded."""
        path = pathlib.Path(self.chart.path)
        return recorded_digest == self.chart.digest or archive.has_digest(path, recorded_digest)


class ChartInventory:
    """What is in the directory of the store."""

    def __init__(self, directory: ChartDirectory) -> None:
        self._directory = directory

    def list_charts(self) -> list[StoredChart]:
        """All charts, by name, version and digest."""
        found = []
        for directory in self._directory.read_paths():
            for path in sorted(directory.glob("*/*/[!.]*")):
                # One that another process deletes meanwhile is none any more.
                with contextlib.suppress(errors.ChartNotFound, OSError):
                    chart = dataclasses.replace(archive.read_chart(path), digest=path.name)
                    size = sum((path / name).stat().st_size for name in archive.archive_paths(path))
                    found.append(StoredChart(chart, size, path.stat().st_mtime))
        return found

    def is_kept(self, chart: Chart) -> bool:
        """Whether a chart is in the configured directory, and not in one of this process alone."""
        return pathlib.Path(chart.path).is_relative_to(self._directory.read_paths()[0])

    def delete(self, stored_chart: StoredChart) -> None:
        """Delete a chart; it is fetched again when it is needed.

        :raises errors.ChartNotFound: the store cannot be written.
        """
        archive.delete_chart(pathlib.Path(stored_chart.chart.path))
