# SPDX-License-Identifier: Apache-2.0
"""Run a command with a temporary API server: with_api_server DIRECTORY COMMAND...

The server is real and has the definitions and webhooks of Cluster API and its OpenStack provider,
but no controller touches an object: what runs here writes ``.status`` itself. The command finds the
administrator's kubeconfig in ``K8S_CAPI_HELM_KUBECONFIG`` and a helm in ``PATH``.
"""

from __future__ import annotations

import os
from pathlib import Path
import subprocess
import sys

from sandbox import management, processes
from sandbox.state import SandboxError, State


def main(arguments: list[str]) -> int:
    if len(arguments) < 2:
        print("usage: with_api_server DIRECTORY COMMAND...", file=sys.stderr)
        return 2
    try:
        with processes.throw_away(Path(arguments[0])) as state:
            management.up_api(state)
            return subprocess.run(arguments[1:], env=environment(state), check=False).returncode
    except SandboxError as error:
        print(f"with_api_server: {error}", file=sys.stderr)
        return 1


def environment(state: State) -> dict[str, str]:
    """The environment of the command."""
    found = dict(os.environ)
    found["K8S_CAPI_HELM_KUBECONFIG"] = str(management.kubeconfig(state))
    found["PATH"] = os.pathsep.join((str(management.build(state)), found.get("PATH", os.defpath)))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
