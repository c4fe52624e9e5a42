# SPDX-License-Identifier: Apache-2.0
"""What Cluster API gives the machines of rendered clusters to set themselves up with.

Cluster API's own code makes it (sandbox/go/clusterapi/bootstrapdata).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import functools
import json
import re
import subprocess

from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object
from sandbox.management import binaries, kubernetes_releases

TIMEOUT = 300.0
#: A bootstrap token. https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/
TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")
#: The kinds of objects of which it is made.
KINDS = ("Cluster", "KubeadmControlPlane", "KubeadmConfigTemplate", "MachineDeployment", "Secret")


@dataclass(frozen=True)
class BootstrapData:
    """The data of one machine.

    :ivar kind: ``init``, ``join`` (another machine of the control plane) or ``worker``.
    :ivar group: name of the worker's MachineDeployment.
    :ivar version: of Kubernetes, like v1.34.4.
    :ivar format: ``cloud-config`` or ``ignition``.
    """

    kind: str
    version: str
    format: str
    data: str
    group: str = ""

    @property
    def fingerprint(self) -> str:
        """The same for machines that are set up alike; each has a token of its own."""
        return f"{self.kind} {self.format} {TOKEN.sub('', self.data)}"


@functools.cache
def program() -> str:
    """The program that makes it, built when it is not there."""
    return str(binaries.one(kubernetes_releases.BOOTSTRAP_DATA))


def of_clusters(clusters: Mapping[str, Sequence[Object]]) -> dict[str, list[BootstrapData]]:
    """The data of one machine of each kind and node group, for the objects of several clusters.

    :raises AssertionError: Cluster API cannot make it; the text is its own.
    """
    given = {
        name: [one for one in objects if one["kind"] in KINDS] for name, objects in clusters.items()
    }
    done = subprocess.run(
        [program()],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name, made in found.items():
        assert "error" not in made, f"{name}: {made['error']}"
    return {
        name: [BootstrapData(**one) for one in made["machines"]] for name, made in found.items()
    }
