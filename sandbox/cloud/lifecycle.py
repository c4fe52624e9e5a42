# SPDX-License-Identifier: Apache-2.0
"""Start and stop the cloud: configuration, databases or snapshot, services, seed, warm-up."""

import base64
import concurrent.futures
import json
import os
from pathlib import Path
import secrets
import shutil
import socket
import sys
import time

from sandbox import database, processes, progress
from sandbox.cloud import (
    broker,
    conductors,
    environment,
    fork_server,
    magnum_programs,
    schema,
    snapshot,
)
from sandbox.cloud.conductor_layout import Layout
from sandbox.cloud.config import CERTIFICATE_STORES, Configuration, Paths
from sandbox.cloud.ini import write_private
from sandbox.cloud.services import HOST, SERVICES
from sandbox.state import SandboxError, State

START_TIMEOUT = 180.0
# A process that was just killed holds its port until its last thread has ended.
_CLOSING = 5.0


def up(state: State, certificates: str = "barbican") -> None:
    """Start every service but Magnum and make sure that all that tenants need is there.

    :param certificates: where Magnum is to keep certificates: ``barbican``, or ``x509keypair``
        (Magnum's own database), in which case Barbican is not started.
    :raises SandboxError: a service does not start; the text shows the end of its log. Or there
        are certificates elsewhere already.
    """
    if certificates not in CERTIFICATE_STORES:
        raise SandboxError(
            f"--certificates {certificates}: choose one of {', '.join(CERTIFICATE_STORES)}"
        )
    fresh = not state.get("cloud_ready")
    before = state.get("certificates")
    if not fresh and before != certificates:
        raise SandboxError(
            f"the certificates of this sandbox are in {before}; "
            f"`python -m sandbox reset --certificates {certificates}` creates a new sandbox"
        )
    state.record(certificates=certificates)
    if fresh:
        _stop(state)
        snapshot_there = snapshot.exists()
        if snapshot_there:
            with progress.step("cloud: restore the snapshot") as step:
                step.size(snapshot.restore(state))
        else:
            _erase_data(state)
            _make_secrets(state)
    _configure(state)
    if fresh and not snapshot_there:
        _make_schemas(state)
    _start(state, [name for name in services(state) if name != "magnum"], bootstrap=fresh)
    _seed(state, complete=fresh and not snapshot_there)
    state.record(cloud_ready=True)


def start_magnum(state: State, bin_dir: Path) -> None:
    """Start Magnum, API and conductors, once the management cluster is there.

    :param bin_dir: directory of ``helm``, put first on Magnum's PATH.
    """
    layout = Layout.of(state)
    if layout.names:
        broker.start(state, _secrets(state)["password"])
    if layout.release and not processes.alive(state, "magnum"):
        magnum_programs.migrate(state, layout.release, environment.of_services(state))
    _start(state, _magnum(state), env=_with_helm(bin_dir))


def stop_magnum(state: State) -> None:
    """End API and conductors; nothing else notices."""
    fork_server.forget(state, _magnum(state))
    processes.stop(state, "magnum")
    for name in Layout.of(state).names:
        conductors.stop(state, name)


def _magnum(state: State) -> list[str]:
    return ["magnum", *Layout.of(state).names]


def _with_helm(bin_dir: Path) -> dict[str, str]:
    return {"PATH": f"{bin_dir}{os.pathsep}{os.environ['PATH']}"}


def restart(state: State, name: str, timeout: float = 10.0) -> None:
    """End one service and start it again with the environment that it had."""
    programs = _magnum(state) if Layout.of(state).runs_programs else []
    wish = fork_server.wanted(state).get(name)
    if wish is None and name not in programs:
        raise SandboxError(f"{name} was never started here; choose one of {', '.join(SERVICES)}")
    if name in Layout.of(state).names:
        conductors.stop(state, name, timeout)
    else:
        processes.stop(state, name, timeout)
    _begin(state, name, wish.env if wish else _with_helm(Path(state.get("bin_dir"))))
    _wait(state, name)


def down(state: State) -> None:
    """End every service; databases stay."""
    _stop(state)


def erase(state: State) -> None:
    """Forget everything in the cloud; the next start begins with the snapshot again."""
    _stop(state)
    state.record(cloud_ready=None)


def status(state: State) -> list[tuple[str, str]]:
    """Each service with ``running (real)`` if it answers, else ``starting`` or ``stopped``."""
    layout = Layout.of(state)
    names = [*services(state), *([broker.NAME, *layout.names] if layout.names else [])]
    names += [database.NAME] if layout.release else []
    return [(name, _service_status(state, name)) for name in names]


def services(state: State) -> list[str]:
    """The services of this sandbox, in the order in which they are shown."""
    unused = {"barbican"} if state.get("certificates") == "x509keypair" else set()
    return [name for name in SERVICES if name not in unused]


def _service_status(state: State, name: str) -> str:
    if not processes.alive(state, name):
        return "stopped"
    return "running (real)" if _answers(state, name) else "starting"


def _stop(state: State) -> None:
    fork_server.forget(state)
    for name in Layout.of(state).names:
        conductors.stop(state, name)
    for name in (*reversed(SERVICES), *(f"schema-{name}" for name in schema.MAKERS)):
        processes.stop(state, name)
    processes.stop(state, fork_server.NAME)
    broker.stop(state)
    database.stop(state)


