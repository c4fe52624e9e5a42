# SPDX-License-Identifier: Apache-2.0
"""Keys of the values that are reserved for the driver."""

from __future__ import annotations

from collections.abc import Sequence

_SOFTWARE = ("kubernetesVersion", "machineImage", "machineImageId")
_MACHINES = ("machineFlavor", "serverGroupId", "serverGroupName", *_SOFTWARE)

#: Paths of keys; what is below one of them is the driver's as well. They are what Magnum's rows
#: always say, what the cloud was asked for, and how the driver finds its objects again.
OWNED: tuple[tuple[str, ...], ...] = (
    ("cloudCredentialsSecretName",),
    ("clouds",),
    ("cloudName",),
    ("cloudCACert",),
    *((key,) for key in _SOFTWARE),
    ("projectPrefix",),
    ("osDistro",),
    ("clusterNetworking", "externalNetworkId"),
    ("clusterNetworking", "externalNetworkFilter"),
    ("apiServer", "enableLoadBalancer"),
    ("apiServer", "associateFloatingIP"),
    ("apiServer", "floatingIP"),
    ("controlPlaneEndpoint",),
    *(("controlPlane", key) for key in ("machineCount", *_MACHINES)),
    *(("nodeGroupDefaults", key) for key in ("autoscale", *_MACHINES)),
    ("nodeGroups",),
    # What of it is the operator's stands in [capi_helm], for clusters that exist as well.
    *(("autoscaler", "image", key) for key in ("repository", "tag")),
    ("addons", "clusterName"),
    ("addons", "cni", "type"),
)


def is_owned(path: Sequence[str]) -> bool:
    """Whether a key is the driver's, by its path."""
    return any(tuple(path[: len(own)]) == own for own in OWNED)
