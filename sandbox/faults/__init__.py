# SPDX-License-Identifier: Apache-2.0
"""Faults: each causes one failure as in production until it is switched off."""

from sandbox.faults.fault import Fault
from sandbox.state import SandboxError, State


def registry() -> dict[str, Fault]:
    """All faults by name."""
    from sandbox.cloud.faults import FAULTS as OF_THE_CLOUD
    from sandbox.management.faults import FAULTS as OF_MANAGEMENT

    return {QUOTA.name: QUOTA, **OF_THE_CLOUD, **OF_MANAGEMENT}


def switch(state: State, name: str, on: bool, match: str | None = None) -> str:
    """Begin or end a fault and remember it for ``status``.

    :raises SandboxError: there is no such fault, or it cannot be switched now.
    """
    known = registry()
    if name not in known:
        raise SandboxError(f"there is no fault {name}; choose one of {', '.join(known)}")
    said = known[name].on(state, match) if on else known[name].off(state)
    active = {key for key in state.get("faults", []) if key != name} | ({name} if on else set())
    state.record(faults=sorted(active))
    return said


def _quota_on(state: State, match: str | None) -> str:
    from sandbox.cloud import seed

    compute = seed.connect(state, "admin").compute
    tenant = _tenant_id(state)
    used = seed.connect(state, seed.TENANT).compute.get_limits().absolute.instances_used
    limit = used if match is None else quota_number(match)
    compute.update_quota_set(tenant, instances=limit, force=True)
    return f"tenant {seed.TENANT} may have {limit} servers and has {used}"


def _quota_off(state: State) -> str:
    from sandbox.cloud import seed

    limit = seed.COMPUTE_QUOTA["instances"]
    seed.connect(state, "admin").compute.update_quota_set(_tenant_id(state), instances=limit)
    return f"tenant {seed.TENANT} may have {limit} servers"


def _tenant_id(state: State) -> str:
    from sandbox.cloud import seed

    return str(seed.connect(state, "admin").identity.find_project(seed.TENANT).id)


def quota_number(text: str) -> int:
    """Parse a number of servers.

    :raises SandboxError: it is none.
    """
    try:
        return int(text)
    except ValueError as error:
        raise SandboxError(
            f"quota: {text!r} is not a number of servers; omit it for the current usage"
        ) from error


QUOTA = Fault(
    name="quota",
    summary="Nova refuses the tenant's next server: its quota is its current usage (or MATCH)",
    on=_quota_on,
    off=_quota_off,
)
