# SPDX-License-Identifier: Apache-2.0
"""Every cluster label: type, default, example, help; text -> typed value, or InvalidLabel.

A label is one field of :class:`Labels`: its parser, its option in ``[capi_helm_cluster_labels]``,
its row in the documentation and its test case all come from there, so a default is written down
nowhere else.

Three rules hold for every label. An empty text counts as "not given", because Horizon sends labels
that its user left empty. Words out of a fixed list are matched without regard to case, because
Horizon lower-cases what is typed. Everything else is taken exactly as it is or refused; no
character is dropped.
"""

from magnum.drivers.k8s_capi_helm.labels.effective import effective, value_text
from magnum.drivers.k8s_capi_helm.labels.notices import (
    named_notices,
    nodegroup_notices,
    Notice,
    notices,
    why_without_effect,
)
from magnum.drivers.k8s_capi_helm.labels.parser import (
    check_nodegroup,
    given_names,
    parse,
    parse_nodegroup,
    readable_labels,
    template_only_names,
    with_template_only,
)
from magnum.drivers.k8s_capi_helm.labels.registry import BY_NAME, Labels, REGISTRY
from magnum.drivers.k8s_capi_helm.labels.value_types.label import ChangeTime, Label, LabelScope
from magnum.drivers.k8s_capi_helm.labels.value_types.limits import check_merged, check_new
from magnum.drivers.k8s_capi_helm.labels.value_types.types import LabelType, OptionType

__all__ = [
    "BY_NAME",
    "REGISTRY",
    "ChangeTime",
    "Label",
    "LabelScope",
    "LabelType",
    "Labels",
    "Notice",
    "OptionType",
    "check_merged",
    "check_new",
    "check_nodegroup",
    "effective",
    "given_names",
    "named_notices",
    "nodegroup_notices",
    "notices",
    "parse",
    "parse_nodegroup",
    "readable_labels",
    "template_only_names",
    "value_text",
    "why_without_effect",
    "with_template_only",
]
