# SPDX-License-Identifier: Apache-2.0
"""Cache packages of applied charts in ConfigMaps, for conductors that do not have them.

Helm keeps in a release its chart's templates, but not those of the charts inside it. So each chart
that was applied in a namespace lies there once as well, by its digest: a conductor whose store is
new, or lost, needs neither the chart's repository nor the driver that it came with.
"""

from __future__ import annotations

import base64
from collections.abc import Collection
import pathlib

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors, kube_client
from magnum.drivers.k8s_capi_helm.chart_store import archive as chart_archive
from magnum.drivers.k8s_capi_helm.model import Chart, Json, names

LOG = logging.getLogger(__name__)

_KEY = "chart.tgz"
# An object on the management cluster ends at 1 MiB, or at 1.5 MiB with what is around it.
_LARGEST = 1_000_000


class ChartConfigMaps:
    """The packages in the namespaces of one management cluster."""

    def __init__(self, kube: kube_client.KubeClient) -> None:
        self._kube = kube

    def keep(self, namespace: str, chart: Chart) -> None:
        """Put a chart's package into a namespace, unless it is there.

        One that is too large, or that may not be written, is left out: the store still has it.

        :raises errors.DriverError: the management cluster does not answer.
        """
        name = names.chart_copy(chart.digest)
        try:
            if self._kube.get(names.CONFIG_MAP, namespace, name) is not None:
                return
            package = chart_archive.pack_chart(pathlib.Path(chart.path), names.CLUSTER_CHART)
            if len(package) > _LARGEST:
                LOG.warning(
                    "Chart %s %s is too large for a ConfigMap: it is not cached.",
                    chart.name,
                    chart.version,
                )
                return
            self._kube.create(names.CONFIG_MAP, _manifest(namespace, chart, package))
        except errors.Conflict:
            LOG.debug("Chart %s is already cached by another worker.", chart.digest)
        except errors.ManagementRefused as error:
            LOG.warning(
                "Chart %s %s is not cached in a ConfigMap: %s",
                chart.name,
                chart.version,
                error.detail,
            )

    def restore(self, namespace: str, digest: str, into: pathlib.Path) -> pathlib.Path | None:
        """Unpack a chart in a new directory below *into*; None when it is not there.

        Whether it is what it says has to be checked by its digest.

        :raises errors.ChartNotFound: what is there is not a chart.
        :raises errors.DriverError: the management cluster does not answer.
        """
        config_map = self._kube.get(names.CONFIG_MAP, namespace, names.chart_copy(digest))
        text = ((config_map or {}).get("binaryData") or {}).get(_KEY)
        if not text:
            return None
        archive = into / _KEY
        archive.write_bytes(base64.b64decode(text))
        return chart_archive.unpack(archive, into)

    def delete_unused(self, namespace: str, used: Collection[str]) -> None:
        """Take away the packages that none of the digests *used* is of.

        :raises errors.DriverError: the management cluster does not answer, or refuses.
        """
        needed = {names.chart_copy(digest) for digest in used}
        self._kube.delete_collection(
            names.CONFIG_MAP, namespace, names.CHART_COPY_LABELS, keep=needed
        )


def _manifest(namespace: str, chart: Chart, package: bytes) -> Json:
    return {
        "metadata": {
            "name": names.chart_copy(chart.digest),
            "namespace": namespace,
            "labels": {**names.CHART_COPY_LABELS, names.LABEL_MOVE: ""},
            "annotations": {names.CHART_COPY_ABOUT: f"{chart.name} {chart.version}"},
        },
        "immutable": True,
        "binaryData": {_KEY: base64.b64encode(package).decode()},
    }
