# SPDX-License-Identifier: Apache-2.0
"""What the played OpenStack has: one file, which a test changes while conductors run.

Runs in an environment where nothing of this project is installed, too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

#: The environment variable that names the file.
VARIABLE = "ADOPTION_CLOUD"
#: The one that names the directory of the charts that come with the driver.
BUNDLED = "ADOPTION_BUNDLED"
START: dict[str, Any] = {
    "images": {
        "ubuntu-kube": {
            "id": "2b8a4d0a-6d3c-4a7f-8d27-3f0f2f4a9b01",
            "kube_version": "1.34.4",
            "os_distro": "ubuntu",
        }
    },
    "flavors": {
        "small": {"id": "flavor-1", "ram": 4096, "vcpus": 2, "disk": 20},
        "large": {"id": "flavor-2", "ram": 8192, "vcpus": 4, "disk": 40},
    },
    "volume_types": ["fast", "slow"],
    "external_network": {"id": "9f1f4a0e-6d3c-4a7f-8d27-3f0f2f4a9b01", "name": "public"},
    "credentials": {},
}


def read() -> dict[str, Any]:
    """Everything there is."""
    found: dict[str, Any] = json.loads(Path(os.environ[VARIABLE]).read_text())
    return found


def write(everything: dict[str, Any]) -> None:
    """Make it that there is exactly this."""
    Path(os.environ[VARIABLE]).write_text(json.dumps(everything))


def add_credential(name: str, user: str) -> str:
    """A new application credential; returns its id."""
    everything = read()
    identity = f"credential-{len(everything['credentials']) + everything.get('deleted', 0) + 1}"
    everything["credentials"][identity] = {"name": name, "user": user}
    write(everything)
    return identity


def drop_credential(identity: str) -> bool:
    """Whether an application credential was there; it is not there any more."""
    everything = read()
    there = everything["credentials"].pop(identity, None) is not None
    everything["deleted"] = everything.get("deleted", 0) + there
    write(everything)
    return there
