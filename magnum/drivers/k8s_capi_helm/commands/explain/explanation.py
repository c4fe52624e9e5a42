# SPDX-License-Identifier: Apache-2.0
"""What is explained of a label or of a field, and what all explanations of a cluster need."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
import dataclasses
from typing import Any

from magnum.drivers.k8s_capi_helm.commands.explain import effects
from magnum.drivers.k8s_capi_helm.commands.explain.effects import ValueEffect
from magnum.drivers.k8s_capi_helm.commands.output.secret_mask import is_sensitive, MASK, SecretMask
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.labels import ChangeTime
from magnum.drivers.k8s_capi_helm.magnum_objects import notices
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader
from magnum.drivers.k8s_capi_helm.model import ClusterRequest, Json, NodeGroupRequest

CLUSTER = "cluster"
#: Where nothing is replaced.
NOTHING = "nothing"
_COLUMNS = ("Name", "Where", "Value", "Source", "Changes", "Rolls", "Notice")
_LONG_COLUMNS = (*_COLUMNS, "Values", "Objects")


@dataclasses.dataclass(frozen=True, slots=True)
class Explanation:
    """A label or a field of one of Magnum's objects.

    :ivar owner: ``cluster``, ``cluster template``, or a nodegroup.
    :ivar value: that is in force, as a text.
    :ivar source: where it comes from, "" where nothing has set it.
    :ivar changes: when it can become another one.
    :ivar rolls: whose machines another one replaces.
    :ivar notice: why what is set is not in force, or what there is to say of it besides.
    :ivar is_in_force: whether everything that is set is.
    """

    name: str
    owner: str
    value: str = ""
    source: str = ""
    changes: str = ""
    rolls: str = ""
    notice: str = ""
    effect: ValueEffect = effects.NONE
    is_in_force: bool = True

    def columns(self, *, long: bool) -> tuple[str, ...]:
        """The printed row."""
        value = MASK if self.value and is_sensitive(self.name) else SecretMask().text(self.value)
        texts = (self.name, self.owner, value, self.source, self.changes, self.rolls, self.notice)
        row = tuple(" ".join(text.split()) for text in texts)
        if not long:
            return row
        return (*row, ", ".join(self.effect.values), ", ".join(self.effect.objects))


def columns(*, long: bool) -> tuple[str, ...]:
    """The titles of the columns."""
    return _LONG_COLUMNS if long else _COLUMNS


@dataclasses.dataclass(frozen=True, slots=True)
class ExplainedCluster:
    """A cluster with what its explanations are made of.

    :ivar cluster: of Magnum, with its template.
    :ivar request: what its objects ask for now.
    :ivar live_values: of the live release, {} where there is none or it is not known.
    """

    cluster: Any
    settings: Settings
    request: ClusterRequest
    live_values: Json

    @property
    def nodegroup_names(self) -> Mapping[str, str]:
        """Magnum's names of the nodegroups, by name in the values."""
        names = reader.entry_names_of(self.cluster.nodegroups)
        return {entry: name for name, entry in names.items()}

    def sentences(self) -> Mapping[str, str]:
        """The driver's notices, by label or field that they are about."""
        found: dict[str, list[str]] = {}
        for notice in notices.named_field_notices(
            self.cluster, self.settings, self.live_values, self.cluster.nodegroups
        ):
            for name in notice.names:
                found.setdefault(name, []).append(notice.sentence)
        return {name: " ".join(sentences) for name, sentences in found.items()}

    def rolls(
        self,
        effect: ValueEffect,
        change_time: ChangeTime | None,
        nodegroups: Iterable[NodeGroupRequest] | None = None,
    ) -> str:
        """Whose machines another value replaces, with their number.

        :param change_time: of what cannot become another one nothing is said.
        :param nodegroups: those that it is about; None for all.
        """
        if change_time in (None, ChangeTime.NEVER):
            return ""
        found = effects.replaced_parts(effect.values)
        chosen = self.request.node_groups if nodegroups is None else nodegroups
        return ", ".join(self._replaced(found, tuple(chosen))) or NOTHING

    def _replaced(
        self, found: Collection[str], nodegroups: Iterable[NodeGroupRequest]
    ) -> Iterable[str]:
        if effects.CONTROL_PLANE in found:
            yield f"control plane ({self.request.control_plane.count})"
        if effects.NODEGROUPS in found:
            for nodegroup in nodegroups:
                yield f"{self.nodegroup_names[nodegroup.name]} ({nodegroup.count})"
