# SPDX-License-Identifier: Apache-2.0
"""The laws of the house: floors, one noun to a file, who may save, what tests may do.

Everything is read from the sources with :mod:`ast`; each law returns the list of places that break
it, so that a failure names all of them at once. A new room is added to ``FLOORS`` and nowhere else:
the contributor's page of the documentation is made from this table and the rooms' docstrings.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
import functools
from pathlib import Path
import subprocess
import sys
import unittest

from magnum.drivers import k8s_capi_helm

PACKAGE = "magnum.drivers.k8s_capi_helm"
ROOT = Path(k8s_capi_helm.__file__).parent
TESTS = Path(__file__).parent

#: Room -> floor, from the top: what Magnum calls, what decides and acts, input and output, rules,
#: and the words that all of them use.
FLOORS = {
    "driver": 4,
    "handlers": 4,
    "reconcile": 3,
    "magnum_objects": 2,
    "cloud": 2,
    "kube_client": 2,
    "kube": 2,
    "helm": 2,
    "chart_store": 2,
    "lease": 2,
    "conf": 2,
    "helm_values": 1,
    "values": 1,
    "status": 1,
    "labels": 0,
    "model": 0,
    "deadline": 0,
    "errors": 0,
}
#: What may be imported from a room on the same floor, besides errors and deadline.
BESIDE = frozenset(
    {
        ("driver", "handlers"),
        ("kube_client", "kube"),
        ("helm", "kube_client"),
        ("chart_store", "kube_client"),
        ("chart_store", "helm"),
        ("lease", "kube_client"),
        ("magnum_objects", "conf"),
        ("helm_values", "values"),
        ("model", "labels"),
    }
)
#: Rooms that know Magnum, and the one that knows oslo.config.
KNOW_MAGNUM = frozenset({"driver", "handlers", "magnum_objects", "cloud"})
KNOW_OPTIONS = frozenset({"conf"})
#: The one module of rules and ground that reads the wall clock, for the rooms above.
CLOCK = "model/clock.py"
#: The module that saves and destroys Magnum's objects.
SAVES = "magnum_objects/saving.py"
#: The longest chain of rooms, each of which imports the next.
LONGEST_CHAIN = 9
MOST_ROOMS = 18
LONGEST_FILE = 320

#: Standard modules that read a clock, a file, the environment or a socket: not for floor 0.
IMPURE = frozenset(
    "asyncio glob http io logging os pathlib random select shutil signal socket ssl subprocess "
    "tempfile threading time urllib".split()
)
IMPURE_CALLS = frozenset({"now", "utcnow", "today", "open", "print", "input"})
#: Pure libraries: text that has to be understood as Magnum, or as every reader of YAML and of
#: versions, does.
PURE_LIBRARIES = frozenset({"oslo_utils.strutils", "packaging.version.Version", "yaml"})
SHAPELESS = ("base", "common", "helper", "helpers", "misc", "util", "utils")


class Source:
    """One parsed file: its room, its tree and its place."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path = path
        self.name = path.relative_to(root).as_posix()
        self.room = self.name.split("/")[0].removesuffix(".py")
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text, filename=str(path))

    def at(self, node: ast.AST) -> str:
        return f"{self.name}:{getattr(node, 'lineno', 0)}"

    def imports(self) -> Iterator[tuple[ast.AST, str]]:
        """Every imported module by its full dotted name, wherever the import stands."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield node, alias.name
            elif isinstance(node, ast.ImportFrom):
                stem = PACKAGE if node.level else ""
                module = ".".join(part for part in (stem, node.module) if part)
                for alias in node.names:
                    yield node, f"{module}.{alias.name}"

    def calls(self) -> Iterator[tuple[ast.Call, str]]:
        """Every call with the last part of the called name."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Attribute):
                    yield node, node.func.attr
                elif isinstance(node.func, ast.Name):
                    yield node, node.func.id


@functools.cache
def sources(root: Path) -> list[Source]:
    """The Python files below a directory; what a chart holds is not ours to judge."""
    return [
        Source(path, root)
        for path in sorted(root.rglob("*.py"))
        if "charts" not in path.relative_to(root).parts
    ]


def rooms() -> list[Source]:
    return [source for source in sources(ROOT) if source.room != "__init__"]


class LawCase(unittest.TestCase):
    """A broken law is shown in full."""

    maxDiff = None


