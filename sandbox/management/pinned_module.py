# SPDX-License-Identifier: Apache-2.0
"""A version of a Go module that is built in its own module, pinned by a go.sum of ours.

A go.mod knows one version of a module only, so that several of them stand in tables of Python;
nothing that go.sum does not pin is ever built.
"""

import abc
from collections.abc import Iterable, Sequence
import json
import os
from pathlib import Path
from typing import ClassVar, TypeVar

from sandbox.management import gomodules
from sandbox.state import SandboxError


class PinnedModule(abc.ABC):
    """One version of a module.

    :ivar version: without the letter v.
    :cvar sums: directory below sandbox/go whose go.sum pins it.
    :cvar table: Python module that has the table and pins what is in it.
    """

    version: str
    sums: ClassVar[str]
    table: ClassVar[str]

    @property
    @abc.abstractmethod
    def module(self) -> str:
        """Path of the module."""

    @property
    def below(self) -> str:
        """Version, without the letter v, of the modules in directories below it."""
        return self.version

    @property
    def dependency(self) -> str:
        """The module and its version as go names them."""
        return f"{self.module}@v{self.version}"

    def pins(self) -> list[str]:
        """The lines of go.sum for it, of the modules below it too."""
        lines = self._sums().read_text().splitlines()
        return [line for line in lines if self._is_own(*line.split()[:2])]

    def _is_own(self, name: str, version: str) -> bool:
        """Whether a line of go.sum that begins with these words is about it."""
        wanted = self.version if name == self.module else self.below
        known = name == self.module or self.has_below(name)
        return known and version.removesuffix("/go.mod") == f"v{wanted}"

    def has_below(self, name: str) -> bool:
        """Whether a module of this name is in a directory below it."""
        return name.startswith(f"{self.module}/")

    def directory(self) -> Path:
        """Its unpacked module; it is downloaded when it is not there.

        :raises SandboxError: go.sum does not pin it, or it cannot be downloaded.
        """
        if not any(line.startswith(f"{self.module} v{self.version} ") for line in self.pins()):
            raise SandboxError(
                f"sandbox/go/{self.sums}/go.sum does not pin {self.dependency}; run "
                f"`python -m {self.table}`"
            )
        return gomodules.directory(self.sums, self.dependency)

    def download(self) -> list[str]:
        """The lines that pin it, as Go's checksum database knows them.

        A module below it that no program needs may be absent from a registry; it gets no line.

        :raises SandboxError: it cannot be had.
        """
        root = gomodules.directory(self.sums, self.dependency)
        lines = self._lines(self.module, self.version)
        for name in gomodules.local_modules(root):
            try:
                lines += self._lines(name, self.below)
            except SandboxError as error:
                print(f"{name}@v{self.below} is left out: {str(error).splitlines()[-1]}")
        return lines

    def _lines(self, name: str, version: str) -> list[str]:
        command = ["go", "mod", "download", "-json", f"{name}@v{version}"]
        found = json.loads(gomodules.run(self.sums, command, gomodules.LIST_TIMEOUT))
        return [
            f"{name} v{version} {found['Sum']}",
            f"{name} v{version}/go.mod {found['GoModSum']}",
        ]

    def _sums(self) -> Path:
        return gomodules.GO / self.sums / "go.sum"


Module = TypeVar("Module", bound=PinnedModule)


def selected(modules: Sequence[Module], variable: str) -> list[Module]:
    """Those whose minor releases an environment variable names, like "1.34 1.36"; all without it.

    :raises SandboxError: it names one that is not there.
    """
    wanted = os.environ.get(variable, "").replace(",", " ").split()
    known = {one.version.rpartition(".")[0]: one for one in modules}
    for minor in wanted:
        if minor not in known:
            raise SandboxError(
                f"{variable}: {minor} is not one of {', '.join(known)}; another one is a line of "
                f"the table in {modules[0].table}"
            )
    return [known[minor] for minor in wanted] or list(modules)


def pin(modules: Iterable[PinnedModule]) -> list[str]:
    """Pin what is not pinned yet, and return the new lines.

    :raises SandboxError: Go is missing, or a module cannot be had.
    """
    gomodules.require_go()
    added: list[str] = []
    for module in modules:
        if module.pins():
            continue
        path = gomodules.GO / module.sums / "go.sum"
        new = module.download()
        path.write_text("\n".join(sorted({*path.read_text().splitlines(), *new})) + "\n")
        added += new
    return added
