# SPDX-License-Identifier: Apache-2.0
"""The roles of a cluster's credentials: those of its user, without admin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import CredentialRoles

#: An application credential lies on the management cluster for as long as its cluster lives, and
#: with this role it would open every project.
_NEVER = "admin"


def credential_roles(
    user_roles: Iterable[str],
    machines: Sequence[str],
    addons: Sequence[str],
    *,
    separate: bool,
) -> CredentialRoles:
    """What the credentials of a cluster may do.

    :param user_roles: names of the roles that the person who asks has in the project.
    :param machines: roles that the operator chose for the credential that machines are made with;
        all that the person has if there are none.
    :param addons: the same for what runs inside the cluster.
    :param separate: whether what runs inside the cluster has a credential of its own.
    :raises errors.InvalidRequest: a credential would have no role.
    """
    own_roles = tuple(dict.fromkeys(user_roles))
    return CredentialRoles(
        machines=_chosen(own_roles, machines),
        addons=_chosen(own_roles, addons or machines) if separate else None,
    )


def _chosen(user_roles: Sequence[str], configured: Sequence[str]) -> tuple[str, ...]:
    allowed = {name.casefold() for name in configured} if configured else None
    chosen = tuple(
        name
        for name in user_roles
        if name.casefold() != _NEVER and (allowed is None or name.casefold() in allowed)
    )
    if chosen:
        return chosen
    needed = (
        f"one of the roles {', '.join(configured)}" if configured else f"a role besides '{_NEVER}'"
    )
    raise errors.InvalidRequest(
        "You do not have the role that the cluster's application credential needs. It needs "
        f"{needed} in this project, and you have: {', '.join(user_roles) or 'none'}. Ask an "
        "administrator of the project for the role."
    )
