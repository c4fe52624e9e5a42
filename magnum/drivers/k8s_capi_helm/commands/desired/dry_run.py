# SPDX-License-Identifier: Apache-2.0
"""What the API server makes of a patch; nothing is written.

Admission webhooks set defaults and refuse, the server validates and drops what it does not know: it
is asked by a dry run, and not guessed
(https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run).
"""

from __future__ import annotations

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import Json
from magnum.drivers.k8s_capi_helm.values.tree import merge

#: The server's words where a webhook would write elsewhere, or does not say that it would not.
_UNSUPPORTED = "does not support dry run"


def patched_object(kube: KubeClient, existing_object: Json, patch: Json) -> Json:
    """An object as it would be after a patch.

    Where the server has no dry run of it, the patch is applied here, without defaults.

    :param patch: a JSON merge patch.
    :returns: *existing_object* itself where the patch says nothing else than it does.
    :raises errors.DriverError: the server refuses the patch, or cannot be asked.
    """
    patched: Json = merge.merge_patched(existing_object, patch)
    if patched == existing_object:
        return existing_object
    metadata = existing_object["metadata"]
    kind = kube.kind_of(patched)
    try:
        return kube.patch(kind, metadata.get("namespace"), metadata["name"], patch, dry=True)
    except errors.ManagementRefused as error:
        if _UNSUPPORTED not in error.detail:
            raise
        return patched
