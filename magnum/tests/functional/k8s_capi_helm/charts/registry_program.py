# SPDX-License-Identifier: Apache-2.0
"""A real registry of container images: Debian's build of the reference implementation."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import functools
import hashlib
import json
import os
from pathlib import Path
import subprocess
import time
from typing import Any

import yaml

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.registry.client import Manifest, RegistryClient
from magnum.drivers.k8s_capi_helm.commands.registry.image_reference import ImageReference
from sandbox import debian

_PACKAGE, _PROGRAM = "docker-registry", "usr/bin/docker-registry"
_START = 30.0
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_INDEX = "application/vnd.oci.image.index.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


@functools.cache
def program() -> Path:
    """The registry, downloaded once.

    :raises sandbox.state.SandboxError: it cannot be had.
    """
    return debian.tree(_PACKAGE, _PROGRAM, instead="without its tests") / _PROGRAM


@contextlib.contextmanager
def running(directory: Path, htpasswd: str = "") -> Iterator[str]:
    """A registry with its data in a directory; yields its host and port.

    :param htpasswd: users with their hashed passwords, "" for a registry that wants no login.
    :raises AssertionError: it does not start.
    """
    directory.mkdir()
    config: dict[str, Any] = {
        "version": 0.1,
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {"filesystem": {"rootdirectory": str(directory / "data")}},
        # The kernel chooses a port, and the program's descriptor in /proc says which.
        "http": {"addr": "127.0.0.1:0"},
    }
    if htpasswd:
        (directory / "htpasswd").write_text(htpasswd, encoding="utf-8")
        auth = {"realm": "registry", "path": str(directory / "htpasswd")}
        config["auth"] = {"htpasswd": auth}
    path = directory / "config.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    environment = {**os.environ, "OTEL_TRACES_EXPORTER": "none"}
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(program()), "serve", str(path)], stdout=log, stderr=log, env=environment
        )
        try:
            yield f"127.0.0.1:{_port(process, directory / 'log')}"
        finally:
            process.terminate()
            process.wait()


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    """The port on which a process listens.

    :raises AssertionError: it has ended, or listens nowhere in time.
    """
    end = time.monotonic() + _START
    while time.monotonic() < end and process.poll() is None:
        inodes = set()
        for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                inodes.add(os.readlink(descriptor))
        for line in Path(f"/proc/{process.pid}/net/tcp").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                return int(words[1].rpartition(":")[2], 16)
        time.sleep(0.05)
    raise AssertionError(log.read_text(encoding="utf-8"))


def push(client: RegistryClient, reference: ImageReference, directory: Path, text: str) -> str:
    """Push an image of one layer; returns its digest."""
    manifest = _manifest(client, reference, directory, text)
    client.push_manifest(reference, manifest)
    return manifest.digest


def push_index(
    client: RegistryClient, reference: ImageReference, directory: Path, *architectures: str
) -> dict[str, str]:
    """Push an image for several architectures; returns the digests, that of the index as ""."""
    digests, descriptors = {}, []
    for architecture in architectures:
        part = _manifest(client, reference, directory, f"{reference} {architecture}")
        named = ImageReference(reference.host, reference.repository, digest=part.digest)
        client.push_manifest(named, part)
        digests[architecture] = part.digest
        descriptors.append(
            {
                "mediaType": part.media_type,
                "digest": part.digest,
                "size": len(part.content),
                "platform": {"os": "linux", "architecture": architecture},
            }
        )
    document = {"schemaVersion": 2, "mediaType": _INDEX, "manifests": descriptors}
    index = _packed(document, _INDEX)
    client.push_manifest(reference, index)
    return {**digests, "": index.digest}


def _manifest(
    client: RegistryClient, reference: ImageReference, directory: Path, text: str
) -> Manifest:
    """A manifest whose parts are pushed."""
    parts = []
    for media_type, content in ((_CONFIG, b"{}"), (_LAYER, text.encode())):
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        path = directory / digest.removeprefix("sha256:")
        path.write_bytes(content)
        client.push_blob(reference, digest, path)
        parts.append({"mediaType": media_type, "digest": digest, "size": len(content)})
    document = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": parts[0], "layers": parts[1:]}
    return _packed(document, _MANIFEST)


def _packed(document: dict[str, Any], media_type: str) -> Manifest:
    content = json.dumps(document).encode()
    return Manifest(f"sha256:{hashlib.sha256(content).hexdigest()}", media_type, content)


def is_absent(client: RegistryClient, reference: ImageReference) -> bool:
    """Whether a registry does not have an image."""
    try:
        client.manifest(reference)
    except errors.RegistryRefused:
        return True
    return False
