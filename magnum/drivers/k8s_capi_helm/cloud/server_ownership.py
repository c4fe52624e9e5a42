# SPDX-License-Identifier: Apache-2.0
"""Whether a server belongs to a cluster, by the names of CAPO's resources. No I/O.

A server has the name of its Machine and says nowhere of which cluster it is. Release
``a-xxxxxxxxxxxx`` begins the names of all servers of release ``a-xxxxxxxxxxxx-b-yyyyyyyyyyyy``, and
of whatever else a tenant calls so. The provider describes each port that it makes with the name of
the cluster, until its release 0.10 with the namespace in front of it.
"""

from __future__ import annotations

from collections.abc import Iterable
import re

#: Source: its pkg/utils/names, ``GetDescription``, since v0.5. The ports of an OpenStackServer get
#: the name alone (pkg/cloud/services/compute, ``ResolveServerSpec``), for a time no name.
_DESCRIBED = "Created by cluster-api-provider-openstack cluster "
#: The end of every generated name: five of these, at the latest character 63
#: (https://github.com/kubernetes/apimachinery, ``util/rand``).
_GENERATED = re.compile(r".[bcdfghjklmnpqrstvwxz2456789]{5}")
_BASTION = "bastion"


def by_ports(descriptions: Iterable[str | None], namespace: str, release: str) -> bool | None:
    """Whether a server is this cluster's, by the descriptions of its ports; None if none tells."""
    described = {
        text.removeprefix(_DESCRIBED)
        for text in descriptions
        if text and text.startswith(_DESCRIBED) and text != _DESCRIBED
    }
    return bool(described & {release, f"{namespace}-{release}"}) if described else None


def is_machine(name: str, release: str) -> bool:
    """Whether a server's name can be that of a machine of this cluster."""
    rest = name.removeprefix(f"{release}-")
    if rest == name:
        return False
    return rest == _BASTION or _GENERATED.fullmatch(rest[-6:]) is not None
