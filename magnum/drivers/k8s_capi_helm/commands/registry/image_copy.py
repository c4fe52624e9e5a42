# SPDX-License-Identifier: Apache-2.0
"""Copy images from registries into a directory, and from there into another registry."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.registry.client import (
    Manifest,
    MANIFESTS,
    RegistryClient,
)
from magnum.drivers.k8s_capi_helm.commands.registry.image_layout import ImageLayout
from magnum.drivers.k8s_capi_helm.commands.registry.image_reference import ImageReference

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
#: https://helm.sh/docs/topics/registries/#helm-chart-manifest
_CHART_CONFIG = "application/vnd.cncf.helm.config.v1+json"
_CHART_CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


def choose_platform(
    client: RegistryClient, reference: ImageReference, platform: str
) -> tuple[Manifest, Manifest]:
    """The manifest that a tag stands for, and the one of a platform, which may be the same.

    :param platform: such as ``linux/amd64``; "" for all.
    :raises errors.RegistryRefused: the image is not for that platform.
    :raises errors.DriverError: the registry cannot be asked.
    """
    manifest = client.manifest(reference)
    descriptors = manifest.descriptors()
    if not platform or not any("platform" in one for one in descriptors):
        return manifest, manifest
    for descriptor in descriptors:
        found = descriptor.get("platform") or {}
        if f"{found.get('os')}/{found.get('architecture')}" == platform:
            chosen = dataclasses.replace(reference, digest=str(descriptor["digest"]))
            return manifest, client.manifest(chosen)
    raise errors.RegistryRefused(f"The image is not for this platform. {reference}: {platform}.")


def save_image(
    client: RegistryClient, layout: ImageLayout, reference: ImageReference, manifest: Manifest
) -> int:
    """Copy an image with everything that it consists of into a directory.

    :returns: the number of bytes that were fetched; what is there is not fetched again.
    :raises errors.DriverError: a registry cannot be read, or the directory not written.
    """
    fetched = 0
    for descriptor in manifest.descriptors():
        digest = _digest(descriptor)
        if descriptor.get("mediaType") in MANIFESTS:
            part = client.manifest(dataclasses.replace(reference, digest=digest))
            fetched += save_image(client, layout, reference, part)
        elif not layout.has(digest):
            layout.add(digest, client.blob(reference, digest))
            fetched += layout.path(digest).stat().st_size
    if not layout.has(manifest.digest):
        layout.add(manifest.digest, [manifest.content])
        fetched += len(manifest.content)
    return fetched


def push_image(
    client: RegistryClient, layout: ImageLayout, target: ImageReference, manifest: Manifest
) -> int:
    """Copy an image of a directory into a registry, its parts first.

    :param target: with the tag that it gets.
    :returns: the number of blobs that were uploaded; what the registry has is not sent again.
    :raises errors.DriverError: the registry refuses, or does not answer.
    """
    uploaded = 0
    for descriptor in manifest.descriptors():
        digest = _digest(descriptor)
        if descriptor.get("mediaType") in MANIFESTS:
            part = Manifest(digest, str(descriptor["mediaType"]), layout.read(digest))
            uploaded += push_image(client, layout, dataclasses.replace(target, digest=digest), part)
        else:
            uploaded += client.push_blob(target, digest, layout.path(digest))
    client.push_manifest(target, manifest)
    return uploaded


def push_chart(
    client: RegistryClient, target: ImageReference, package: pathlib.Path, directory: pathlib.Path
) -> Manifest:
    """Upload a packaged chart as Helm does it; returns its manifest.

    :param directory: an empty one, for what is uploaded besides.
    :raises errors.DriverError: the registry refuses, or does not answer.
    """
    config = directory / "config.json"
    name, _, version = package.name.removesuffix(".tgz").rpartition("-")
    config.write_text(json.dumps({"name": name, "version": version}), encoding="utf-8")
    parts = []
    for media_type, path in ((_CHART_CONFIG, config), (_CHART_CONTENT, package)):
        content = path.read_bytes()
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        parts.append({"mediaType": media_type, "digest": digest, "size": len(content)})
        client.push_blob(target, digest, path)
    document = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": parts[0], "layers": parts[1:]}
    content = json.dumps(document, sort_keys=True).encode()
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    manifest = Manifest(digest, _MANIFEST, content)
    client.push_manifest(target, manifest)
    return manifest


def _digest(descriptor: dict[str, Any]) -> str:
    """The digest of a part, by which a file is named.

    :raises errors.RegistryRefused: it is none.
    """
    digest = str(descriptor.get("digest"))
    plain = digest.removeprefix("sha256:")
    if len(plain) != 64 or set(plain) - set("0123456789abcdef"):
        raise errors.RegistryRefused(
            f"A manifest names a part without a SHA-256. It is '{digest}'."
        )
    return digest
