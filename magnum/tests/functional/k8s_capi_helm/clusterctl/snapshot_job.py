# SPDX-License-Identifier: Apache-2.0
"""A Job of the addon etcd-snapshot: its containers as processes, as a kubelet runs them.

What a container sees is a directory here: its mounts, in arguments and in variables. It gets the
variables of its Pod and of its image alone, and it starts if the one before it succeeded.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
import re
import subprocess
import tempfile

from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object
from sandbox.management import backup, binaries, object_storage
from sandbox.management.connection import Connection
from sandbox.management.pki import Pki, write_private
from sandbox.management.server import kubeconfig
from sandbox.state import State

NAMESPACE = "kube-system"
_VARIABLE = re.compile(r"\$\((\w+)\)")
_LABEL = re.compile(r"metadata\.labels\['(.+)'\]")
_PROGRAMS = {"etcdctl": backup.ETCDCTL, "rclone": object_storage.RCLONE}
#: What the images set, and the port of kubeadm's etcd.
_IMAGE = {"PATH": "/usr/local/bin:/usr/bin:/bin", "XDG_CONFIG_HOME": "/config"}
_PORT = ":2379"
_TIMEOUT = 120.0


class SnapshotJob:
    """One Job of the CronJob, on the one machine of a control plane.

    :param cron_job: as the addon provider installs it.
    :param name: of the Job, which its Pod has as a label.
    :ivar ended: exit status by container, of those that ran.
    :ivar log: what they printed.
    """

    def __init__(self, state: State, cron_job: Object, name: str) -> None:
        self._state = state
        self._pod = cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        self._labels = {"batch.kubernetes.io/job-name": name}
        self._api = Connection(kubeconfig(state))
        self.ended: dict[str, int] = {}
        self.log = ""
        self.snapshot_mode = 0

    def run(self) -> SnapshotJob:
        """Run its containers, in their order, until one fails."""
        with tempfile.TemporaryDirectory(prefix="pod-") as place:
            volumes = dict(self._volumes(Path(place)))
            for container in (*self._pod["initContainers"], *self._pod["containers"]):
                if self._run(container, volumes):
                    break
            for file in volumes["snapshot"].iterdir():
                self.snapshot_mode = file.stat().st_mode & 0o777
        return self

    def _volumes(self, place: Path) -> Iterator[tuple[str, Path]]:
        """Directory of each volume."""
        for volume in self._pod["volumes"]:
            directory = place / volume["name"]
            directory.mkdir()
            if "secret" in volume:
                for key, value in self._secret(volume["secret"]["secretName"]).items():
                    write_private(directory / key, value.encode())
            elif "hostPath" in volume:
                pki = Pki(self._state)
                files = {"ca.crt": pki.authority, "healthcheck-client.crt": pki.certificate}
                for name, file in {**files, "healthcheck-client.key": pki.key}.items():
                    write_private(directory / name, file.read_bytes())
            yield volume["name"], directory

    def _secret(self, name: str) -> dict[str, str]:
        path = f"/api/v1/namespaces/{NAMESPACE}/secrets/{name}"
        data = self._api.request("GET", path)["data"]
        return {key: base64.b64decode(value).decode() for key, value in data.items()}

    def _run(self, container: Object, volumes: dict[str, Path]) -> int:
        """The exit status of a container."""
        variables = {}
        for source in container.get("envFrom", []):
            variables.update(self._secret(source["secretRef"]["name"]))
        for one in container.get("env", []):
            label = _LABEL.fullmatch(one["valueFrom"]["fieldRef"]["fieldPath"])
            assert label is not None
            variables[one["name"]] = self._labels[label[1]]
        mounts = {one["mountPath"]: volumes[one["name"]] for one in container["volumeMounts"]}
        program, *arguments = [
            self._here(_VARIABLE.sub(lambda match: variables[match[1]], word), mounts)
            for word in container["command"]
        ]
        done = subprocess.run(
            [str(binaries.one(_PROGRAMS[program])), *arguments],
            env=_IMAGE | {key: self._here(value, mounts) for key, value in variables.items()},
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
        self.ended[container["name"]] = done.returncode
        self.log += done.stdout
        return done.returncode

    def _here(self, text: str, mounts: dict[str, Path]) -> str:
        """A text with directories in place of mounts, and with the port of etcd."""
        for path, directory in mounts.items():
            text = re.sub(f"(^|=){re.escape(path)}/", rf"\g<1>{directory}/", text)
        return text.replace(_PORT, f":{self._state.port('etcd')}")
