# SPDX-License-Identifier: Apache-2.0
"""Which flags the programs that kubeadm starts know.

The kubelet is not built here: its flags are read from the source of its release. The API server,
the controller manager and etcd are those of the sandbox, which parse what they are given.
"""

from __future__ import annotations

import functools
import re
import subprocess

from sandbox.management import binaries
from sandbox.management.kubernetes_releases import KubernetesRelease
from sandbox.management.releases import Providers

OPTIONS = ("cmd/kubelet/app/options/*.go", "pkg/kubelet/config/flags.go")
DECLARATION = re.compile(r'\bfs\.\w+\([^"\n]*"([a-z0-9-]+)"')
#: From a library that all programs of Kubernetes share.
#: https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/
LOGGING = frozenset(("log-flush-frequency", "logging-format", "v", "vmodule"))
TIMEOUT = 60.0


def of_kubelet(release: KubernetesRelease) -> frozenset[str]:
    """Names of the kubelet's flags.

    :raises SandboxError: the release's module cannot be had.
    """
    module = release.directory()
    files = [path for pattern in OPTIONS for path in module.glob(pattern)]
    texts = [path.read_text() for path in files if not path.name.endswith("_test.go")]
    return LOGGING | frozenset(name for text in texts for name in DECLARATION.findall(text))


@functools.cache
def refused(command: tuple[str, ...]) -> str:
    """What a program of the sandbox says against its flags; empty when it takes them.

    It prints its version once it has parsed them, and ends.
    """
    name, *flags = command
    program = next(one for one in binaries.programs(Providers()) if one.name == name)
    done = subprocess.run(
        [binaries.one(program), *flags, "--version"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    return done.stderr.strip().splitlines()[-1] if done.returncode else ""
