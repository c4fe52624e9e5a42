# SPDX-License-Identifier: Apache-2.0
"""Names of container images and of charts in registries.

Source of the grammar: https://github.com/distribution/reference, "reference.go".
"""

from __future__ import annotations

import dataclasses
import re

from magnum.drivers.k8s_capi_helm import errors

_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?", re.ASCII)
_STEP = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?", re.ASCII)
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_LONGEST = 500
_HUB, _HUB_API, _HUB_LIBRARY = "docker.io", "registry-1.docker.io", "library"


@dataclasses.dataclass(frozen=True, slots=True)
class ImageReference:
    """An image in a registry.

    :ivar host: of the registry, as image names have it.
    :ivar tag: "" without one, ``digest`` the same.
    """

    host: str
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def version(self) -> str:
        """What the registry is asked for."""
        return self.digest or self.tag or "latest"

    @property
    def api_host(self) -> str:
        """Where the registry's API is."""
        return _HUB_API if self.host == _HUB else self.host

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.host}/{self.repository}{tag}{f'@{self.digest}' if self.digest else ''}"


def parse_reference(text: str) -> ImageReference:
    """The image of a text, as container runtimes read it.

    :raises errors.InvalidRequest: it is none.
    """
    name, at, digest = text.partition("@")
    path, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        path, colon, tag = name, "", ""
    host, _, rest = path.partition("/")
    if not rest or not (set(host) & {".", ":"} or host == "localhost"):
        host, rest = _HUB, path if rest else f"{_HUB_LIBRARY}/{path}"
    is_valid = (
        len(text) <= _LONGEST
        and _HOST.fullmatch(host)
        and all(map(_STEP.fullmatch, rest.split("/")))
        and bool(colon) == bool(_TAG.fullmatch(tag))
        and bool(at) == bool(_DIGEST.fullmatch(digest))
    )
    if not is_valid:
        raise errors.InvalidRequest(
            f"This is not the name of an image. The name is '{text}': expected REGISTRY/NAME:TAG, "
            "or REGISTRY/NAME@sha256:DIGEST."
        )
    return ImageReference(host, rest, tag, digest)
