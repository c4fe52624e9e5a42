# SPDX-License-Identifier: Apache-2.0
"""A container of a Pod as a process: its arguments, variables, files and service account."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
import os
from pathlib import Path
import re

from magnum.tests.functional.k8s_capi_helm.cloud_programs.tenant_api import Object, TenantApi
from sandbox import processes
from sandbox.cloud.environment import without_proxy
from sandbox.management import binaries
from sandbox.management.binaries import Program
from sandbox.management.pki import write_private

_VARIABLE = re.compile(r"\$\((\w+)\)")
_START_TIMEOUT = 60.0


class PodProcess:
    """One container of a workload, without a container: its mounts are directories.

    :param workload: a DaemonSet or Deployment with its namespace.
    :param program: what runs; the container has its name.
    :param mounts: directories in place of paths of the host, by these.
    :param container: its name, where that is not the program's.
    """

    def __init__(
        self,
        api: TenantApi,
        workload: Object,
        program: Program,
        *,
        mounts: Mapping[str, Path] | None = None,
        container: str = "",
    ) -> None:
        self._api = api
        self._namespace = workload["metadata"]["namespace"]
        self._pod = workload["spec"]["template"]["spec"]
        self._program = program
        self._host = mounts or {}
        name = container or program.name
        (self._container,) = (one for one in self._pod["containers"] if one["name"] == name)

    def start(self, *more: str, ready: Callable[[], bool] | None = None) -> None:
        """Start it.

        :param more: flags for what a Pod has and a process has not, as a network of its own.
        :raises SandboxError: it ends, or is not ready in time.
        """
        argv = [str(binaries.one(self._program)), *self.arguments(), *more]
        processes.start(
            self._api.state,
            self._program.name,
            argv,
            env={**os.environ, **without_proxy(), **self._variables()},
            cwd=self._folder(""),
            ready=ready,
            timeout=_START_TIMEOUT,
        )

    def stop(self) -> None:
        """End it."""
        processes.stop(self._api.state, self._program.name)

    def is_alive(self) -> bool:
        """Whether it runs."""
        return processes.alive(self._api.state, self._program.name)

    def log(self) -> str:
        """All that it has said."""
        return self._api.state.log(self._program.name).read_text(errors="replace")

    def kubeconfig(self) -> Path:
        """With which it is its service account."""
        account = self._pod.get("serviceAccountName") or self._pod["serviceAccount"]
        return self._api.kubeconfig(self._namespace, account)

    def arguments(self) -> list[str]:
        """Its arguments; the first one of some images names the program."""
        variables, found = self._variables(), []
        for text in self._container["args"]:
            text = _VARIABLE.sub(lambda name: variables[name[1]], text)
            found.append(self._here(text))
        own = found and found[0].endswith(f"/{self._program.name}")
        return found[1:] if own else found

    def _variables(self) -> dict[str, str]:
        return {
            one["name"]: self._here(str(one["value"])) for one in self._container.get("env") or ()
        }

    def _here(self, text: str) -> str:
        """A text with directories in place of mounts."""
        for path, folder in self._mounts().items():
            text = re.sub(rf"(?<![\w.-]){re.escape(path)}(?![\w.-])", str(folder), text)
        return text

    def _mounts(self) -> dict[str, Path]:
        volumes = {one["name"]: one for one in self._pod.get("volumes") or ()}
        found = {
            one["mountPath"].rstrip("/"): self._volume(volumes[one["name"]], one["mountPath"])
            for one in self._container.get("volumeMounts") or ()
        }
        return dict(sorted(found.items(), key=lambda one: -len(one[0])))

    def _volume(self, volume: Object, path: str) -> Path:
        host = volume.get("hostPath", {}).get("path")
        if host in self._host:
            return self._host[host]
        if "emptyDir" in volume:
            return self._api.shared(volume["name"])
        folder = self._folder(volume["name"])
        if "secret" in volume:
            self._fill(folder, volume["secret"]["secretName"], path.rstrip("/"))
        return folder

    def _fill(self, folder: Path, secret: str, path: str) -> None:
        """The files of a Secret; what one says of another one's place is true here too."""
        found = self._api.request("GET", f"/api/v1/namespaces/{self._namespace}/secrets/{secret}")
        for name, packed in found["data"].items():
            text = base64.b64decode(packed).replace(path.encode(), str(folder).encode())
            if not (folder / name).exists():
                write_private(folder / name, text)

    def _folder(self, name: str) -> Path:
        folder = self._api.state.path("programs", "pods", name, "x").parent
        folder.mkdir(parents=True, exist_ok=True)
        return folder
