# SPDX-License-Identifier: Apache-2.0
"""A control plane machine whose kubelet runs the static pod of barbican-kms-plugin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import contextlib
from pathlib import Path
import subprocess
from typing import Any

import yaml

from magnum.tests.functional.k8s_capi_helm.envtest import test_api_server
from sandbox.management import binaries, cloud_programs

SOCKETS = "/run/barbican-kms-plugin"
POD = "/etc/kubernetes/manifests/barbican-kms-plugin.yaml"
WRITTEN = b"k8s:enc:kms:v2:barbican:"


class KeyMachine(test_api_server.Machine):
    """Its files, etcd, API server and plugin, in a directory."""

    def here(self, text: str) -> str:
        """A text that names paths of a machine, for this directory."""
        return super().here(text).replace(SOCKETS, f"{self.place}{SOCKETS}")

    def write(self, spec: Any, files: Mapping[str, str]) -> None:
        """Write the files, and start the plugin where they have its pod."""
        super().write(spec, files)
        if POD in files:
            self._start_pod(yaml.safe_load(self.here(files[POD]))["spec"])

    @contextlib.contextmanager
    def server(self, change: Mapping[str, Any]) -> Iterator[None]:
        """The API server of the values, up and ready; the plugin ends with it."""
        with contextlib.ExitStack() as self.pods, super().server(change):
            yield

    def _start_pod(self, pod: Any) -> None:
        (container,) = pod["containers"]
        mounts = {one["mountPath"] for one in container["volumeMounts"]}
        folder = f"{self.place}{SOCKETS}"
        assert folder in mounts, mounts
        Path(folder).mkdir(parents=True, exist_ok=True)
        _, *arguments = container["command"]
        argv = [binaries.one(cloud_programs.KEY_PLUGIN), *arguments]
        log = self.pods.enter_context((self.place / "plugin.log").open("wb"))
        self.pods.callback(self.stop, subprocess.Popen(argv, stdout=log, stderr=log))


def values(key_id: str, change: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Values of a cluster that encrypts with a key in Barbican, at dotted paths.

    :param change: of ``etcd.encryption``.
    """
    given = {"enabled": True, "provider": "barbican", "barbican.keyId": key_id, **(change or {})}
    return {f"etcd.encryption.{key}": value for key, value in given.items()}
