# SPDX-License-Identifier: Apache-2.0
"""RabbitMQ: one node on loopback, with its own ports, cookie, user and data in the sandbox."""

import functools
import os
from pathlib import Path
import shutil
import time
from urllib.parse import quote

from sandbox import debian, processes, progress
from sandbox.cloud.ini import write_private
from sandbox.cloud.services import HOST
from sandbox.state import State

NAME = "rabbitmq"
#: Erlang's port mapper, which a node starts for the whole machine where it finds none.
PORT_MAPPER = "epmd"
USER = "sandbox"
START_TIMEOUT = 90.0
_NODE = "rabbit@localhost"
_SCRIPT = "usr/lib/rabbitmq/bin/rabbitmq-server"
_ERLANG = "usr/lib/erlang"
# Debian's own `erl` knows only where the package would be installed.
_ERL = """#!/bin/sh
export ROOTDIR={root} BINDIR={binaries} EMU=beam PROGNAME=erl
exec {binaries}/erlexec "$@"
"""


def url(state: State, password: str) -> str:
    """Where oslo.messaging finds it (https://docs.openstack.org/oslo.messaging/latest/)."""
    return f"rabbit://{USER}:{quote(password, safe='')}@{HOST}:{state.port(NAME)}/"


def fetch() -> Path:
    """Where the program is; downloaded at the first time.

    :raises SandboxError: it is neither installed nor can it be downloaded.
    """
    return debian.tree("rabbitmq-server", _SCRIPT)


def start(state: State, password: str) -> None:
    """Start it, unless it runs, and wait until the user can log in.

    :raises SandboxError: it cannot be had, or does not come up.
    """
    place = fetch()
    with progress.step("cloud: start RabbitMQ") as step:
        home = state.path(NAME, "x").parent
        erlang = _write(state, place, home, password)
        environment = _environment(state, place, home)
        processes.start(
            state,
            PORT_MAPPER,
            [str(erlang / "epmd"), "-port", str(state.port(PORT_MAPPER)), "-address", HOST],
            env=environment,
        )
        processes.start(
            state,
            NAME,
            [str(place / _SCRIPT)],
            env=environment,
            cwd=home,
            ready=functools.partial(answers, state, password),
            timeout=START_TIMEOUT,
        )
        pids = [*processes.members(state, NAME), *processes.members(state, PORT_MAPPER)]
        step.note(f"{processes.memory_mib(pids):.0f} MiB of memory")


def stop(state: State) -> None:
    """Stop the broker; messages in its queues are lost."""
    processes.stop(state, NAME, timeout=30.0)
    processes.stop(state, PORT_MAPPER)
    shutil.rmtree(state.root / NAME / "mnesia", ignore_errors=True)


def answers(state: State, password: str) -> bool:
    """Whether the user can log in."""
    import amqp

    connection = amqp.Connection(
        f"{HOST}:{state.port(NAME)}", userid=USER, password=password, connect_timeout=2
    )
    try:
        connection.connect()
        connection.close()
    except (OSError, amqp.AMQPError):
        time.sleep(0.2)
        return False
    return True


def _write(state: State, place: Path, home: Path, password: str) -> Path:
    """Write what it reads; returns the directory of Erlang's programs."""
    lines = {
        "listeners.tcp.1": f"{HOST}:{state.port(NAME)}",
        "default_user": USER,
        "default_pass": password,
        "vm_memory_high_watermark.relative": 0.2,
    }
    text = "".join(f"{key} = {value}\n" for key, value in lines.items())
    write_private(home / "rabbitmq.conf", text)
    root = place / _ERLANG
    erlang = next(root.glob("erts-*")) / "bin"
    erl = home / "bin" / "erl"
    erl.parent.mkdir(exist_ok=True)
    erl.write_text(_ERL.format(root=root, binaries=erlang))
    erl.chmod(0o700)
    return erlang


def _environment(state: State, place: Path, home: Path) -> dict[str, str]:
    """See https://www.rabbitmq.com/docs/configure#supported-environment-variables."""
    ours = {
        "HOME": home,  # of the cookie with which nodes know each other
        "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "ERL_EPMD_PORT": state.port(PORT_MAPPER),
        "ERL_EPMD_ADDRESS": HOST,
        "RABBITMQ_NODENAME": _NODE,
        "RABBITMQ_DIST_PORT": state.port(f"{NAME}-nodes"),
        "RABBITMQ_SERVER_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        "RABBITMQ_MNESIA_BASE": home / "mnesia",
        "RABBITMQ_LOG_BASE": home / "log",
        "RABBITMQ_LOGS": "-",  # to the process's own log
        "RABBITMQ_CONFIG_FILE": home / "rabbitmq.conf",
        "RABBITMQ_CONF_ENV_FILE": home / "none",
        "RABBITMQ_ENABLED_PLUGINS_FILE": home / "none",
    }
    own = [str(path) for path in debian.libraries(place)]
    if own:
        others = os.environ.get("LD_LIBRARY_PATH")
        ours["LD_LIBRARY_PATH"] = os.pathsep.join([*own, *([others] if others else [])])
    return {**os.environ, **{key: str(value) for key, value in ours.items()}}
