# SPDX-License-Identifier: Apache-2.0
"""The roles that a cluster's credentials have: its user's, and never the administrator's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import CredentialRoles

#: An application credential lies on the management cluster for as long as its cluster lives, and
#: with this role it would open every project.
_NEVER = "admin"


def credential_roles(
    held: Iterable[str],
    machines: Sequence[str],
    addons: Sequence[str],
    *,
    separate: bool,
) -> CredentialRoles:
    """What the credentials of a cluster may do.

    :param held: names of the roles that the person who asks has in the project.
    :param machines: roles that the operator chose for the credential that machines are made with;
        all that the person has if there are none.
    :param addons: the same for what runs inside the cluster.
    :param separate: whether what runs inside the cluster has a credential of its own.
    :raises errors.InvalidRequest: a credential would have no role.
    """
    mine = tuple(dict.fromkeys(held))
    return CredentialRoles(
        machines=_chosen(mine, machines),
        addons=_chosen(mine, addons or machines) if separate else None,
    )


def _chosen(held: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    known = {name.casefold() for name in wanted} if wanted else None
    found = tuple(
        name
        for name in held
        if name.casefold() != _NEVER and (known is None or name.casefold() in known)
    )
    if found:
        return found
    asked = f"one of the roles {', '.join(wanted)}" if wanted else f"a role besides '{_NEVER}'"
    raise errors.InvalidRequest(
        "You do not have the role that the cluster's application credential needs. It needs "
        f"{asked} in this project, and you have: {', '.join(held) or 'none'}. Ask an administrator "
        "of the project for the role."
    )
