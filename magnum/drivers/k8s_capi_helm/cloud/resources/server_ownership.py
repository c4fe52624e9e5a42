# SPDX-License-Identifier: Apache-2.0
"""Which cluster a server or a security group belongs to, by the names of CAPO's resources. No I/O.

A server has the name of its Machine and says nowhere of which cluster it is. Release
``a-xxxxxxxxxxxx`` begins the names of all servers of release ``a-xxxxxxxxxxxx-b-yyyyyyyyyyyy``, and
of whatever else a tenant calls so. The provider describes each port that it makes with the name of
the cluster, until its release 0.10 with the namespace in front of it.
"""

from __future__ import annotations

from collections.abc import Iterable
import re

from magnum.drivers.k8s_capi_helm.model import names

#: Source: its pkg/utils/names, ``GetDescription``, since v0.5. The ports of an OpenStackServer get
#: the name alone (pkg/cloud/services/compute, ``ResolveServerSpec``), for a time no name.
_DESCRIBED = "Created by cluster-api-provider-openstack cluster "
#: The end of every generated name: five of these, at the latest character 63
#: (https://github.com/kubernetes/apimachinery, ``util/rand``).
_GENERATED = re.compile(r".[bcdfghjklmnpqrstvwxz2456789]{5}")
_BASTION = "bastion"
#: Source: its pkg/cloud/services/networking, ``getSecWorkerGroupName`` and its like.
_SECURITY_GROUP = re.compile(r"(?P<release>.+)-secgroup-(?:controlplane|worker|bastion)")


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


def release_of_security_group(text: str | None, namespace: str) -> str | None:
    """The release that a security group was made for; None if for none in this namespace."""
    before, prefix, rest = (text or "").partition(f"k8s-cluster-{namespace}-")
    match = _SECURITY_GROUP.fullmatch(rest) if prefix and not before else None
    return match["release"] if match and names.is_release(match["release"]) else None
