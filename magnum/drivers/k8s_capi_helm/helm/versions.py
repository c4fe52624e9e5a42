# SPDX-License-Identifier: Apache-2.0
"""Supported versions of Helm."""

from __future__ import annotations

from packaging.version import Version

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.labels.value_types import versions

#: Oldest version that can be used, by major version. Helm 4 before 4.1.1 takes an object whose
#: apiVersion changes for another one, and deletes it (https://github.com/helm/helm/pull/31772).
OLDEST = {3: Version("3.17.0"), 4: Version("4.1.1")}


def supported_version(text: str) -> str:
    """The plain version in what ``helm version`` says.

    :raises errors.HelmUnusable: it is not one of the supported versions.
    """
    version = versions.parse(text.strip()) or Version("0")
    oldest = OLDEST.get(version.major)
    if oldest is None or version < oldest:
        raise errors.HelmUnusable(
            "Helm on this Magnum conductor has an unsupported version. It is "
            f"{text.strip()[:40] or 'unknown'}: supported are 3.17 and later, and 4.1.1 and later. "
            "Ask the operator to install one.",
            f"helm version prints {text.strip()[:200]!r}",
        )
    return str(version)
