# SPDX-License-Identifier: Apache-2.0
"""The source of a chart: the operator's default, or an allowed one that a template selects."""

from __future__ import annotations

from collections.abc import Iterable
import dataclasses
import fnmatch

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.labels.value_types.versions import plain
from magnum.drivers.k8s_capi_helm.model import names

#: Stands for the charts that come with the driver.
BUNDLED = "bundled"


@dataclasses.dataclass(frozen=True, slots=True)
class ChartSource:
    """A chart's name and where it is.

    :ivar repository: an ``http(s)://`` or ``oci://`` URL, a directory, or :data:`BUNDLED`.
    """

    repository: str
    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class ChartChoice:
    """The operator's choice of charts, as the options of ``[capi_helm]`` say it.

    :ivar repository: option ``helm_chart_repo``, ``name`` is ``helm_chart_name``.
    :ivar default_version: for clusters that do not ask for one; None for the source's own.
    :ivar allowed_sources: charts that templates may name, as in the option ``allowed_charts``.
    :ivar versions: that templates may name, as in ``allowed_chart_versions``; none for all.
    """

    repository: str | None = None
    name: str | None = None
    default_version: str | None = None
    allowed_sources: Iterable[str] = ()
    versions: Iterable[str] = ()


#: Where the operator has chosen nothing.
ONLY_BUNDLED = ChartChoice()


def source_of_options(repository: str | None, name: str | None) -> ChartSource:
    """The place that the options ``helm_chart_repo`` and ``helm_chart_name`` mean together."""
    path, chart = (repository or "").rstrip("/"), name or names.CLUSTER_CHART
    if not path and "/" in chart:
        path, _, chart = chart.rstrip("/").rpartition("/")
        path = path or "/"
    return ChartSource(path or BUNDLED, chart)


def allowed_sources(entries: Iterable[str], default: ChartSource) -> tuple[ChartSource, ...]:
    """The places of the option ``allowed_charts``.

    :param entries: each a name in the operator's own repository, or a repository and a name.
    :raises errors.InvalidConfiguration: one is neither.
    """
    sources = []
    for entry in entries:
        words = entry.split()
        if len(words) == 2:
            sources.append(source_of_options(*words))
        elif len(words) == 1 and "/" in words[0]:
            sources.append(source_of_options(None, words[0]))
        elif len(words) == 1:
            sources.append(ChartSource(default.repository, words[0]))
        else:
            raise errors.InvalidConfiguration(
                "This Magnum service cannot create clusters because of its configuration. Ask its "
                "operator to look into the log.",
                f"[capi_helm] allowed_charts has {entry!r}: expected NAME, or REPOSITORY NAME",
            )
    return tuple(sources)


def check_version(version: str, patterns: Iterable[str]) -> None:
    """Refuse a version that the operator does not let templates name.

    :param version: the label ``capi_helm_chart_version``.
    :param patterns: of the versions that may be named; each may have ``*`` for any text.
    :raises errors.InvalidRequest: it is none of them.
    """
    allowed_versions = [plain(pattern) for pattern in patterns if pattern]
    if not any(fnmatch.fnmatchcase(plain(version), pattern) for pattern in allowed_versions):
        raise errors.InvalidRequest(
            "The template asks for a chart version that this cloud does not allow. Its label "
            f"capi_helm_chart_version is '{version}', and these are allowed: "
            f"{', '.join(dict.fromkeys(allowed_versions))}. Use a template without that label or "
            "with another version."
        )


def source_of(
    name: str | None, repository: str | None, default: ChartSource, others: tuple[ChartSource, ...]
) -> ChartSource:
    """The place that a template's labels ask for.

    :param name: the label ``capi_helm_chart_name``, None without.
    :param repository: the label ``capi_helm_chart_repo``, None without.
    :raises errors.InvalidRequest: the operator does not allow it.
    """
    requested = ChartSource(
        default.repository if repository is None else repository.rstrip("/"), name or default.name
    )
    if requested == default or requested in others:
        return requested
    label_texts = " and ".join(
        f"{label} '{text}'"
        for label, text in (("capi_helm_chart_name", name), ("capi_helm_chart_repo", repository))
        if text is not None
    )
    raise errors.InvalidRequest(
        f"The template asks for a chart that this cloud does not allow. It has {label_texts}: use "
        "a template without, or ask the operator to allow that chart.",
        f"[capi_helm] allowed_charts has {len(others)} other charts; requested: {requested.name} "
        f"in {requested.repository}",
    )
