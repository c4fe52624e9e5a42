# SPDX-License-Identifier: Apache-2.0
"""Images in a directory: the layout that container tools read and write.

https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import contextlib
import hashlib
import json
import os
import pathlib
import tempfile
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.registry.client import Manifest

_NAME = "org.opencontainers.image.ref.name"
_INDEX = "application/vnd.oci.image.index.v1+json"
_DRAFT = ".draft-"


class ImageLayout:
    """The images in a directory, which is created.

    :raises errors.InvalidRequest: it cannot be written.
    """

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory = directory
        self._blobs = directory / "blobs" / "sha256"
        with _writing(directory):
            self._blobs.mkdir(parents=True, exist_ok=True)
            self._write(directory / "oci-layout", {"imageLayoutVersion": "1.0.0"})

    def path(self, digest: str) -> pathlib.Path:
        """Where the content with a digest is, or would be."""
        return self._blobs / digest.removeprefix("sha256:")

    def has(self, digest: str) -> bool:
        """Whether the content is there; what is there under its name is whole."""
        return self.path(digest).is_file()

    def add(self, digest: str, content: Iterable[bytes]) -> None:
        """Add content under its digest.

        :raises errors.RegistryRefused: it has another digest.
        :raises errors.InvalidRequest: the directory cannot be written.
        """
        total = hashlib.sha256()
        with _writing(self._directory):
            descriptor, draft = tempfile.mkstemp(prefix=_DRAFT, dir=self._blobs)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    for piece in content:
                        total.update(piece)
                        file.write(piece)
                if f"sha256:{total.hexdigest()}" != digest:
                    raise errors.RegistryRefused(
                        "The registry sends something else than was asked for. Asked for "
                        f"{digest}, it sends sha256:{total.hexdigest()}."
                    )
                pathlib.Path(draft).replace(self.path(digest))
            finally:
                pathlib.Path(draft).unlink(missing_ok=True)

    def read(self, digest: str) -> bytes:
        """The content with a digest."""
        return self.path(digest).read_bytes()

    def write_index(self, images: Iterable[tuple[str, Manifest]]) -> None:
        """Write which images there are, by name.

        :raises errors.InvalidRequest: the directory cannot be written.
        """
        manifests = [
            {
                "mediaType": manifest.media_type,
                "digest": manifest.digest,
                "size": len(manifest.content),
                "annotations": {_NAME: name},
            }
            for name, manifest in images
        ]
        document = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": manifests}
        with _writing(self._directory):
            self._write(self._directory / "index.json", document)

    @staticmethod
    def _write(path: pathlib.Path, document: Any) -> None:
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


@contextlib.contextmanager
def _writing(directory: pathlib.Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise errors.InvalidRequest(
            f"The directory cannot be written. {directory}: {error.strerror or error}."
        ) from None
