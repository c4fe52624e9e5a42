# SPDX-License-Identifier: Apache-2.0
"""The laws of the house: floors, one noun to a file, who may save, what tests may do.

Everything is read from the sources with :mod:`ast`; each law returns the list of places that break
it, so that a failure names all of them at once. The laws are functions of the package ``house``;
what each allows and refuses is shown in the modules ``test_house_*.py``, and their tables (rooms,
floors, exceptions with their reasons) stand in ``house/floors.py``.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import unittest

from magnum.tests.functional.k8s_capi_helm.controls.mutants import Mutant, MUTANTS
from magnum.tests.functional.k8s_capi_helm.controls.tree import VARIABLE
from magnum.tests.unit.drivers.k8s_capi_helm.house import imports, names, patches, sizes, testing
from magnum.tests.unit.drivers.k8s_capi_helm.house.floors import (
    ALSO_OPEN,
    CLOCK,
    FLOORS,
    IMPURE_CALLS,
    LONGEST_CHAIN,
    LONGEST_FILE,
    MOST_ROOMS,
    SAVES,
)
from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import (
    CHECKOUT,
    FUNCTIONAL,
    LawCase,
    PACKAGE,
    rooms,
    ROOT,
    sources,
    TESTS,
)

SHAPELESS = ("base", "common", "helper", "helpers", "misc", "util", "utils")


class TestFloors(LawCase):
    """Imports go down only: interface, control, adapters, rules, ground."""

    def test_every_room_has_its_floor(self) -> None:
        self.assertEqual(set(FLOORS), {source.room for source in rooms()})
        self.assertLessEqual(len(FLOORS), MOST_ROOMS)

    def test_imports_go_down_and_through_fronts(self) -> None:
        broken = []
        for source in rooms():
            for node, name in source.imports():
                reason = imports.refusal(source.room, name)
                if reason:
                    broken.append(f"{source.at(node)} imports {name}: {reason}")
        self.assertEqual([], broken)

    def test_every_exception_is_needed(self) -> None:
        listed = {(module, room) for module, (guests, _) in ALSO_OPEN.items() for room in guests}
        self.assertEqual(set(), listed - imports.used_exceptions(rooms()))

    def test_rooms_import_each_other_in_one_direction(self) -> None:
        """No circle, and no chain of rooms that nobody can keep in mind."""
        chain = imports.longest_chain(imports.arrows(rooms()))
        self.assertLessEqual(len(chain), LONGEST_CHAIN, " -> ".join(chain))

    def test_modules_import_each_other_in_one_direction(self) -> None:
        self.assertEqual([], imports.circles(imports.modules(sources(ROOT), PACKAGE)))

    def test_modules_of_the_sandbox_import_each_other_in_one_direction(self) -> None:
        graph = imports.modules(sources(CHECKOUT / "sandbox"), "sandbox")
        self.assertGreater(sum(map(len, graph.values())), len(graph))
        self.assertEqual([], imports.circles(graph))

    def test_a_room_hands_on_classes_only(self) -> None:
        broken = [
            f"{source.name} hands on {name}"
            for source in rooms()
            if source.name == f"{source.room}/__init__.py"
            for name in imports.handed_on(source)
        ]
        self.assertEqual([], broken)

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


class TestNames(LawCase):
    """Words of the glossary, or of the fixed list; each name has one owner."""

    def test_names_are_words_of_the_field(self) -> None:
        self.assertEqual({}, names.lines(rooms()))


class TestSizes(LawCase):
    """A function is read at one glance, and called with what fits into one mind."""

    def setUp(self) -> None:
        self.functions = sizes.measured(rooms())

    def test_functions_are_short(self) -> None:
        found = sizes.long(self.functions)
        self.assertLessEqual(len(found), sizes.MOST_LONG, found)
        self.assertEqual([], [one for one in found if one.lines > sizes.MOST_LINES])

    def test_functions_take_few_parameters(self) -> None:
        found = sizes.wide(self.functions)
        self.assertLessEqual(len(found), sizes.MOST_WIDE, found)
        inside = [one for one in found if one.room == sizes.CONTROL]
        self.assertLessEqual(len(inside), sizes.MOST_WIDE_IN_CONTROL, inside)

    def test_configuration_has_a_type(self) -> None:
        self.assertEqual([], [one for source in rooms() for one in sizes.untyped_conf(source)])


@unittest.skipIf(VARIABLE in os.environ, "a mutant is in this tree")
class TestMutants(LawCase):
    """What ``make controls`` breaks on purpose is there to be broken."""

    def test_the_text_of_each_is_in_its_file_once(self) -> None:
        self.assertGreater(len(MUTANTS), 100)
        self.assertEqual([], [mutant.name for mutant in MUTANTS if not mutant.fits(CHECKOUT)])

    def test_names_are_unique(self) -> None:
        self.assertEqual(len(MUTANTS), len({mutant.name for mutant in MUTANTS}))

    def test_each_changes_something_that_a_module_of_tests_may_catch(self) -> None:
        def modules(mutant: Mutant) -> list[str]:
            folder = CHECKOUT / "magnum" / "tests" / mutant.suite.value.replace(".", "/")
            return [
                name
                for name in mutant.near
                if not any(
                    (folder / "/".join(name.split(".")[:depth])).with_suffix(".py").is_file()
                    for depth in (1, 2)
                )
            ]

        broken = [one.name for one in MUTANTS if one.old == one.new or not one.near or modules(one)]
        self.assertEqual([], broken)


class TestTheTests(LawCase):
    """What a test may not do, here and in the functional tests beside."""

    def setUp(self) -> None:
        self.helpers = [source for root in (TESTS, FUNCTIONAL) for source in sources(root)]
        self.sources = [one for one in self.helpers if one.path.name.startswith("test_")]
        self.assertGreater(len(self.helpers), len(self.sources))

    def test_nothing_of_the_driver_is_patched(self) -> None:
        broken = [
            f"{source.at(node)} replaces {target}"
            for source in self.helpers
            for node, target in patches.patched(source)
        ]
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
                if name.startswith("test_") and not testing.asserts(node, functions, set())
            ]
        self.assertEqual([], broken)

    def test_no_test_passes_on_nothing(self) -> None:
        broken = [
            f"{source.at(test)} {test.name} asserts only in a loop over what may be empty: "
            "house.nonempty.at_least_one demands one"
            for source in self.sources
            for test in testing.passes_on_nothing(source)
        ]
        self.assertEqual([], broken)


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
