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


def namespace_labels(level: str) -> dict[str, str]:
    """The labels of a namespace whose pods are to keep to a level.

    :param level: one of :data:`LEVELS`.
    """
    namespace_labels: dict[str, str] = {}
    for mode in ("enforce", "warn", "audit"):
        namespace_labels |= {f"{_PREFIX}/{mode}": level, f"{_PREFIX}/{mode}-version": "latest"}
    return namespace_labels


def is_restricted(pod: Mapping[str, Any]) -> bool:
    """Whether Kubernetes starts a pod in a namespace that enforces ``restricted``.

    :param pod: the ``spec`` of a pod.
    """
    return not any(_broken(pod))


def _broken(pod: Mapping[str, Any]) -> Iterator[bool]:
    pod_context: Json = pod.get("securityContext") or {}
    yield any(pod.get(field) for field in _HOSTS)
    yield any(not _VOLUMES & field.keys() for field in pod.get("volumes") or ())
    yield pod_context.get("runAsUser") == 0 or not pod_context.keys() <= _KNOWN
    for container in (*(pod.get("initContainers") or ()), *(pod.get("containers") or ())):
        context: Json = container.get("securityContext") or {}
        effective = {**pod_context, **context}
        capabilities = context.get("capabilities") or {}
        yield effective.get("runAsNonRoot") is not True or context.get("runAsUser") == 0
        yield (effective.get("seccompProfile") or {}).get("type") not in _PROFILES
        yield context.get("allowPrivilegeEscalation") is not False or bool(
            context.get("privileged")
        )
        yield not context.keys() <= _KNOWN
        yield "ALL" not in (capabilities.get("drop") or ())
        yield not set(capabilities.get("add") or ()) <= {"NET_BIND_SERVICE"}
        yield any("hostPort" in port for port in container.get("ports") or ())
