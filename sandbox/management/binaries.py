# SPDX-License-Identifier: Apache-2.0
"""Find the programs of the management cluster, or build them from Go modules.

Every program has a digest over all that goes into it (go.mod, go.sum, sources, flags), so that a
change builds it again and nothing else does. A build goes to a draft name first and one builder
works at a time, so that a killed one leaves nothing half done.
"""

import dataclasses
import fcntl
import hashlib
import itertools
import os
from pathlib import Path
import re
import shutil
import subprocess

from sandbox import progress
from sandbox.management import gomodules, manifests
from sandbox.management.pinned_module import PinnedModule
from sandbox.management.releases import Providers, Release
from sandbox.state import cache_root, file_lock, SandboxError, State

BUILD_TIMEOUT = 3600.0
VERSION_TIMEOUT = 10.0
KUBERNETES = "1.34.4"
#: In place of the version of a program whose source is in this repository.
OWN = "of this project"
MANIFESTS = "manifests.json"


def version_flags(version: str) -> str:
    """Without these a program of Kubernetes calls itself v0.0.0-master.

    Cluster API refuses such an API server, and kubeadm reads no file for a newer one than itself.
    """
    major, minor, _ = version.split(".")
    values = (("gitVersion", f"v{version}"), ("gitMajor", major), ("gitMinor", minor))
    return " ".join(
        f"-X {package}.{name}={value}"
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        for name, value in values
    )


@dataclasses.dataclass(frozen=True)
class Program:
    """One program and where it comes from.

    :ivar name: its file name.
    :ivar module: directory below sandbox/go whose go.mod pins it.
    :ivar package: Go package of its main function.
    :ivar version: what it must be; a found one may have another patch version.
    :ivar ask: arguments that make it print its version; without them it is never looked for.
    :ivar flags: linker flags besides those of every program.
    :ivar serves_webhooks: it must be told to keep to loopback, see :mod:`gomodules`.
    :ivar also: another file name under which a machine may have it.
    :ivar release: it is built in this release's own module instead.
    :ivar tags: build tags, with commas between them.
    """

    name: str
    module: str
    package: str
    version: str
    ask: tuple[str, ...] = ()
    flags: str = ""
    serves_webhooks: bool = False
    also: str = ""
    release: PinnedModule | None = None
    tags: str = ""

    @property
    def linker_flags(self) -> str:
        """All flags for the linker: no symbol tables, and the version where one is set."""
        return f"-s -w {self.flags}".strip()

    def digest(self) -> str:
        """Short digest of everything that decides what the built program is."""
        parts = [self.name, self.package, self.linker_flags, str(self.serves_webhooks)]
        if self.serves_webhooks:
            parts.append(gomodules.LOOPBACK.replacement)
        if self.tags:
            parts.append(self.tags)
        if self.release:
            return _digest(*parts, self.release.dependency, *self.release.pins())
        ours = self.package.removeprefix("./") if self.package.startswith("./") else ""
        return _digest(*parts, *gomodules.contents(self.module, sources=ours))


def _kubernetes(name: str, *ask: str) -> Program:
    package = f"k8s.io/kubernetes/cmd/{name}"
    return Program(name, "kubernetes", package, KUBERNETES, ask, version_flags(KUBERNETES))


def _manager(name: str, path: str, release: Release, module: str) -> Program:
    """A controller manager; that of the initial release is built in a module of ours."""
    package = "/".join(filter(None, (release.module, path)))
    own = None if release in (Providers.capi, Providers.capo) else release
    return Program(name, module, package, release.version, serves_webhooks=True, release=own)


HELM = Program(
    "helm",
    "helm",
    "helm.sh/helm/v3/cmd/helm",
    "3.22.0",
    ("version", "--short"),
    "-X helm.sh/helm/v3/internal/version.version=v3.22.0",
)
#: Only tenants' clusters have one: in the management cluster there is no node.
SCHEDULER = _kubernetes("kube-scheduler", "--version")
#: No part of a management cluster: the charts are tested with it too.
HELM4 = Program(
    "helm4",
    "helm",
    "helm.sh/helm/v4/cmd/helm",
    "4.3.1",
    ("version", "--short"),
    "-X helm.sh/helm/v4/internal/version.version=v4.3.1",
    also="helm",
)


def programs(providers: Providers) -> tuple[Program, ...]:
    """All programs of a management cluster with these providers."""
    capi, capo = providers.capi, providers.capo
    return (
        Program("etcd", "etcd", "go.etcd.io/etcd/server/v3", "3.6.6", ("--version",)),
        _kubernetes("kube-apiserver", "--version"),
        _kubernetes("kube-controller-manager", "--version"),
        _kubernetes("kubectl", "version", "--client"),
        _manager("capi-core", capi.core_path, capi, "clusterapi"),
        _manager("capi-bootstrap-kubeadm", "bootstrap/kubeadm", capi, "clusterapi"),
        _manager("capi-controlplane-kubeadm", "controlplane/kubeadm", capi, "clusterapi"),
        _manager("capo", "", capo, "capo"),
        HELM,
        Program("machines", "clusterapi", "./machines", OWN),
    )


def build(wanted: State | Providers | None = None, cache: Path | None = None) -> Path:
    """Directory with all programs and their manifests; what is missing is built.

    :param wanted: the providers, or the sandbox that has them; the initial ones without it.
    :param cache: directory of the cache, by default that of the user.
    :raises SandboxError: Go is missing or too old, or a build failed.
    """
    providers = Providers.of(wanted) if isinstance(wanted, State) else wanted or Providers()
    root = cache or cache_root()
    place = _place(root, providers)
    if _complete(place, providers):
        return place
    lock = root / "go" / ".lock"
    if _held(lock):
        progress.say("another process is building the programs; waiting for it")
    with file_lock(lock):
        if not _complete(place, providers):  # somebody else may have built while this one waited
            place.mkdir(parents=True, exist_ok=True)
            _fill(place, root / "go", providers)
    return place


