# SPDX-License-Identifier: Apache-2.0
"""Helm without a management cluster: fetch packages of charts, and render them."""

from __future__ import annotations

import json
import pathlib

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.helm import release_secret
from magnum.drivers.k8s_capi_helm.helm.cli import HelmCli
from magnum.drivers.k8s_capi_helm.model import Json


class ChartPackages:
    """Packages of charts, as Helm fetches and reads them.

    :param timeout: seconds of one run.
    :param executable: a path, or a name to look up in ``PATH``.
    """

    def __init__(self, *, timeout: float, executable: str = "helm") -> None:
        self._timeout, self._executable = timeout, executable

    def fetch(
        self, repository: str, name: str, version: str, directory: pathlib.Path
    ) -> pathlib.Path:
        """Fetch a package as its repository has it.

        :param repository: an ``http(s)://`` or ``oci://`` URL.
        :param directory: an empty one.
        :raises errors.DriverError: it is not there, or the repository cannot be reached.
        """
        is_oci = repository.startswith("oci://")
        chart = [f"{repository.rstrip('/')}/{name}"] if is_oci else [name, "--repo", repository]
        where = ["--version", version, "--destination", str(directory)]
        self._run(["pull", *chart, *where])
        packages = sorted(directory.glob("*.tgz"))
        if len(packages) != 1:
            raise errors.HelmInterrupted(
                "Helm's answer cannot be read. The command will be retried.",
                f"chart {name} of {repository}: {len(packages)} packages",
            )
        return packages[0]

    def render(
        self, release: str, package: pathlib.Path, values: Json, namespace: str, version: str
    ) -> list[Json]:
        """The objects of a chart, its CRDs and hooks among them.

        :param version: of Kubernetes.
        :raises errors.DriverError: Helm, or the chart, refuses.
        """
        where = ["--namespace", namespace, "--kube-version", version, "--include-crds"]
        command = ["template", release, str(package), *where, "--values", "-"]
        return release_secret.documents(self._run(command, json.dumps(values).encode()).decode())

    def _run(self, command: list[str], values: bytes | None = None) -> bytes:
        helm = HelmCli(self._executable, kubeconfig=None, timeout=self._timeout)
        coroutine = helm.run(command, values)
        try:
            coroutine.send(None)
        except StopIteration as end:
            return bytes(end.value)
        raise AssertionError("a run of Helm waits for nothing")
