# SPDX-License-Identifier: Apache-2.0
"""A management cluster by its name, and its note in Magnum's ``stack_id``.

``stack_id`` is the one field of a cluster's row that every verb and every pass has read, that no
tenant can set, and that is written when the release gets its name. So the name of the management
cluster stands in it, behind that of the release: one write says both, and a cluster is moved by
one. Clusters of the default management cluster have no note: theirs is the name of the release
alone, as before there was more than one.
"""

from __future__ import annotations

import dataclasses
import re

from magnum.drivers.k8s_capi_helm.model import names

#: The management cluster of the group ``[capi_helm]``.
DEFAULT_MANAGEMENT = "default"
#: No release has it in its name.
_SEPARATOR = "@"
_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,28}[a-z0-9])?\Z")


@dataclasses.dataclass(frozen=True, slots=True)
class ManagementCluster:
    """A management cluster as the operator has configured it.

    :ivar kubeconfig: path of its kubeconfig; "" to look in the usual places.
    :ivar context: of the kubeconfig; "" for its current one.
    :ivar weight: how many of the new clusters it gets, compared with the others.
    :ivar projects: ids of the only projects whose new clusters it takes; () for all.
    :ivar zones: the only availability zones of new clusters; () for all, and none.
    :ivar labels: names and texts of labels that a new cluster must have.
    :ivar is_draining: whether it takes no new clusters.
    """

    name: str
    kubeconfig: str = ""
    context: str = ""
    weight: int = 1
    projects: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    is_draining: bool = False

    @property
    def metrics_label(self) -> str:
        """Its name in metrics; "" for the default one, whose series have no such label."""
        return "" if self.name == DEFAULT_MANAGEMENT else self.name


def as_management_cluster(kubeconfig: str | ManagementCluster | None) -> ManagementCluster:
    """The default management cluster with a kubeconfig, None for the usual places; or as given."""
    if isinstance(kubeconfig, ManagementCluster):
        return kubeconfig
    return ManagementCluster(DEFAULT_MANAGEMENT, kubeconfig or "")


def is_management_name(text: str) -> bool:
    """Whether a text can be the name of a management cluster: a DNS label of at most 30 letters."""
    return bool(_NAME.match(text))


def with_management(release: str, management: str) -> str:
    """The stack id of a cluster.

    :param management: name of its management cluster.
    """
    return release if management == DEFAULT_MANAGEMENT else f"{release}{_SEPARATOR}{management}"


def release_of(stack_id: str | None) -> str:
    """The name of the release that a stack id has; "" for a cluster without one.

    That of another driver is returned as it is.
    """
    release, _, management = (stack_id or "").partition(_SEPARATOR)
    return release if is_management_name(management) else stack_id or ""


def management_of(stack_id: str | None) -> str:
    """The name of the management cluster of a cluster with this stack id."""
    _, _, management = (stack_id or "").partition(_SEPARATOR)
    return management if is_management_name(management) else DEFAULT_MANAGEMENT


def is_own_stack_id(stack_id: str | None) -> bool:
    """Whether a stack id has the form that this driver, or magnum-capi-helm, gives it."""
    return names.is_release(release_of(stack_id))
