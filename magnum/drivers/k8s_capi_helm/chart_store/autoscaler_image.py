# SPDX-License-Identifier: Apache-2.0
"""Remove the line of older charts that lets a tenant's label set the autoscaler's image.

Charts 1.1.0 and 1.2.0 of this project take the autoscaler's image from below
``global.imageRegistryPrefix``, where the label ``container_infra_prefix`` is. No values can undo
that, and a newer chart would bring newer addons, perhaps from a registry that does not have them.
So a release keeps its chart but for that line; the copy has a digest of its own.
"""

from __future__ import annotations

import dataclasses
import pathlib
import shutil

from magnum.drivers.k8s_capi_helm.chart_store import archive
from magnum.drivers.k8s_capi_helm.chart_store.directory import write_error
from magnum.drivers.k8s_capi_helm.model import Chart
from magnum.drivers.k8s_capi_helm.values.sections import autoscaler

_READABLE = ("*.tpl", "*.yaml", "*.yml", "*.txt")


def uses_tenant_registry(chart: Chart) -> bool:
    """Whether a chart's autoscaler comes from the registry that a tenant's label names."""
    return any(autoscaler.takes_prefix(text) for text in _templates(chart.path).values())


def needs_operators_image(chart: Chart) -> bool:
    """Whether there is something in a chart that :func:`with_operators_image` takes out."""
    return any(map(_is_known, _templates(chart.path).values()))


def with_operators_image(chart: Chart, store: pathlib.Path, directory: pathlib.Path) -> Chart:
    """The chart in the store, without what lets a tenant's registry reach the autoscaler.

    :param directory: an empty directory, which the caller takes away.
    :raises errors.ChartNotFound: the store cannot be written.
    """
    templates = {path: text for path, text in _templates(chart.path).items() if _is_known(text)}
    copy = directory / "chart"
    try:
        shutil.copytree(chart.path, copy)
        for path, text in templates.items():
            path_of_copy = copy / path.relative_to(chart.path)
            path_of_copy.write_text(autoscaler.without_prefix(text), encoding="utf-8")
    except OSError as error:
        raise write_error(copy, error) from None
    return dataclasses.replace(archive.store_chart(copy, store), source=chart.source)


def _templates(chart: str) -> dict[pathlib.Path, str]:
    """The files of a chart that make the autoscaler, with their texts."""
    directory = pathlib.Path(chart) / autoscaler.TEMPLATES
    paths = sorted(path for form in _READABLE for path in directory.glob(form))
    return {path: path.read_text(encoding="utf-8", errors="replace") for path in paths}


def _is_known(text: str) -> bool:
    return autoscaler.without_prefix(text) != text
