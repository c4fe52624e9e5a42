# SPDX-License-Identifier: Apache-2.0
"""The sandbox as a whole: start, stop and reset cloud and management cluster."""

from collections.abc import Callable
import concurrent.futures
import contextlib
import os
from pathlib import Path
import shutil
import sys
import time

from sandbox import database, processes, progress
from sandbox.cloud import broker, magnum_release
from sandbox.cloud.conductor_layout import Layout
from sandbox.cloud.config import CERTIFICATE_STORES
from sandbox.management.releases import Providers
from sandbox.state import file_lock, SandboxError, State

#: Facts of a sandbox that are its user's choices.
_CHOICES = ("addon_provider", "certificates", "layout", "providers", "tenant_api")
# What a reset keeps: the ports and the slot, so that what was told to a user stays true.
KEPT_BY_RESET = {"ports.json", "state.json", ".lock", ".turn.lock"}


def up(
    state: State,
    certificates: str | None = None,
    layout: Layout | None = None,
    providers: Providers | None = None,
    tenant_api: str | None = None,
    addon_provider: str | None = None,
) -> None:
    """Start the whole sandbox: binaries, cloud and management cluster side by side, Magnum.

    :param certificates: see ``sandbox.cloud.up``; None for as before.
    :param layout: of Magnum; None for as before.
    :param providers: Cluster API and its OpenStack provider; None for as before.
    :param tenant_api: one of ``sandbox.management.tenant_api.MODES``; None for as before.
    :param addon_provider: one of ``sandbox.management.addon_provider.KINDS``; None for as before.
    :raises SandboxError: something does not start; what runs already goes on running. Or Magnum
        runs in another layout.
    """
    from sandbox import cloud, management

    begin = time.monotonic()
    store = certificates or state.get("certificates") or CERTIFICATE_STORES[0]
    with _turn(state):
        _lay_out(state, layout or Layout.of(state))
        management.choose_tenants(state, tenant_api, addon_provider)
        management.choose(state, providers or Providers.of(state))
        bin_dir = management.build(state)
        state.record(bin_dir=str(bin_dir))
        _both(lambda: cloud.up(state, store), lambda: management.up(state))
        cloud.start_magnum(state, bin_dir)
    progress.say(
        f"the sandbox is up after {time.monotonic() - begin:.1f} s, "
        f"{processes.memory_mib(processes.owned(state)):.0f} MiB of memory, state in {state.root}"
    )


def _lay_out(state: State, layout: Layout) -> None:
    """Remember the layout, and have what it needs before anything starts.

    A later release of Magnum takes the place of the one that runs, as in an upgrade.
    """
    from sandbox import cloud

    before = Layout.of(state)
    if state.get("cloud_ready") and not layout.can_follow(before):
        raise SandboxError(
            f"Magnum's database is that of {before}; "
            f"`python -m sandbox reset {layout}` creates a new sandbox"
        )
    running = layout != before and processes.alive(state, "magnum")
    if running and layout.magnum == before.magnum:
        raise SandboxError(
            f"Magnum runs with {before}; `python -m sandbox down` first, then `up {layout}`"
        )
    if layout.names:
        broker.fetch()
    if layout.release:
        database.fetch()
        magnum_release.install(layout.release)
    if running:
        cloud.stop_magnum(state)
    layout.record(state)


def _both(*parts: Callable[[], None]) -> None:
    """Run the parts side by side; when one fails or the user interrupts, the others give up."""
    processes.allow_starts()
    pool = concurrent.futures.ThreadPoolExecutor(len(parts))
    try:
        for done in concurrent.futures.as_completed([pool.submit(part) for part in parts]):
            done.result()
    except BaseException:
        processes.refuse_starts()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def down(state: State) -> None:
    """End every process of the sandbox."""
    from sandbox import cloud, management
    from sandbox.management import second
    from sandbox.management.faults import end_other

    with _turn(state), progress.step("stop all processes"):
        # Whatever the parts know no longer, the sweep at the end finds by its mark.
        for part in (cloud.down, end_other, second.end, management.down):
            with contextlib.suppress(SandboxError):
                part(state)
        processes.stop_all(state)


def reset(
    state: State,
    certificates: str | None = None,
    layout: Layout | None = None,
    providers: Providers | None = None,
    tenant_api: str | None = None,
    addon_provider: str | None = None,
) -> None:
    """Delete all data of the sandbox and start a new one on the same ports, which has what is said.

    What was chosen for the old one is forgotten: a test must not run on what another has left.

    :param certificates: as for :func:`up`, but None for the initial one; so are the others.
    """
    down(state)
    with _turn(state):
        for path in state.root.iterdir():
            if path.name in KEPT_BY_RESET:
                continue
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        state.record(cloud_ready=None, faults=None, upgraded=None, **dict.fromkeys(_CHOICES))
    up(state, certificates, layout, providers, tenant_api, addon_provider)


def environment(state: State) -> dict[str, str]:
    """Variables with which ``openstack``, ``kubectl`` and ``helm`` talk to the sandbox.

    :raises SandboxError: the sandbox was never up.
    """
    from sandbox.cloud.environment import without_proxy

    bin_dir = state.get("bin_dir")
    if bin_dir is None:
        raise SandboxError(f"there is no sandbox in {state.root}; run `python -m sandbox up`")
    return {
        "OS_CLIENT_CONFIG_FILE": str(state.path("cloud", "clouds.yaml")),
        "OS_CLOUD": "demo",
        "KUBECONFIG": str(state.path("management", "kubeconfig")),
        **without_proxy(),
        "PATH": os.pathsep.join(
            [bin_dir, str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        ),
    }


def _turn(state: State) -> contextlib.AbstractContextManager[None]:
    """One command at a time changes what runs; the next one waits."""
    return file_lock(state.root / ".turn.lock")
