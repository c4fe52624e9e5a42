# SPDX-License-Identifier: Apache-2.0
"""Pod Security Standards: the labels of a namespace, and whether a pod is ``restricted``.

Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from magnum.drivers.k8s_capi_helm.model import Json

#: The levels, strictest first.
RESTRICTED = "restricted"
LEVELS = (RESTRICTED, "baseline", "privileged")
_PREFIX = "pod-security.kubernetes.io"
#: Label of a namespace in which Kubernetes refuses pods below a level.
ENFORCE = f"{_PREFIX}/enforce"
_PROFILES = ("RuntimeDefault", "Localhost")
#: Keys of a security context that are looked at, or that no level asks about. With any other one
#: it is not known here what Kubernetes would say.
_KNOWN = frozenset(
    "allowPrivilegeEscalation capabilities fsGroup fsGroupChangePolicy privileged "
    "readOnlyRootFilesystem runAsGroup runAsNonRoot runAsUser seccompProfile "
    "supplementalGroups".split()
)
_HOSTS = ("hostNetwork", "hostPID", "hostIPC")
_VOLUMES = frozenset(
    "configMap csi downwardAPI emptyDir ephemeral persistentVolumeClaim projected secret".split()
)


def labels(level: str) -> dict[str, str]:
    """The labels of a namespace whose pods are to keep to a level.

    :param level: one of :data:`LEVELS`.
    """
    found: dict[str, str] = {}
    for mode in ("enforce", "warn", "audit"):
        found |= {f"{_PREFIX}/{mode}": level, f"{_PREFIX}/{mode}-version": "latest"}
    return found


def is_restricted(pod: Mapping[str, Any]) -> bool:
    """Whether Kubernetes starts a pod in a namespace that enforces ``restricted``.

    :param pod: the ``spec`` of a pod.
    """
    return not any(_broken(pod))


def _broken(pod: Mapping[str, Any]) -> Iterator[bool]:
    whole: Json = pod.get("securityContext") or {}
    yield any(pod.get(one) for one in _HOSTS)
    yield any(not _VOLUMES & one.keys() for one in pod.get("volumes") or ())
    yield whole.get("runAsUser") == 0 or not whole.keys() <= _KNOWN
    for container in (*(pod.get("initContainers") or ()), *(pod.get("containers") or ())):
        own: Json = container.get("securityContext") or {}
        both = {**whole, **own}
        capabilities = own.get("capabilities") or {}
        yield both.get("runAsNonRoot") is not True or own.get("runAsUser") == 0
        yield (both.get("seccompProfile") or {}).get("type") not in _PROFILES
        yield own.get("allowPrivilegeEscalation") is not False or bool(own.get("privileged"))
        yield not own.keys() <= _KNOWN
        yield "ALL" not in (capabilities.get("drop") or ())
        yield not set(capabilities.get("add") or ()) <= {"NET_BIND_SERVICE"}
        yield any("hostPort" in port for port in container.get("ports") or ())
