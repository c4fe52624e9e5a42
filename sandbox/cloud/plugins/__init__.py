# SPDX-License-Identifier: Apache-2.0
"""Simulated parts of the cloud, at the plug-in points of the services.

Services find plug-ins by entry point (https://docs.openstack.org/stevedore/). The sandbox is not
an installed package, so it writes the metadata that announces them.
"""

from collections.abc import Callable
from pathlib import Path
import uuid

ENTRY_POINTS = """\
[octavia.api.drivers]
sandbox = sandbox.cloud.plugins.loadbalancer:Driver
ovn = sandbox.cloud.plugins.loadbalancer:Driver

[neutron.ml2.mechanism_drivers]
sandbox = sandbox.cloud.plugins.network:AlwaysBound

[neutron.service_plugins]
sandbox_floating_ip = sandbox.cloud.plugins.network:FloatingIPStatus
"""


def announce(folder: Path) -> Path:
    """Make ``folder`` a place to import the sandbox from, with metadata of its plug-ins.

    It is to stand on ``PYTHONPATH`` instead of the checkout, where other directories lie.
    """
    metadata = folder / "sandbox_cloud-0.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    about = "Metadata-Version: 2.1\nName: sandbox-cloud\nVersion: 0\n"
    _make(metadata / "METADATA", lambda draft: draft.write_text(about))
    _make(metadata / "entry_points.txt", lambda draft: draft.write_text(ENTRY_POINTS))
    here = Path(__file__).resolve().parents[2]
    _make(folder / "sandbox", lambda draft: draft.symlink_to(here))
    return folder


def _make(place: Path, make: Callable[[Path], object]) -> None:
    """Make a file anew so that it is never missing: the services' schemas are made side by side."""
    draft = place.with_name(f".{place.name}.{uuid.uuid4().hex}")
    make(draft)
    draft.replace(place)
