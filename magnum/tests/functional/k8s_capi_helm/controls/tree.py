# SPDX-License-Identifier: Apache-2.0
"""A copy of the checkout that may be broken, and tests that run on it instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import contextlib
import dataclasses
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys

from magnum.tests.functional.k8s_capi_helm.controls.mutants import Mutant, Suite

CHECKOUT = Path(__file__).resolve().parents[5]
#: Set where tests run on a copy with a mutant in it.
VARIABLE = "K8S_CAPI_HELM_MUTANT"
_FAILED = re.compile(r"^(?:FAIL|ERROR): (\S+)", re.M)
#: Seconds for one run, on a machine that has other things to do too.
_LIMITS = {Suite.UNIT: 1800, Suite.CHARTS: 1800, Suite.ENVTEST: 1800, Suite.FUNCTIONAL: 1800}
#: Makes Python find the driver and the tests in the copy, although the checkout is installed.
_OVERLAY = """
import importlib.util, pathlib, sys, tomllib

ROOT = pathlib.Path({root!r})
LEAVES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]


class Copy:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in LEAVES:
            return None
        folder = ROOT / LEAVES[name]
        return importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )


sys.meta_path.insert(0, Copy)
"""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run of tests says.

    :ivar failed: id of the first test that failed, "" if none did.
    :ivar output: of the run, when something failed.
    """

    failed: str = ""
    output: str = ""


class Tree:
    """A copy of all files that git knows or would add.

    :param root: an empty directory.
    """

    def __init__(self, root: Path) -> None:
        self.root = root / "tree"
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard", "-z"],
            cwd=CHECKOUT,
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        for name in filter(None, listed.stdout.split("\0")):
            if (CHECKOUT / name).exists():
                target = self.root / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(CHECKOUT / name, target, follow_symlinks=False)
        self._overlay = root / "overlay"
        self._overlay.mkdir()
        (self._overlay / "sitecustomize.py").write_text(_OVERLAY.format(root=str(self.root)))

    @contextlib.contextmanager
    def broken(self, mutant: Mutant) -> Iterator[None]:
        """The tree with a mutant in it.

        :raises ValueError: the mutant's text is not in its file exactly once.
        """
        path = self.root / mutant.file
        if not mutant.fits(self.root):
            raise ValueError(
                f"mutant {mutant.name}: {mutant.file} does not have its text exactly once: "
                f"{mutant.old!r}; fit the table of mutants to the code"
            )
        if not mutant.old:
            path.write_text(mutant.new, encoding="utf-8")
            try:
                yield
            finally:
                path.unlink()
            return
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(text, encoding="utf-8")

    def modules(self, suite: Suite) -> list[str]:
        """All test modules of a suite."""
        folder = self.root / "magnum" / "tests" / suite.value.replace(".", "/")
        return sorted(path.stem for path in folder.glob("test_*.py"))

    def run(
        self, suite: Suite, names: list[str], environment: Mapping[str, str] | None = None
    ) -> Outcome:
        """Run tests until the first one fails.

        :param names: modules of the suite, or tests in them.
        :raises RuntimeError: they could not be run, or did not end.
        """
        ids = [f"magnum.tests.{suite.value}.{name}" for name in names]
        try:
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-B", "-m", "testtools.run", "-f", *ids],
                cwd=self.root,
                env={
                    **os.environ,
                    "PYTHONPATH": str(self._overlay),
                    "SANDBOX_PYTHONPATH": str(self._overlay),
                    VARIABLE: "1",
                    **(environment or {}),
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                timeout=_LIMITS[suite],
            )
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(
                f"{suite.name}: {' '.join(names)} did not end in {_LIMITS[suite]} s"
            ) from error
        failed = _FAILED.search(done.stdout)
        cannot = "_FailedTest" in done.stdout or (done.returncode and not failed)
        if cannot or "\nRan 0 tests" in done.stdout:
            raise RuntimeError(f"{suite.name}: {' '.join(names)} cannot be run:\n{done.stdout}")
        return Outcome(failed.group(1), done.stdout) if failed else Outcome()
