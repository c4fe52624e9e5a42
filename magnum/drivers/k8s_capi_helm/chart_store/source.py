# SPDX-License-Identifier: Apache-2.0
"""The source of a chart: the operator's default, or an allowed one that a template selects."""

from __future__ import annotations

from collections.abc import Iterable
import dataclasses
import fnmatch

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.labels.versions import plain
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
    :ivar allowed: charts that templates may name, as in the option ``allowed_charts``.
    :ivar versions: that templates may name, as in ``allowed_chart_versions``; none for all.
    """

    repository: str | None = None
    name: str | None = None
    default_version: str | None = None
    allowed: Iterable[str] = ()
    versions: Iterable[str] = ()


#: Where the operator has chosen nothing.
ONLY_BUNDLED = ChartChoice()


def bundled(repository: str | None, name: str | None) -> ChartSource:
    """The place that the options ``helm_chart_repo`` and ``helm_chart_name`` mean together."""
    where, what = (repository or "").rstrip("/"), name or names.CLUSTER_CHART
    if not where and "/" in what:
        where, _, what = what.rstrip("/").rpartition("/")
        where = where or "/"
    return ChartSource(where or BUNDLED, what)


def allowed(entries: Iterable[str], default: ChartSource) -> tuple[ChartSource, ...]:
    """The places of the option ``allowed_charts``.

    :param entries: each a name in the operator's own repository, or a repository and a name.
    :raises errors.Misconfigured: one is neither.
    """
    found = []
    for entry in entries:
        words = entry.split()
        if len(words) == 2:
            found.append(bundled(*words))
        elif len(words) == 1 and "/" in words[0]:
            found.append(bundled(None, words[0]))
        elif len(words) == 1:
            found.append(ChartSource(default.repository, words[0]))
        else:
            raise errors.Misconfigured(
                "This Magnum service cannot create clusters because of its configuration. Ask its "
                "operator to look into the log.",
                f"[capi_helm] allowed_charts has {entry!r}: expected NAME, or REPOSITORY NAME",
            )
    return tuple(found)


def check_version(version: str, patterns: Iterable[str]) -> None:
    """Refuse a version that the operator does not let templates name.

    :param version: the label ``capi_helm_chart_version``.
    :param patterns: of the versions that may be named; each may have ``*`` for any text.
    :raises errors.InvalidRequest: it is none of them.
    """
    known = [plain(one) for one in patterns if one]
    if not any(fnmatch.fnmatchcase(plain(version), one) for one in known):
        raise errors.InvalidRequest(
            "The template asks for a chart version that this cloud does not allow. Its label "
            f"capi_helm_chart_version is '{version}', and these are allowed: "
            f"{', '.join(dict.fromkeys(known))}. Use a template without that label or with another "
            "version."
        )


def source_of(
    name: str | None, repository: str | None, default: ChartSource, others: tuple[ChartSource, ...]
) -> ChartSource:
    """The place that a template's labels ask for.

    :param name: the label ``capi_helm_chart_name``, None without.
    :param repository: the label ``capi_helm_chart_repo``, None without.
    :raises errors.InvalidRequest: the operator does not allow it.
    """
    wanted = ChartSource(
        default.repository if repository is None else repository.rstrip("/"), name or default.name
    )
    if wanted == default or wanted in others:
        return wanted
    given = " and ".join(
        f"{label} '{text}'"
        for label, text in (("capi_helm_chart_name", name), ("capi_helm_chart_repo", repository))
        if text is not None
    )
    raise errors.InvalidRequest(
        f"The template asks for a chart that this cloud does not allow. It has {given}: use a "
        "template without, or ask the operator to allow that chart.",
        f"[capi_helm] allowed_charts has {len(others)} other charts; requested: {wanted.name} in "
        f"{wanted.repository}",
    )