class TestFloors(LawCase):
    """Imports go down only: interface, control, adapters, rules, ground."""

    def test_every_room_has_its_floor(self) -> None:
        self.assertEqual(set(FLOORS), {source.room for source in rooms()})
        self.assertLessEqual(len(FLOORS), MOST_ROOMS)

    def test_imports_go_down(self) -> None:
        broken = []
        for source in rooms():
            for node, name in source.imports():
                reason = self.refusal(source.room, name)
                if reason:
                    broken.append(f"{source.at(node)} imports {name}: {reason}")
        self.assertEqual([], broken)

    @staticmethod
    def refusal(room: str, name: str) -> str | None:
        """Why a module of this room may not import the name; None when it may."""
        floor, top = FLOORS[room], name.partition(".")[0]
        if name == PACKAGE:  # for the place of its charts and manifests
            return None
        if name.startswith(f"{PACKAGE}."):
            other = name.removeprefix(f"{PACKAGE}.").partition(".")[0]
            if other == room or FLOORS[other] < floor or other in ("errors", "deadline"):
                return None
            if (room, other) in BESIDE:
                return None
            return f"{other} is not below {room}"
        if top == "magnum":
            return None if room in KNOW_MAGNUM else f"{room} does not know Magnum"
        if top == "oslo_config":
            return None if room in KNOW_OPTIONS else "only conf knows oslo.config"
        if floor > 1 or name in PURE_LIBRARIES or (room == "deadline" and top == "time"):
            return None
        if top in IMPURE:
            return "rules have no input, output or clock"
        return None if top in sys.stdlib_module_names else "rules need the standard library only"

    def test_the_refusals_themselves(self) -> None:
        allowed = (
            ("model", "dataclasses"),
            ("status", f"{PACKAGE}.errors"),
            ("deadline", "time"),
            ("kube", "kubernetes"),
            ("cloud", "magnum.x"),
            ("lease", f"{PACKAGE}.kube_client"),
        )
        refused = (
            ("labels", "requests"),
            ("model", "time"),
            ("values", f"{PACKAGE}.cloud"),
            ("helm", f"{PACKAGE}.driver"),
            ("lease", f"{PACKAGE}.kube.request"),
            ("reconcile", "magnum.objects"),
            ("handlers", "oslo_config.cfg"),
            ("labels", f"{PACKAGE}.model"),
        )
        self.assertEqual([], [case for case in allowed if self.refusal(*case)])
        self.assertEqual([], [case for case in refused if not self.refusal(*case)])

    def test_rooms_import_each_other_in_one_direction(self) -> None:
        """No circle, and no chain of rooms that nobody can keep in mind."""
        below = {
            room: {
                name.removeprefix(f"{PACKAGE}.").partition(".")[0]
                for source in rooms()
                if source.room == room
                for _, name in source.imports()
                if name.startswith(f"{PACKAGE}.")
            }
            - {room}
            for room in FLOORS
        }
        chain = longest_chain(below)
        self.assertLessEqual(len(chain), LONGEST_CHAIN, " -> ".join(chain))

    def test_a_circle_is_seen(self) -> None:
        self.assertRaises(RecursionError, longest_chain, {"a": {"b"}, "b": {"c"}, "c": {"a"}})
        self.assertEqual(["a", "b", "c"], longest_chain({"a": {"b", "c"}, "b": {"c"}, "c": set()}))

    def test_rules_call_nothing_impure(self) -> None:
        broken = [
            f"{source.at(node)} calls {name}"
            for source in rooms()
            if FLOORS[source.room] <= 1 and source.name != CLOCK
            for node, name in source.calls()
            if name in IMPURE_CALLS
        ]
        self.assertEqual([], broken)

    def test_one_module_saves(self) -> None:
        broken = []
        for source in rooms():
            if source.name == SAVES:
                continue
            for node, name in source.calls():
                # Magnum's objects create themselves; who creates another thing says what.
                creates_itself = name == "create" and not node.args and not node.keywords
                if name in {"save", "destroy"} and ast.unparse(node.func) != f"saving.{name}":
                    broken.append(f"{source.at(node)} calls .{name}()")
                if creates_itself:
                    broken.append(f"{source.at(node)} calls .{name}()")
        self.assertEqual([], broken)


def longest_chain(below: dict[str, set[str]]) -> list[str]:
    """The longest way down from any room.

    :raises RecursionError: rooms import each other in a circle.
    """

    @functools.cache
    def down(room: str) -> list[str]:
        return max(([room, *down(other)] for other in below[room]), key=len, default=[room])

    return max((down(room) for room in below), key=len)


class TestRooms(LawCase):
    """A module is one noun and says so in its first line."""

    def test_the_first_line_is_a_sentence(self) -> None:
        broken = []
        for source in sources(ROOT):
            first = (ast.get_docstring(source.tree) or "").partition("\n")[0]
            if not first.endswith("."):
                broken.append(f"{source.name}: {first!r}")
        self.assertEqual([], broken)

    def test_no_two_rooms_say_the_same(self) -> None:
        first = [(ast.get_docstring(s.tree) or "").partition("\n")[0] for s in rooms()]
        self.assertEqual(len(first), len(set(first)))

    def test_names_are_nouns_of_the_field(self) -> None:
        broken = []
        for source in sources(ROOT):
            for part in source.name.removesuffix(".py").split("/"):
                if part.lower() in SHAPELESS or part.lower().startswith("base"):
                    broken.append(source.name)
            broken += [
                f"{source.at(node)} class {node.name}"
                for node in ast.walk(source.tree)
                if isinstance(node, ast.ClassDef) and node.name.lstrip("_").startswith("Base")
            ]
        self.assertEqual([], broken)

    def test_files_are_short(self) -> None:
        lengths = {source.name: source.text.count("\n") for source in sources(ROOT)}
        self.assertEqual({}, {n: lines for n, lines in lengths.items() if lines > LONGEST_FILE})

    def test_nothing_is_left_unsaid(self) -> None:
        marks = ("TO" + "DO", "FIX" + "ME", "XX" + "X", "NotImplemented" + "Error")
        broken = [
            f"{source.name}: {mark}"
            for source in sources(ROOT)
            for mark in marks
            if mark in source.text
        ]
        self.assertEqual([], broken)


