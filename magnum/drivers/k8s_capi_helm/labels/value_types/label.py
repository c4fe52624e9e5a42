# SPDX-License-Identifier: Apache-2.0
"""The declaration of a label: form, default, example, help and scope."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any, cast, TypeVar

from magnum.drivers.k8s_capi_helm.labels.value_types import types

T = TypeVar("T")
D = TypeVar("D")


class LabelScope(str, enum.Enum):
    """Where a label may be set to have an effect."""

    __str__ = str.__str__

    TEMPLATE = "template"
    CLUSTER = "cluster"
    NODEGROUP = "nodegroup"


class ChangeTime(str, enum.Enum):
    """When a value of a cluster that exists can become another one."""

    __str__ = str.__str__

    NEVER = "only when it is created"
    UPGRADE = "with an upgrade"
    ANY = "at any time"


#: Of a label that a nodegroup may have otherwise than its cluster.
EVERYWHERE = (LabelScope.TEMPLATE, LabelScope.CLUSTER, LabelScope.NODEGROUP)


@dataclasses.dataclass(frozen=True, slots=True)
class Label:
    """A label as documentation, configuration and tests see it.

    :ivar default: typed value without any text; None or () where nothing is the default.
    :ivar example: a text that is valid and asks for something else than the default.
    :ivar help: full sentences for people.
    :ivar scopes: where it has an effect.
    :ivar aliases: old names that are still understood.
    :ivar immutable: it is about something that is made with the cluster and cannot be changed in
        one that runs: an upgrade keeps the cluster's value.
    :ivar requires_bundled_chart: only charts of this project's own family can do it.
    :ivar is_for_rollouts: no release has it: the operator's rollouts read it when they need it.
    """

    name: str
    label_type: types.LabelType[Any]
    default: Any
    example: str
    help: str
    scopes: tuple[LabelScope, ...] = (LabelScope.TEMPLATE, LabelScope.CLUSTER)
    aliases: tuple[str, ...] = ()
    immutable: bool = False
    requires_bundled_chart: bool = False
    is_for_rollouts: bool = False

    @property
    def change_time(self) -> ChangeTime:
        """When a cluster can be given another value: Magnum changes labels in upgrades alone."""
        return ChangeTime.NEVER if self.immutable else ChangeTime.UPGRADE


def label(
    label_type: types.LabelType[T],
    default: D,
    example: str,
    help: str,
    *,
    scopes: tuple[LabelScope, ...] = (LabelScope.TEMPLATE, LabelScope.CLUSTER),
    aliases: tuple[str, ...] = (),
    immutable: bool = False,
    requires_bundled_chart: bool = False,
) -> T | D:
    """A field of a class of labels; the attribute's own name becomes the label's."""
    declaration = Label(
        "", label_type, default, example, help, scopes, aliases, immutable, requires_bundled_chart
    )
    return cast("T | D", _field(declaration))


def rollout_label(label_type: types.LabelType[T], default: D, example: str, help: str) -> T | D:
    """The same of a label that only the operator's rollouts read."""
    declaration = Label("", label_type, default, example, help, is_for_rollouts=True)
    return cast("T | D", _field(declaration))


def _field(declaration: Label) -> Any:
    return dataclasses.field(default=declaration.default, metadata={"label": declaration})