def _erase_data(state: State) -> None:
    for name in (*snapshot.KEPT_FOLDERS, "scratch", "etc"):
        shutil.rmtree(Paths.of(state).root / name, ignore_errors=True)


def _make_secrets(state: State) -> None:
    """One password for all users and one key for Barbican, kept with the databases."""
    content = {
        "password": secrets.token_urlsafe(18),
        "barbican_key": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
    }
    write_private(Paths.of(state).root / snapshot.SECRETS_FILE, json.dumps(content))


def _secrets(state: State) -> dict[str, str]:
    content: dict[str, str] = json.loads((Paths.of(state).root / snapshot.SECRETS_FILE).read_text())
    return content


def _configure(state: State) -> None:
    from sandbox.cloud import seed

    content, layout = _secrets(state), Layout.of(state)
    # Another driver is given an administrator's rights; this project's has roles of its own.
    user = "kubeconfig" if layout.driver else "driver.kubeconfig"
    Configuration(
        state=state,
        password=content["password"],
        barbican_key=content["barbican_key"],
        certificates=state.get("certificates"),
        kubeconfig=state.path("management", user),
        layout=layout,
    ).write()
    seed.write_clouds_yaml(state, content["password"])


def _make_schemas(state: State) -> None:
    """All databases, side by side: importing the services' code is what takes the time."""
    # The longest first, so that it does not end alone.
    order = sorted(schema.MAKERS, key=lambda name: name not in ("nova", "keystone", "neutron"))
    with progress.step("cloud: create the databases (first time only)") as step:
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for outcome in [pool.submit(_make_schema, state, name) for name in order]:
                outcome.result()
        step.size(Paths.of(state).databases)


def _make_schema(state: State, name: str) -> None:
    processes.run(
        state,
        f"schema-{name}",
        [sys.executable, "-m", "sandbox.cloud.schema", name, str(state.root)],
        env=environment.of_services(state) | {"OS_BOOTSTRAP_PASSWORD": _secrets(state)["password"]},
        timeout=schema.COMMAND_TIMEOUT,
    )


def _start(
    state: State, names: list[str], env: dict[str, str] | None = None, bootstrap: bool = False
) -> None:
    with progress.step(f"cloud: start {', '.join(names)}") as step:
        processes.start(
            state,
            fork_server.NAME,
            [sys.executable, "-m", "sandbox.cloud.fork_server", str(state.root)],
            env=environment.of_services(state),
            cwd=Paths.of(state).root,
        )
        for name in names:
            if not processes.alive(state, name):
                _refuse_stranger(state, name)
                _begin(state, name, env)
        if bootstrap:  # Nova waits for its user before it answers
            _wait(state, "keystone")
            _identity(state)
        for name in names:
            _wait(state, name)
        entries = [processes.recorded(state, name) for name in (fork_server.NAME, *names)]
        used = processes.memory_mib(entry.pid for entry in entries if entry)
        step.note(f"{used:.0f} MiB of memory")


def _begin(state: State, name: str, env: dict[str, str] | None) -> None:
    """Start a service; it need not answer yet."""
    if name in _magnum(state) and Layout.of(state).runs_programs:
        magnum_programs.start(state, name, environment.of_services(state) | (env or {}))
    else:
        fork_server.want(state, name, env)


def _refuse_stranger(state: State, name: str) -> None:
    deadline = time.monotonic() + _CLOSING
    while _answers(state, name):
        if time.monotonic() > deadline:
            raise SandboxError(
                f"port {state.port(name)}, which is {name}'s, is in use by another program; "
                f"stop it, or remove {state.root} to get other ports"
            )
        time.sleep(0.1)


def _identity(state: State) -> None:
    from sandbox.cloud import seed

    seed.identity(state, _secrets(state)["password"])


def _seed(state: State, complete: bool) -> None:
    from sandbox.cloud import seed

    with progress.step("cloud: seed and warm up") as step:
        if complete:
            seed.resources(state)
            snapshot.keep(state)
        seed.external_network(state)
        seed.keypair(state)
        seed.warm_up(state)
        step.size(Paths.of(state).databases)


def _wait(state: State, name: str) -> None:
    """Wait until the service answers or its process has ended."""
    deadline = time.monotonic() + START_TIMEOUT
    while not (processes.alive(state, name) and _answers(state, name)):
        processes.check_not_refused()
        if not processes.alive(state, fork_server.NAME):
            tail = processes.log_tail(state, fork_server.NAME)
            raise SandboxError(f"the fork server of the services has exited.\n{tail}")
        if _ended(state, name):
            tail = processes.log_tail(state, name)
            raise SandboxError(f"{name} exited while starting.\n{tail}")
        if time.monotonic() > deadline:
            tail = processes.log_tail(state, name)
            raise SandboxError(f"{name} does not respond after {START_TIMEOUT:.0f} s.\n{tail}")
        time.sleep(0.1)


def _ended(state: State, name: str) -> bool:
    """Whether its process, the one that was forked for the last wish, is dead."""
    entry, wish = processes.recorded(state, name), fork_server.wanted(state).get(name)
    asked = wish.asked if wish else 0
    return entry is not None and entry.order > asked and not entry.running


def _answers(state: State, name: str) -> bool:
    if name in Layout.of(state).names:
        return conductors.listens(state, name)
    try:
        with socket.create_connection((HOST, state.port(name)), timeout=1.0):
            return True
    except OSError:
        return False
