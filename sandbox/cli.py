# SPDX-License-Identifier: Apache-2.0
"""The commands of the sandbox: up, down, status, reset, logs, env, fault, janitor, build, demo."""

import argparse
import os
from pathlib import Path
import shlex
import sys
import warnings

from sandbox import faults, processes, progress, stack
from sandbox.cloud import magnum_release
from sandbox.cloud.conductor_layout import Layout, RABBIT, TRANSPORTS
from sandbox.cloud.config import CERTIFICATE_STORES
from sandbox.management import addon_provider, releases, tenant_api
from sandbox.management.releases import Providers
from sandbox.state import SandboxError, State

CHECKOUT = Path(__file__).resolve().parents[1]


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    warnings.filterwarnings("ignore", module="futurist|eventlet")  # their own deprecation
    arguments = _parser().parse_args(argv)
    try:
        state = State(arguments.dir)
        return int(COMMANDS[arguments.command](state, arguments) or 0)
    except (SandboxError, OSError) as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("sandbox: interrupted; `down` stops the started processes", file=sys.stderr)
        return 130


def default_directory() -> Path:
    """``$SANDBOX_DIR``, else ``.sandbox`` in the checkout."""
    return Path(os.environ.get("SANDBOX_DIR") or CHECKOUT / ".sandbox")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    parser.add_argument(
        "--dir",
        type=Path,
        default=default_directory(),
        help="directory of this sandbox (default: $SANDBOX_DIR or .sandbox in the checkout)",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in (
        ("up", "start all processes that do not run"),
        ("reset", "delete all data and start again"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument(
            "--certificates",
            choices=CERTIFICATE_STORES,
            help="certificate store of Magnum (default: with up unchanged, initially barbican)",
        )
        command.add_argument(
            "--transport",
            choices=TRANSPORTS,
            help="transport between Magnum's API and its conductors: memory, or rabbit, a real "
            "RabbitMQ (default: with up unchanged, initially memory)",
        )
        command.add_argument(
            "--conductors", type=int, help="number of magnum-conductors, with rabbit"
        )
        command.add_argument("--workers", type=int, help="workers of each conductor, with rabbit")
        command.add_argument(
            "--magnum",
            metavar="VERSION",
            help="release of Magnum, with rabbit and MariaDB; on a running sandbox that has an "
            f"earlier one this is an upgrade ({', '.join(magnum_release.known())})",
        )
        _add_providers(command)
        command.add_argument(
            "--tenant-api",
            choices=tenant_api.MODES,
            help="API servers of the clusters: memory, or real, with etcd, kube-apiserver and "
            "their controllers for each cluster (default: with up unchanged, initially memory)",
        )
        command.add_argument(
            "--addon-provider",
            choices=addon_provider.KINDS,
            help="who installs addons: simulated, or real, a checkout of which $ADDON_PROVIDER "
            "names, with --tenant-api real (default: with up unchanged, initially simulated)",
        )
        command.add_argument(
            "--driver",
            metavar="NAME",
            help="driver that Magnum has instead of this project's, with --magnum 20 "
            f"({magnum_release.PREDECESSOR})",
        )
    commands.add_parser("down", help="stop all processes; data is kept")
    commands.add_parser("status", help="show processes with port, and memory and disk usage")
    commands.add_parser("env", help='print shell exports: eval "$(python -m sandbox env)"')
    logs = commands.add_parser("logs", help="list all logs, or show the last lines of one")
    logs.add_argument("name", nargs="?", help="name of a log, as listed")
    logs.add_argument("-n", "--lines", type=int, default=100)
    logs.add_argument("-f", "--follow", action="store_true", help="continue as the log grows")
    build = commands.add_parser("build", help="build the programs of the management cluster")
    build.add_argument(
        "--charts",
        action="store_true",
        help="also those of the charts' tests: Helm 4, CRDs of other releases",
    )
    _add_providers(build)
    demo = commands.add_parser("demo", help="create, use, change and delete a cluster")
    demo.add_argument(
        "--keep",
        action="store_true",
        default=os.environ.get("KEEP", "0") not in ("", "0"),
        help="keep the sandbox running at the end (also: KEEP=1)",
    )
    fault = commands.add_parser(
        "fault", help="switch a fault on or off; without a name, list all faults"
    )
    fault.add_argument("name", nargs="?")
    fault.add_argument("switch", nargs="?", choices=("on", "off"))
    fault.add_argument("match", nargs="?", help="regular expression of the affected names")
    janitor = commands.add_parser(
        "janitor", help="start or stop the real janitor, a checkout of which $JANITOR names"
    )
    janitor.add_argument("act", choices=("start", "stop"))
    return parser


def _add_providers(command: argparse.ArgumentParser) -> None:
    for option, name, table, initial in (
        ("--capi", "Cluster API", releases.CLUSTER_API, Providers.capi),
        ("--capo", "its OpenStack provider", releases.CAPO, Providers.capo),
    ):
        known = ", ".join(release.version for release in table)
        command.add_argument(
            option,
            metavar="VERSION",
            help=f"release of {name}; a later one than a sandbox has is an upgrade ({known}; "
            f"default: with up unchanged, initially {initial.version})",
        )


def _up(state: State, arguments: argparse.Namespace) -> None:
    stack.up(state, *_choices(state, arguments))


def _down(state: State, _: argparse.Namespace) -> None:
    stack.down(state)


def _reset(state: State, arguments: argparse.Namespace) -> None:
    stack.reset(state, *_choices(None, arguments))


def _choices(
    state: State | None, arguments: argparse.Namespace
) -> tuple[str | None, Layout | None, Providers, str | None, str | None]:
    """What was said about the sandbox; of a new one there is no *state*."""
    return (
        arguments.certificates,
        _layout(arguments),
        _providers(state, arguments),
        arguments.tenant_api,
        arguments.addon_provider,
    )


def _providers(state: State | None, arguments: argparse.Namespace) -> Providers:
    """What was said about them, else those of the sandbox, or the initial ones."""
    return releases.choose(state, arguments.capi, arguments.capo)


def _layout(arguments: argparse.Namespace) -> Layout | None:
    """What was said about Magnum; None when nothing was."""
    names = ("transport", "conductors", "workers", "magnum", "driver")
    said = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    if "magnum" in said:
        said = {
            "transport": RABBIT,
            **said,
            "magnum": magnum_release.choose(said["magnum"]).version,
        }
    return Layout(**said) if said else None


def _status(state: State, _: argparse.Namespace) -> int:
    """0 when everything is up, else 3, as systemctl does."""
    from sandbox import cloud, management

    parts = [*cloud.status(state), *management.status(state)]
    ports = state.ports()
    for name, condition in parts:
        where = f"127.0.0.1:{ports[name]}" if name in ports else ""
        print(f"{name:32} {condition:10} {where}".rstrip())
    for name in state.get("faults", []):
        print(f"fault {name} is on")
    pids = processes.owned(state)
    print(
        f"{len(pids)} processes, {processes.memory_mib(pids):.0f} MiB of memory, "
        f"{progress.disk_mib(state.root):.0f} MiB of disk in {state.root}"
    )
    return 0 if all(condition.startswith("running") for _, condition in parts) else 3


def _logs(state: State, arguments: argparse.Namespace) -> None:
    if arguments.name is None:
        for path in sorted((state.root / "log").glob("*.log")):
            print(f"{path.stem:32} {path.stat().st_size // 1024:8} KiB  {path}")
        return
    path = state.log(arguments.name)
    if not path.exists():
        raise SandboxError(f"{path} does not exist; `logs` alone lists the names")
    follow = ["-f"] if arguments.follow else []
    sys.stdout.flush()
    os.execvp("tail", ["tail", "-n", str(arguments.lines), *follow, str(path)])  # noqa: S606


def _env(state: State, _: argparse.Namespace) -> None:
    for name, value in stack.environment(state).items():
        print(f"export {name}={shlex.quote(value)}")


def _fault(state: State, arguments: argparse.Namespace) -> None:
    if arguments.name is None:
        for fault in faults.registry().values():
            mark = "on" if fault.name in state.get("faults", []) else "off"
            print(f"{fault.name:24} {mark:4} {fault.summary}")
        return
    if arguments.switch is None:
        raise SandboxError(f"fault {arguments.name}: on or off is required")
    if arguments.name in faults.registry() and not processes.owned(state):
        raise SandboxError(
            f"no sandbox is running in {state.root}; run `python -m sandbox up` first"
        )
    print(faults.switch(state, arguments.name, arguments.switch == "on", arguments.match))


def _janitor(state: State, arguments: argparse.Namespace) -> None:
    from sandbox.management import janitor

    if not processes.owned(state):
        raise SandboxError(f"no sandbox is running in {state.root}; run `python -m sandbox up`")
    if arguments.act == "start":
        janitor.start(state)
    else:
        janitor.stop(state)


def _build(state: State, arguments: argparse.Namespace) -> None:
    from sandbox import management
    from sandbox.management import binaries, crd_releases

    providers = _providers(state, arguments)
    bin_dir = management.build(providers)
    if providers == Providers.of(state):
        state.record(bin_dir=str(bin_dir))
    if arguments.charts:
        binaries.one(binaries.HELM4)
        crd_releases.fetch()


def _demo(state: State, arguments: argparse.Namespace) -> int:
    from sandbox import demo

    return demo.run(state, arguments.keep)


COMMANDS = {
    "up": _up,
    "down": _down,
    "reset": _reset,
    "status": _status,
    "logs": _logs,
    "env": _env,
    "fault": _fault,
    "janitor": _janitor,
    "build": _build,
    "demo": _demo,
}