def one(program: Program, cache: Path | None = None) -> Path:
    """A single program: the one on this machine, or else built.

    :raises SandboxError: Go is missing or too old, or the build failed.
    """
    store = (cache or cache_root()) / "go"
    stored = store / f"{program.name}-{program.digest()}"
    found = stored if stored.exists() else find(program, store)
    if found is None:
        gomodules.require_go()
        with file_lock(store / ".lock"):
            if not stored.exists():  # somebody else may have built while this one waited
                _compile(program, stored, store)
        found = stored
    return found


def _held(lock: Path) -> bool:
    """Whether another process or thread holds a lock right now."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def built(cache: Path | None = None) -> bool:
    """Whether everything is there, so that :func:`build` without a sandbox would do nothing."""
    return _complete(_place(cache or cache_root(), Providers()), Providers())


def _place(root: Path, providers: Providers) -> Path:
    digests = [program.digest() for program in programs(providers)]
    return root / "bin" / _digest(*digests, manifests.digest(providers))


def _complete(place: Path, providers: Providers) -> bool:
    names = [program.name for program in programs(providers)]
    return all((place / name).exists() for name in (*names, MANIFESTS))


def _fill(place: Path, store: Path, providers: Providers) -> None:
    """Link every program and the manifests into ``place``, building what ``store`` lacks."""
    wanted = programs(providers)
    builds = []
    for program in wanted:
        stored = store / f"{program.name}-{program.digest()}"
        source = stored if stored.exists() else find(program, store)
        if source is None:
            builds.append((program, stored))
        else:
            link(place / program.name, source)
    if builds:
        gomodules.require_go()
        progress.say(
            f"{len(builds)} of {len(wanted)} programs are built from Go modules, once: all of "
            "them take about 9 minutes on 2 cores, less with Go's caches"
        )
    for program, stored in builds:
        _compile(program, stored, store)
        link(place / program.name, stored)
    stored = store / f"manifests-{manifests.digest(providers)}.json"
    if not stored.exists():
        with progress.step("read CRDs and webhooks of the same modules") as step:
            manifests.write(stored, providers)
            step.size(stored)
    link(place / MANIFESTS, stored)


def _compile(program: Program, target: Path, store: Path) -> None:
    with progress.step(f"build {program.name} {program.version}") as step:
        draft = target.with_name(f".{target.name}.draft")
        command = ["go", "build", "-trimpath", "-ldflags", program.linker_flags, "-o", str(draft)]
        command += ["-tags", program.tags] if program.tags else []
        module = program.release.directory() if program.release else program.module
        modfile = _modfile(program, module, store)
        # The directory vendor, which a download of Kubernetes has without its contents, is no
        # source of anything.
        command += ["-mod=readonly", f"-modfile={modfile}"] if modfile else []
        gomodules.run(module, [*command, program.package], BUILD_TIMEOUT)
        draft.replace(target)
        step.size(target)


def _modfile(program: Program, module: str | Path, store: Path) -> Path | None:
    """The go.mod of a program that is not built with that of its module."""
    pins = program.release.pins() if program.release else []
    if program.serves_webhooks:
        return gomodules.loopback_modfile(module, store, pins)
    if program.release:
        return gomodules.released_modfile(module, store / "released", pins)
    return None


def find(program: Program, store: Path | None = None) -> Path | None:
    """The program in ``$KUBEBUILDER_ASSETS`` or ``$PATH``, if it is there in the right version.

    :param store: what lies there is no find: it was built from something else than is wanted now.
    """
    if not program.ask:
        return None
    folders = (os.environ.get("KUBEBUILDER_ASSETS", ""), *os.get_exec_path())
    names = filter(None, (program.name, program.also))
    for folder, name in itertools.product(folders, names):
        path = Path(folder, name).resolve()
        if not folder or not os.access(path, os.X_OK) or path.parent == (store or path):
            continue
        if same_minor(ask_version(path, program), program):
            progress.say(f"{program.name}: using {path}")
            return path
    return None


def ask_version(path: Path, program: Program) -> str:
    """Version that the program prints about itself, like 1.34.4; empty when it prints none."""
    try:
        done = subprocess.run(
            [path, *program.ask], capture_output=True, text=True, timeout=VERSION_TIMEOUT
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"v?(\d+\.\d+\.\d+)", done.stdout)
    return found.group(1) if found and done.returncode == 0 else ""


def same_minor(version: str, program: Program) -> bool:
    """Whether a version differs from the wanted one in its patch number at most."""
    return version.split(".")[:2] == program.version.split(".")[:2]


def link(link: Path, source: Path) -> None:
    """Let a name lead to a program, at once, whatever it led to before."""
    draft = link.with_name(f".{link.name}.draft")
    draft.unlink(missing_ok=True)
    draft.symlink_to(source)
    draft.replace(link)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def require(place: Path, name: str) -> str:
    """Path of a program in the directory that :func:`build` gave.

    :raises SandboxError: it is not there.
    """
    path = shutil.which(place / name)
    if path is None:
        raise SandboxError(
            f"{name} does not exist in {place}; run `python -m sandbox up` to build it"
        )
    return str(path)
