# SPDX-License-Identifier: Apache-2.0
"""A newer version of the room of the Lease, loaded beside this one or instead of it.

It is made of the source of this version: ``lease`` and ``model`` are loaded a second time under
another name, with some lines replaced, as a later version might have them. Everything below them
(errors, the client of the management cluster) is that of this version. A text that is replaced has
to be there exactly once, so that a change of the source breaks this loudly.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import pathlib
import sys
import types
from typing import Any

from magnum.drivers import k8s_capi_helm

_OWN = k8s_capi_helm.__name__
_ROOMS = ("lease", "model")
_ROOT = pathlib.Path(k8s_capi_helm.__file__).parent

#: A later version with more to say, which an older one need not know: each operation has a note,
#: so has each replaced credential, deferred changes have their author, revisions a count.
MORE_KEYS = {
    "lease/record_format.py": [("VERSION = _installed_version()", 'VERSION = "1.1.0"')],
    "model/operation.py": [
        (
            "    resolved_names: ResolvedNames = NOTHING\n",
            '    resolved_names: ResolvedNames = NOTHING\n    note: str = ""\n',
        ),
        ('    name: str = ""\n', '    name: str = ""\n    note: str = "of 1.1"\n'),
        (
            '            "id": self.id,\n',
            '            "id": self.id,\n            "author": "1.1",\n',
        ),
        ("    pending_install: int = 0\n", "    pending_install: int = 0\n    runs: int = 0\n"),
    ],
    "lease/codec.py": [
        (
            '_REVISIONS = ("newest", "applied", "begun")',
            '_REVISIONS = ("newest", "applied", "begun", "runs")',
        ),
        (
            '        "id": operation.id,\n',
            '        "id": operation.id,\n        "note": operation.note,\n',
        ),
        (
            '        id=entry["id"],\n        verb',
            '        id=entry["id"],\n        note=entry.get("note", ""),\n        verb',
        ),
    ],
}
#: One that writes what an older one would misunderstand.
OTHER_FORMAT = {
    **MORE_KEYS,
    "lease/record_format.py": [
        ("VERSION = _installed_version()", 'VERSION = "2.0.0"'),
        ('WRITES = "1"', 'WRITES = "2"'),
        ('READS = ("1",)', 'READS = ("1", "2")'),
    ],
}


_CHANGES = {"more_keys": MORE_KEYS, "other_format": OTHER_FORMAT}


def replace(name: str) -> None:
    """Let the driver of this process be the newer version.

    :raises RuntimeError: a room of it has been imported already.
    """
    if imported := [one for one in sys.modules if one.startswith(f"{_OWN}.")]:
        raise RuntimeError(f"imported before its newer version is there: {imported}")
    sys.meta_path.insert(0, _Finder(_OWN, _CHANGES[name]))


@functools.cache
def load(name: str) -> Any:
    """The package of a newer version: ``load("more_keys").lease`` is its room of the Lease."""
    changes = _CHANGES[name]
    package = types.ModuleType(f"{_OWN}_{name}")
    package.__path__ = []
    sys.modules[package.__name__] = package
    sys.meta_path.insert(0, _Finder(package.__name__, changes))
    for room in _ROOMS:
        setattr(package, room, importlib.import_module(f"{package.__name__}.{room}"))
    importlib.import_module(f"{package.__name__}.lease.codec")
    return package


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of a newer version."""

    def __init__(self, package: str, changes: dict[str, list[tuple[str, str]]]) -> None:
        self._package = package
        self._changes = changes

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if not fullname.startswith(f"{self._package}."):
            return None
        place = _ROOT.joinpath(*fullname.removeprefix(f"{self._package}.").split("."))
        is_room = place.is_dir()
        file = place / "__init__.py" if is_room else place.with_suffix(".py")
        if self._package == _OWN and str(file.relative_to(_ROOT)) not in self._changes:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=str(file), is_package=is_room)
        spec.has_location = True
        return spec

    def exec_module(self, module: types.ModuleType) -> None:
        file = pathlib.Path(str(module.__spec__.origin))  # type: ignore[union-attr]
        text = file.read_text(encoding="utf-8")
        for old, new in self._changes.get(str(file.relative_to(_ROOT)), ()):
            if text.count(old) != 1:
                raise ValueError(f"{file} does not have this text exactly once: {old!r}")
            text = text.replace(old, new)
        for room in _ROOMS:
            for end in (".", " import"):
                text = text.replace(f"{_OWN}.{room}{end}", f"{self._package}.{room}{end}")
        # A type of a dataclass is looked for in the module by its name.
        exec(compile(text, str(file), "exec"), module.__dict__)  # noqa: S102
