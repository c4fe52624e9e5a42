# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm explain``: what each label and field of a cluster is, moves and rolls."""

from __future__ import annotations

import argparse
import difflib

from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.commands.explain import explanation
from magnum.drivers.k8s_capi_helm.commands.explain.explanation import ExplainedCluster, Explanation
from magnum.drivers.k8s_capi_helm.commands.explain.field_rows import field_rows
from magnum.drivers.k8s_capi_helm.commands.explain.label_rows import absent_row, label_rows
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import (
    add_cluster_argument,
    find_own_cluster,
)
from magnum.drivers.k8s_capi_helm.commands.output.lister import (
    ExitStatus,
    operator_text,
    OperatorLister,
    Rows,
)
from magnum.drivers.k8s_capi_helm.labels import unsupported
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader
from magnum.drivers.k8s_capi_helm.magnum_objects.validation.fields import FIELDS
from magnum.drivers.k8s_capi_helm.model import Json
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

#: Names that are printed instead of one that does not exist.
_NEAREST = 5


class Explain(OperatorLister):
    """Explain labels and fields of a cluster: value, source, when it changes, what that rolls.

    Without LABEL all labels of the driver and all fields that it uses. With LABEL, or with --long,
    also the paths of the Helm values and the objects that another value moves. Exit status 0:
    everything that is set is in force, 1: something that is set has no effect or is not in force,
    3: there is no such cluster, label or field, or the release cannot be read.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which cluster, and what of it."""
        parser = super().get_parser(prog_name)
        add_cluster_argument(parser)
        parser.add_argument(
            "label", nargs="?", metavar="LABEL", help="A label, or a field of Magnum's objects."
        )
        parser.add_argument(
            "--long", action="store_true", help="Print paths of values and objects of all."
        )
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each label and field, more where nodegroups have their own."""
        cluster = find_own_cluster(arguments.cluster)
        conf, status = run.settings, ExitStatus.OK
        live_values: Json = {}
        try:
            if cluster.stack_id:
                namespace = reader.cluster_namespace(cluster, conf)
                helm = run.of_cluster(cluster.stack_id).clients.helm
                live = helm.live(namespace, release_of(cluster.stack_id))
                live_values = live.values if live else {}
        except errors.DriverError as error:
            self.program.LOG.error("%s", operator_text(error))
            status = ExitStatus.UNKNOWN
        request = reader.cluster_request(cluster, cluster.nodegroups, conf)
        subject = ExplainedCluster(cluster, conf, request, live_values)
        found = explanations(subject, arguments.label or "")
        if status is ExitStatus.OK and not all(one.is_in_force for one in found):
            status = ExitStatus.WARNING
        is_long = bool(arguments.label or arguments.long)
        return (
            explanation.columns(long=is_long),
            [one.columns(long=is_long) for one in found],
            status,
        )


def explanations(subject: ExplainedCluster, name: str) -> list[Explanation]:
    """Rows of all labels and fields of a cluster, or of one.

    :param name: of a label (also an old one, or one of another driver) or of a field; "" for all.
    :raises errors.InvalidRequest: there is no such label or field.
    """
    if not name:
        return [*label_rows(subject), *field_rows(subject)]
    label = labels.BY_NAME.get(name)
    names = {name, label.name} if label else {name}
    found = [one for one in label_rows(subject) if one.name in names]
    found += field_rows(subject, name)
    if found:
        return found
    if name in _of_other_drivers():
        return [absent_row(name)]
    known = {*labels.BY_NAME, *_of_other_drivers(), *(field.name for field in FIELDS)}
    nearest = difflib.get_close_matches(name, sorted(known), n=_NEAREST, cutoff=0.5)
    advice = f"The nearest names: {', '.join(nearest)}." if nearest else "See 'explain CLUSTER'."
    raise errors.InvalidRequest(f"There is no label and no field '{name}'. {advice}")


def _of_other_drivers() -> frozenset[str]:
    return unsupported.BUNDLED | unsupported.HEAT | {*unsupported.REFUSED, *unsupported.OPERATORS}
