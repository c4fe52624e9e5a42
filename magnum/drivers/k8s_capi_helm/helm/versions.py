# SPDX-License-Identifier: Apache-2.0
"""Versions of Helm: which ones the driver can work with."""

from __future__ import annotations

import re

from magnum.drivers.k8s_capi_helm import errors

_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")
#: Oldest version that can be used, by major version. Helm 4 before 4.1.1 takes an object whose
#: apiVersion changes for another one, and deletes it (https://github.com/helm/helm/pull/31772).
OLDEST = {3: (3, 17, 0), 4: (4, 1, 1)}


def supported(text: str) -> str:
    """The plain version in what ``helm version`` says.

    :raises errors.HelmUnusable: it is not one of the supported versions.
    """
    found = _VERSION.match(text.strip())
    parts = tuple(int(part) for part in found.groups()) if found else (0, 0, 0)
    oldest = OLDEST.get(parts[0])
    if oldest is None or parts < oldest:
        raise errors.HelmUnusable(
            "Helm on this Magnum conductor has an unsupported version. It is "
            f"{text.strip()[:40] or 'unknown'}: supported are 3.17 and later, and 4.1.1 and later. "
            "Ask the operator to install one.",
            f"helm version says {text.strip()[:200]!r}",
        )
    return ".".join(str(part) for part in parts)
