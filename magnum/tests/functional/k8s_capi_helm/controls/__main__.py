# SPDX-License-Identifier: Apache-2.0
"""Break the driver and the charts, one way at a time, and print which test catches each.

``python -m magnum.tests.functional.k8s_capi_helm.controls [--functional] [MUTANT ...]``; with
``--functional``, mutants that only a run in the sandbox shows are tried as well. It ends with 1 if
one survives.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
from pathlib import Path
import queue
import sys
import tempfile
import threading
import time

from magnum.tests.functional.k8s_capi_helm.controls.mutants import Mutant, MUTANTS, Suite
from magnum.tests.functional.k8s_capi_helm.controls.tree import Tree

_WORKERS = 2
#: One API server for all, so one at a time; and the machine carries one sandbox of controls.
_ALONE = {Suite.ENVTEST: threading.Lock(), Suite.FUNCTIONAL: threading.Lock()}


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of the table."""

    mutant: Mutant
    caught_by: str
    trouble: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        verdict = self.caught_by or self.trouble.partition("\n")[0] or "SURVIVES"
        return f"{self.mutant.sentence:76} | {self.mutant.suite.name.lower():10} | {verdict}"


def _tests(mutant: Mutant, tree: Tree) -> list[list[str]]:
    """What is tried: the tests nearby, then the rest of the suite."""
    first = list(mutant.near)
    if mutant.suite is Suite.FUNCTIONAL:
        return [first]
    return [first, [name for name in tree.modules(mutant.suite) if name not in first]]


def _environment(mutant: Mutant, place: Path) -> dict[str, str]:
    """A sandbox of its own, whose Magnum loads the mutant; only the near life is lived."""
    if mutant.suite is not Suite.FUNCTIONAL:
        return {}
    return {"SANDBOX_DIR": str(place / mutant.name), "SANDBOX_TEST_ALONE": "1"}


def _try(mutant: Mutant, trees: queue.Queue[Tree], place: Path) -> Line:
    tree, begin = trees.get(), time.monotonic()
    try:
        with tree.broken(mutant), _ALONE.get(mutant.suite, threading.Lock()):
            for names in _tests(mutant, tree):
                outcome = tree.run(mutant.suite, names, _environment(mutant, place))
                if outcome.failed:
                    test = outcome.failed.partition(f"{mutant.suite.value}.")[2] or outcome.failed
                    return Line(mutant, test, seconds=time.monotonic() - begin)
    except (ValueError, RuntimeError) as error:
        return Line(mutant, "", str(error))
    finally:
        trees.put(tree)
    return Line(mutant, "")


def _sound(tree: Tree, mutants: list[Mutant]) -> str:
    """What fails without any mutant: then nothing would be shown by a failure."""
    for suite in sorted({mutant.suite for mutant in mutants} - {Suite.FUNCTIONAL}):
        near = {name for mutant in mutants if mutant.suite is suite for name in mutant.near}
        try:
            outcome = tree.run(suite, sorted(near))
        except RuntimeError as error:
            return str(error)
        if outcome.failed:
            return f"{outcome.failed} fails without any mutant:\n{outcome.output}"
    return ""


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _chosen() -> list[Mutant]:
    """The mutants that the command line asks for."""
    by_name = {mutant.name: mutant for mutant in MUTANTS}
    parser = argparse.ArgumentParser(prog="controls", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--functional", action="store_true", help="those of the sandbox, too")
    parser.add_argument("mutants", nargs="*", metavar="MUTANT", help=", ".join(by_name))
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.mutants) - set(by_name))
    if unknown:
        parser.error(f"there is no mutant {', '.join(unknown)}")
    if arguments.mutants:
        return [by_name[name] for name in arguments.mutants]
    fast = [mutant for mutant in MUTANTS if mutant.suite is not Suite.FUNCTIONAL]
    return list(MUTANTS) if arguments.functional else fast


def main() -> int:
    wanted = _chosen()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        trees: queue.Queue[Tree] = queue.Queue()
        for number in range(_WORKERS):
            (Path(folder) / str(number)).mkdir()
            trees.put(Tree(Path(folder) / str(number)))
        trouble = _sound(trees.queue[0], wanted)
        if trouble:
            _say(f"controls: {trouble}")
            return 1
        lines = []
        with concurrent.futures.ThreadPoolExecutor(_WORKERS) as pool:
            for line in pool.map(lambda one: _try(one, trees, Path(folder)), wanted):
                _say(str(line))
                lines.append(line)
    caught = sum(bool(line.caught_by) for line in lines)
    for line in lines:
        if line.trouble:
            _say(f"\n{line.trouble}")
    _say(f"\n{caught} of {len(lines)} caught, {time.monotonic() - begin:.0f} s")
    return 0 if caught == len(lines) else 1


if __name__ == "__main__":
    sys.exit(main())
