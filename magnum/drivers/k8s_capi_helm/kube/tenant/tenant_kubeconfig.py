# SPDX-License-Identifier: Apache-2.0
"""Address, authority and client certificate of a cluster's kubeconfig.

Cluster API writes it into the Secret ``<cluster>-kubeconfig``, key ``value``. A kubeconfig can name
programs to be run, files to be read and proxies; this one is read for nothing of that kind.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
from typing import Any
import urllib.parse

import yaml

from magnum.drivers.k8s_capi_helm.model import conditions, Json

_LARGEST = 1 << 16
#: What a document of another shape leads to when it is read.
_NONE = (KeyError, TypeError, ValueError, AttributeError, RecursionError)


@dataclasses.dataclass(frozen=True, slots=True)
class TenantKubeconfig:
    """The way into a cluster; PEM texts.

    :ivar authority: the only one that its server's certificate may be of.
    """

    host: str
    port: int
    authority: str
    certificate: str = dataclasses.field(repr=False)
    key: str = dataclasses.field(repr=False)


def read_tenant_kubeconfig(secret: Json) -> TenantKubeconfig | None:
    """The way in that a Secret holds, None if it is not one that Cluster API writes."""
    try:
        packed = base64.b64decode(conditions.at_path(secret, "data", "value") or "", validate=True)
        document: Any = yaml.safe_load(packed) if len(packed) <= _LARGEST else None
        chosen = _named(document, "contexts", "context", document["current-context"])
        cluster = _named(document, "clusters", "cluster", chosen["cluster"])
        user = _named(document, "users", "user", chosen["user"])
        url = urllib.parse.urlsplit(cluster["server"])
        if url.scheme != "https" or not url.hostname or url.username or url.path.strip("/"):
            return None
        return TenantKubeconfig(
            host=url.hostname,
            port=url.port or 443,
            authority=_text(cluster["certificate-authority-data"]),
            certificate=_text(user["client-certificate-data"]),
            key=_text(user["client-key-data"]),
        )
    except (*_NONE, binascii.Error, yaml.YAMLError):
        # No word of what is in it goes any further.
        return None


def _named(document: Any, section: str, key: str, name: str) -> Any:
    return {item["name"]: item[key] for item in document[section]}[name]


def _text(packed: str) -> str:
    return base64.b64decode(packed, validate=True).decode("ascii")