class TestTheTests(LawCase):
    """What a test may not do, here and in the functional tests beside."""

    def setUp(self) -> None:
        functional = TESTS.parents[2] / "functional" / "k8s_capi_helm"
        self.sources = [
            source
            for root in (TESTS, functional)
            for source in sources(root)
            if source.path.name.startswith("test_")
        ]

    def test_nothing_of_ours_is_patched(self) -> None:
        broken = []
        for source in self.sources:
            ours = {n.rpartition(".")[2] for _, n in source.imports() if n.startswith(PACKAGE)}
            for node, target in patch_targets(source):
                root = target.partition(".")[0]
                if target.startswith(PACKAGE) or root in ours or target.startswith("self.driver"):
                    broken.append(f"{source.at(node)} patches {target}")
        self.assertEqual([], broken)

    def test_no_test_sleeps(self) -> None:
        broken = [
            source.at(node)
            for source in self.sources
            for node, name in source.calls()
            if name == "sleep"
        ]
        self.assertEqual([], broken)

    def test_every_test_asserts(self) -> None:
        broken = []
        for source in self.sources:
            functions = {
                node.name: node
                for node in ast.walk(source.tree)
                if isinstance(node, ast.FunctionDef)
            }
            broken += [
                f"{source.at(node)} {name}"
                for name, node in functions.items()
                if name.startswith("test_") and not asserts(node, functions, set())
            ]
        self.assertEqual([], broken)


def patch_targets(source: Source) -> Iterator[tuple[ast.Call, str]]:
    """What mock.patch, mock.patch.object, MonkeyPatch and MockPatch calls of a file aim at."""
    for node, name in source.calls():
        spelled = ast.unparse(node.func)
        if not node.args or "patch" not in spelled.lower():
            continue
        target = node.args[0]
        if isinstance(target, ast.Constant) and isinstance(target.value, str):
            yield node, target.value
        elif name in {"object", "multiple", "setattr", "MockPatchObject", "patch"}:
            yield node, ast.unparse(target)


def asserts(node: ast.AST, functions: dict[str, ast.FunctionDef], seen: set[str]) -> bool:
    """Whether a function asserts, itself or through functions of the same file."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assert):
            return True
        if not isinstance(inner, ast.Call):
            continue
        name = ast.unparse(inner.func).rpartition(".")[2]
        if name.lower().startswith(("assert", "fail", "expect")):
            return True
        if name in functions and name not in seen:
            seen.add(name)
            if asserts(functions[name], functions, seen):
                return True
    return False


#: Loads the driver as magnum-api does and lets it touch nothing: an audit hook sees every attempt.
LOAD_THE_DRIVER = """
import os, sys
from magnum.drivers.common import driver as magnum_driver
from importlib.metadata import entry_points

FORBIDDEN = ("socket.connect", "socket.getaddrinfo", "socket.bind", "subprocess.Popen", "os.exec",
             "os.posix_spawn", "os.fork", "os.system")

def watch(event, arguments):
    if event in FORBIDDEN:
        raise RuntimeError(f"the driver does {event} {arguments!r}")
    if event == "open" and "kube" in str(arguments[0]) and str(arguments[0]).endswith("config"):
        raise RuntimeError(f"the driver opens {arguments[0]}")

sys.addaudithook(watch)
[point] = entry_points(group="magnum.drivers", name="k8s_capi_helm_v1")
loaded = point.load()()
assert isinstance(loaded, magnum_driver.Driver)
print(all(entry["coe"] == "kubernetes" for entry in loaded.provides), len(loaded.provides) > 0)
"""


class TestLoading(LawCase):
    """magnum-api loads the driver too, on hosts without kubeconfig or helm."""

    def test_the_driver_touches_nothing_when_loaded(self) -> None:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", LOAD_THE_DRIVER],
            capture_output=True,
            check=False,
            env={
                "PATH": "/nonexistent",
                "HOME": "/nonexistent",
                "KUBECONFIG": "/nonexistent/config",
            },
            text=True,
            timeout=120,
        )
        self.assertEqual((0, "True True"), (done.returncode, done.stdout.strip()), done.stderr)
