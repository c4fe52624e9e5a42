# SPDX-License-Identifier: Apache-2.0
"""CRDs of the releases of Cluster API and CAPO for the charts' tests.

They are read out of the projects' Go modules, whose contents sandbox/go/crds/go.sum pins, and kept
as one directory per release. Nothing of these releases is built or run.
"""

import hashlib
import json
from pathlib import Path
import shutil
from typing import Any

import yaml

from sandbox import progress
from sandbox.management import gomodules
from sandbox.management.releases import MODULE, Release, RELEASES
from sandbox.state import cache_root, file_lock, SandboxError

#: The same language, ten times as fast where libyaml is there.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Directories of a module that hold CRDs, where they are there: those of 1.14 and of older ones.
_BASES = (
    *("core/config/crd/bases", "config/crd/bases"),
    *("bootstrap/kubeadm/config/crd/bases", "controlplane/kubeadm/config/crd/bases"),
)


def fetch(cache: Path | None = None) -> Path:
    """Directory with one directory of CRDs per release; what is missing is downloaded.

    :param cache: directory of the cache, by default that of the user.
    :raises SandboxError: Go is missing, a download failed, or is not what go.sum pins.
    """
    root = (cache or cache_root()) / "crds"
    place = root / digest()
    if place.exists():
        return place
    root.mkdir(parents=True, exist_ok=True)
    with file_lock(root / ".lock"):
        if not place.exists():  # somebody else may have fetched while this one waited
            gomodules.require_go()
            draft = root / f".{place.name}.draft"
            shutil.rmtree(draft, ignore_errors=True)
            with progress.step("read CRDs of other releases of Cluster API and CAPO") as step:
                for release in RELEASES:
                    _write(release, draft / release.name)
                step.size(draft)
            draft.rename(place)
    return place


def digest() -> str:
    """Short digest of everything that decides what :func:`fetch` gives."""
    parts = [repr(RELEASES), *gomodules.contents(MODULE), Path(__file__).read_text()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _write(release: Release, target: Path) -> None:
    """Keep what a validation needs of a release's CRDs, each as JSON, which is read fast."""
    source = release.directory()
    paths = sorted(path for base in _BASES for path in (source / base).glob("*.yaml"))
    if not paths:
        raise SandboxError(f"{release.dependency} has no CRDs in {', '.join(_BASES)}")
    target.mkdir(parents=True)
    for path in paths:
        document = next(yaml.load_all(path.read_text(), Loader=_LOADER))
        text = json.dumps(_silent(document), separators=(",", ":"))
        (target / f"{path.stem}.json").write_text(text)


def _silent(found: Any) -> Any:
    """A document without descriptions; a field of that name is a map and stays."""
    if isinstance(found, dict):
        return {
            key: _silent(inner)
            for key, inner in found.items()
            if key != "description" or not isinstance(inner, str)
        }
    if isinstance(found, list):
        return [_silent(inner) for inner in found]
    return found
