# SPDX-License-Identifier: Apache-2.0
"""The directory of a sandbox: files, ports, logs and settings."""

from collections.abc import Iterator
import contextlib
import fcntl
import json
import os
from pathlib import Path
import random
import socket
import tempfile
from typing import Any

# Below the range from which the kernel takes ports of outgoing connections (32768 and up), so
# that a stopped service finds its port free again.
FIRST_PORT = 20000
PORTS_PER_SANDBOX = 150
SLOTS = 64


class SandboxError(Exception):
    """Something in the sandbox is not as it must be.

    The text names what is wrong, with which value, and what to do about it.
    """


def cache_root() -> Path:
    """Directory of what is kept between sandboxes: built binaries and cloud snapshots.

    ``$K8S_CAPI_HELM_CACHE``, else ``k8s-capi-helm`` below ``$XDG_CACHE_HOME`` or ``~/.cache``.
    """
    chosen = os.environ.get("K8S_CAPI_HELM_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "k8s-capi-helm"


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on ``path``; it ends with the process, even a killed one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


class State:
    """Where one sandbox lives.

    Several sandboxes run side by side: each claims a *slot*, a number that no other sandbox of
    this user holds, and takes its ports and its external network from that slot.

    :param root: the directory; made when it does not exist.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(root).resolve()
        self.root.mkdir(parents=True, exist_ok=True)

    def path(self, *parts: str) -> Path:
        """Path below the root; its parent directories exist afterwards."""
        path = self.root.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def log(self, name: str) -> Path:
        """File that holds the output of process ``name``."""
        return self.path("log", f"{name}.log")

    def port(self, name: str) -> int:
        """TCP port on loopback for ``name``: chosen once, the same ever after.

        :raises SandboxError: when every port of this sandbox's slot is taken.
        """
        slot = self.slot  # before the lock, which it takes itself
        with self._locked():
            ports = _read_json(self.root / "ports.json")
            if name not in ports:
                ports[name] = self._free_port(slot, set(ports.values()))
                _write_json(self.root / "ports.json", ports)
            return int(ports[name])

    def ports(self) -> dict[str, int]:
        """All ports chosen so far, by name."""
        return _read_json(self.root / "ports.json")

    @property
    def external_network(self) -> str:
        """CIDR of the external network: a /16 of loopback addresses that is this sandbox's own.

        A process on this machine can listen on each of its addresses without any set-up, which
        is how floating IPs are reachable.
        """
        return f"127.{64 + self.slot}.0.0/16"

    @property
    def slot(self) -> int:
        """Number of this sandbox among those of this user, 0 to 63.

        :raises SandboxError: when 64 sandboxes exist already.
        """
        known = self.get("slot")
        if known is None:
            known = _claim_slot(self.root)
            self.record(slot=known)
        return int(known)

    def record(self, **facts: Any) -> None:
        """Remember JSON-able facts; a value of None forgets the fact."""
        with self._locked():
            known = _read_json(self.root / "state.json")
            known.update(facts)
            known = {key: value for key, value in known.items() if value is not None}
            _write_json(self.root / "state.json", known)

    def get(self, key: str, default: Any = None) -> Any:
        """The remembered fact ``key``, else ``default``."""
        return _read_json(self.root / "state.json").get(key, default)

    def _free_port(self, slot: int, taken: set[int]) -> int:
        first = FIRST_PORT + slot * PORTS_PER_SANDBOX
        for port in range(first, first + PORTS_PER_SANDBOX):
            if port not in taken and _bindable(port):
                return port
        raise SandboxError(
            f"no free port from {first} to {first + PORTS_PER_SANDBOX - 1} for the sandbox in "
            f"{self.root}; stop the programs that listen there or use another --dir"
        )

    def _locked(self) -> contextlib.AbstractContextManager[None]:
        return file_lock(self.root / ".lock")


def _claims_file() -> Path:
    """Which slot is whose; in the user's temporary directory, as no two sandboxes share more."""
    return Path(tempfile.gettempdir()) / f"k8s-capi-helm-{os.getuid()}" / "slots.json"


def _claim_slot(root: Path) -> int:
    """Take a slot nobody holds; a claim lapses when the sandbox's directory is gone."""
    claims_file = _claims_file()
    with file_lock(claims_file.with_suffix(".lock")):
        claims = {
            slot: owner for slot, owner in _read_json(claims_file).items() if Path(owner).is_dir()
        }
        mine = [int(slot) for slot, owner in claims.items() if owner == str(root)]
        # In random order, because sandboxes of another user do not see these claims.
        others = random.sample(range(SLOTS), SLOTS)
        free = (slot for slot in others if str(slot) not in claims and not _in_use(slot))
        slot = mine[0] if mine else next(free, None)
        if slot is None:
            raise SandboxError(
                f"{SLOTS} sandboxes exist already (see {claims_file}); remove one's directory"
            )
        claims[str(slot)] = str(root)
        _write_json(claims_file, claims)
    return slot


def _in_use(slot: int) -> bool:
    """Whether something listens on one of the slot's ports."""
    first = FIRST_PORT + slot * PORTS_PER_SANDBOX
    return not all(_bindable(port) for port in range(first, first + PORTS_PER_SANDBOX))


def _bindable(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise SandboxError(
            f"{path} is not JSON ({error}); remove it or reset the sandbox"
        ) from error
    return content


def _write_json(path: Path, content: dict[str, Any]) -> None:
    """Replace the file at once, so that a killed writer leaves the old or the new one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(content, indent=1, sort_keys=True))
    draft.replace(path)
