# SPDX-License-Identifier: Apache-2.0
"""The process that forks all services: ``python -m sandbox.cloud.fork_server DIRECTORY``.

It imports once what all services import. They start in half the time, and their memory pages of
that code are shared. It forks each service that the file ``wanted.json`` asks for; a service that
ended is forked again only when it is asked for anew, so that a crash is seen and not hidden.
"""

from collections.abc import Iterable, Iterator
import contextlib
import dataclasses
import gc
import importlib
from importlib.abc import MetaPathFinder
import json
import os
from pathlib import Path
import signal
import sys
import time
import traceback
from typing import Any
import warnings

from sandbox import processes
from sandbox.state import file_lock, State

NAME = "openstack"
LOOK_EVERY_SECONDS = 0.2

SHARED_MODULES = """
    alembic cheroot.wsgi cryptography.fernet cryptography.x509 flask jsonschema
    keystoneauth1.loading keystonemiddleware.auth_token openstack oslo_concurrency.lockutils
    oslo_config.cfg oslo_context.context oslo_db.sqlalchemy.enginefacade oslo_log.log
    oslo_messaging oslo_middleware oslo_policy.policy oslo_reports.opts
    oslo_serialization.jsonutils oslo_utils.timeutils oslo_versionedobjects.base osprofiler.web
    paste.deploy pecan requests routes sqlalchemy.dialects.sqlite sqlalchemy.orm stevedore webob
    webob.dec wsme yaml
""".split()

# They still import eventlet, without using it under WSGI; Nova refuses to run beside it.
IMPORT_EVENTLET = ("cinder", "neutron", "octavia")


@dataclasses.dataclass(frozen=True)
class Wish:
    """That a service shall run.

    :ivar asked: when, in nanoseconds since the epoch; a later wish is a new start.
    :ivar env: variables in which its environment differs from the parent's.
    """

    asked: int
    env: dict[str, str]


def want(state: State, name: str, env: dict[str, str] | None = None) -> None:
    """Ask the parent to fork service ``name`` if it does not run."""
    with _wishes(state) as wishes:
        wishes[name] = Wish(time.time_ns(), env or {})


@contextlib.contextmanager
def _wishes(state: State) -> Iterator[dict[str, Wish]]:
    """All wishes, written again at the end of the ``with``."""
    path = _wanted_file(state)
    with file_lock(path.with_suffix(".lock")):
        wishes = wanted(state)
        yield wishes
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps({key: dataclasses.asdict(w) for key, w in wishes.items()}))
        draft.replace(path)


def wanted(state: State) -> dict[str, Wish]:
    """What has been asked for, by service."""
    try:
        content = json.loads(_wanted_file(state).read_text())
    except FileNotFoundError:
        return {}
    return {name: Wish(**wish) for name, wish in content.items()}


def forget(state: State, names: Iterable[str] | None = None) -> None:
    """Want these services no more; no service at all where none is named."""
    if names is None:
        _wanted_file(state).unlink(missing_ok=True)
        return
    with _wishes(state) as wishes:
        for name in names:
            wishes.pop(name, None)


def _wanted_file(state: State) -> Path:
    return state.path("cloud", "wanted.json")


class _NoEventlet(MetaPathFinder):
    """Makes ``import eventlet`` fail."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        if fullname.split(".")[0] == "eventlet":
            raise ImportError("eventlet is switched off: every service runs on native threads")


def main() -> None:
    """Import, then fork what is wanted until SIGTERM."""
    state = State(Path(sys.argv[1]))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    blocker = _preload()
    done: dict[str, int] = {}
    while True:
        for name, wish in wanted(state).items():
            if done.get(name) != wish.asked and not processes.alive(state, name):
                _fork(state, name, wish, blocker)
            done[name] = wish.asked
        _reap()
        time.sleep(LOOK_EVERY_SECONDS)


def _preload() -> MetaPathFinder:
    blocker = _NoEventlet()
    sys.meta_path.insert(0, blocker)
    from oslo_service import backend

    backend.init_backend(backend.BackendType.THREADING)  # its default is eventlet still
    warnings.filterwarnings("ignore")
    for module in SHARED_MODULES:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # a collection in a child would touch, and so copy, every shared page
    return blocker


def _fork(state: State, name: str, wish: Wish, blocker: MetaPathFinder) -> None:
    if os.fork():
        return
    try:
        os.setsid()
        processes.end_with_parent()
        processes.record(state, name, os.getpid())
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        log = os.open(state.log(name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ.update(wish.env)
        if name in IMPORT_EVENTLET:
            sys.meta_path.remove(blocker)
        from sandbox.cloud import service_process

        service_process.serve(state, name)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    main()
