# SPDX-License-Identifier: Apache-2.0
"""Faults of the cloud: scheduler, hypervisor, load balancer.

What is played reads its faults from files, one for each, with a regular expression on names.
"""

import os
from pathlib import Path
import re
from typing import Any

from sandbox.faults.fault import expression, Fault
from sandbox.processes import OWNER_VARIABLE
from sandbox.state import State

#: Names of the faults that played parts look up.
SERVER_FAILS = "server-fails"
LOAD_BALANCER_FAILS = "load-balancer-fails"
#: A trait that no compute node has (https://docs.openstack.org/nova/latest/user/flavors.html).
_NOWHERE = "CUSTOM_SANDBOX_NOWHERE"
_REQUIRED = f"trait:{_NOWHERE}"


def hits(name: str, thing: str) -> bool:
    """Whether a fault is on for a thing of that name; asked in the processes of the cloud."""
    try:
        pattern = _file(Path(os.environ[OWNER_VARIABLE]), name).read_text()
    except FileNotFoundError:
        return False
    return re.search(pattern, thing) is not None


def _file(root: Path, name: str) -> Path:
    return root / "cloud" / "faults" / name


def _written(name: str, summary: str) -> Fault:
    """A fault that :func:`hits` finds."""

    def on(state: State, match: str | None) -> str:
        pattern = expression(match)
        state.path("cloud", "faults", name).write_text(pattern)
        return f"{name} is on for every name that matches {pattern!r}"

    def off(state: State) -> str:
        _file(state.root, name).unlink(missing_ok=True)
        return f"{name} is off"

    return Fault(name, summary, on=on, off=off)


def _no_host(state: State, match: str | None) -> str:
    admin, pattern = _admin(state), expression(match)
    admin.placement.create_trait(_NOWHERE)
    hit = [one for one in _flavors(admin) if re.search(pattern, one.name)]
    for one in hit:
        admin.compute.create_flavor_extra_specs(one, {_REQUIRED: "required"})
    return f"no host takes a new server of flavor {', '.join(one.name for one in hit) or 'nothing'}"


def _hosts_again(state: State) -> str:
    admin = _admin(state)
    for one in _flavors(admin):
        if _REQUIRED in admin.compute.fetch_flavor_extra_specs(one).extra_specs:
            admin.compute.delete_flavor_extra_specs_property(one, _REQUIRED)
    return "Nova finds hosts for all flavors"


def _flavors(admin: Any) -> list[Any]:
    return sorted(admin.compute.flavors(is_public=None), key=lambda one: str(one.name))


def _admin(state: State) -> Any:
    from sandbox.cloud import seed

    return seed.connect(state, "admin")


#: All faults by name.
FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault(
            "no-valid-host",
            "Nova finds no host for new servers of flavors",
            on=_no_host,
            off=_hosts_again,
        ),
        _written(SERVER_FAILS, "the hypervisor cannot start servers, which end in ERROR"),
        _written(LOAD_BALANCER_FAILS, "Octavia cannot change load balancers, which end in ERROR"),
    )
}
