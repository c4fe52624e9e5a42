# SPDX-License-Identifier: Apache-2.0
"""The options of rollouts: which clusters, and how."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.desired.label_option import read_labels
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import (
    find_own_cluster,
    find_template,
    own_clusters,
)
from magnum.drivers.k8s_capi_helm.commands.rollout.plan import wave_numbers
from magnum.drivers.k8s_capi_helm.commands.rollout.record import Rollout, RolloutMember
from magnum.drivers.k8s_capi_helm.labels.value_types.maintenance_window import parse_window
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of

_MINUTE = 60.0


def add_conditions(parser: argparse.ArgumentParser) -> None:
    """The options of :func:`chosen_clusters`."""
    group = parser.add_argument_group("which clusters (all conditions hold)")
    group.add_argument("--project", metavar="ID", help="Those of this project.")
    group.add_argument(
        "--from-template", metavar="TEMPLATE", help="Those that have this template now."
    )
    group.add_argument(
        "--kubernetes", metavar="VERSION", help="Those whose version begins so, such as v1.33."
    )
    group.add_argument(
        "--with-label", action="append", default=[], metavar="NAME=VALUE", help="With a label."
    )
    group.add_argument(
        "--cluster", action="append", default=[], metavar="CLUSTER", help="These alone."
    )


def add_limits(parser: argparse.ArgumentParser) -> None:
    """How a rollout is carried out."""
    group = parser.add_argument_group("how")
    group.add_argument(
        "--waves",
        default="1,10%",
        metavar="SIZES",
        help="Sizes of the waves, as numbers or percentages of all; the last one is repeated. "
        "1,10%% by default.",
    )
    group.add_argument(
        "--budget", type=int, default=5, help="Clusters at once, 5 by default.", metavar="N"
    )
    group.add_argument(
        "--max-batch-size", type=int, default=1, metavar="N", help="Of the upgrades."
    )
    group.add_argument(
        "--soak", type=float, default=30, metavar="MINUTES", help="Between waves, default 30."
    )
    group.add_argument(
        "--timeout", type=float, default=120, metavar="MINUTES", help="Of a cluster, 120."
    )
    group.add_argument(
        "--window",
        default="",
        help="When upgrades are requested, such as 'Sat,Sun 22:00-04:00 Europe/Berlin'.",
    )


def check_limits(arguments: argparse.Namespace) -> None:
    """Refuse what no rollout can be made of.

    :raises errors.InvalidRequest: naming option and value.
    """
    for option, least in (("budget", 1), ("max_batch_size", 1), ("soak", 0), ("timeout", 1)):
        value = getattr(arguments, option)
        if value < least:
            raise errors.InvalidRequest(
                "An option of the rollout is too small. --"
                f"{option.replace('_', '-')} is {value:g}, and at least {least} is needed."
            )
    if arguments.window:
        parse_window(arguments.window)


def new_rollout(
    name: str,
    arguments: argparse.Namespace,
    template: Any,
    clusters: list[Any],
    *,
    is_auto: bool = False,
) -> Rollout:
    """A rollout that is not recorded yet.

    :param arguments: with the options of :func:`add_limits`.
    :raises errors.InvalidRequest: the sizes of the waves cannot be read.
    """
    try:
        waves = wave_numbers(arguments.waves.split(","), len(clusters))
    except ValueError as error:
        raise errors.InvalidRequest(
            "--waves takes sizes with commas between them, such as 1,5,25%. It has "
            f"'{arguments.waves}': {error}."
        ) from None
    members = tuple(
        RolloutMember(cluster.uuid, cluster.name or "", wave, cluster.cluster_template_id)
        for cluster, wave in zip(clusters, waves, strict=True)
    )
    return Rollout(
        name=name,
        template=template.uuid,
        template_name=template.name or "",
        members=members,
        budget=arguments.budget,
        max_batch_size=arguments.max_batch_size,
        soak=arguments.soak * _MINUTE,
        timeout=arguments.timeout * _MINUTE,
        window=parse_window(arguments.window).text if arguments.window else "",
        is_auto=is_auto,
    )


def chosen_clusters(arguments: argparse.Namespace) -> Iterator[Any]:
    """The clusters that all conditions choose, by name.

    :raises errors.InvalidRequest: a condition cannot be read, or names what does not exist.
    """
    named = {find_own_cluster(text).uuid for text in arguments.cluster}
    old = find_template(arguments.from_template).uuid if arguments.from_template else ""
    labels = read_labels("--with-label", arguments.with_label)
    for cluster in own_clusters(arguments.project):
        texts = cluster.labels or {}
        if (
            release_of(cluster.stack_id)
            and not (cluster.status or "").startswith("DELETE_")
            and (not named or cluster.uuid in named)
            and (not old or cluster.cluster_template_id == old)
            and (cluster.coe_version or "").startswith(arguments.kubernetes or "")
            and all(texts.get(name) == text for name, text in labels.items())
        ):
            yield cluster
