# SPDX-License-Identifier: Apache-2.0
"""Pages for contributors and the picture: what they name exists, and the glossary is in order."""

from __future__ import annotations

import ast
from pathlib import Path
import re
import unittest

from magnum.tests.unit.drivers.k8s_capi_helm.house import floors, sources

ROOT = Path(__file__).parents[5]
PAGES = ROOT / "doc" / "source" / "contributor"
PICTURE = ROOT / "doc" / "source" / "images" / "architecture.svg"
LITERAL = re.compile(r"``([^`\n]+)``")
#: A path of the repository's or the driver's, as a page writes it: with a directory, or a module.
PATH = re.compile(r"[\w.-]+/[\w./-]*\w|\w+\.py")
#: A step of a walk: a file, and what in it does the work.
STEP = re.compile(r"^   (?P<path>[\w-]+[\w./-]*\.\w+)(?: (?P<name>[\w.]+))?: ", re.MULTILINE)


#: What only a build makes.
BUILT = (".tox", "doc/build")


def page(name: str) -> str:
    return (PAGES / name).read_text(encoding="utf-8")


#: Characters of a line of a page.
_LONGEST = 120


def named_paths(text: str) -> list[str]:
    return [literal for literal in LITERAL.findall(text) if PATH.fullmatch(literal)]


def exists(path: str) -> bool:
    """Whether there is such a file or directory: in the driver, beside this, or at the top."""
    return any((place / path).exists() for place in (sources.ROOT, Path(__file__).parent, ROOT))


def functions(path: Path) -> set[str]:
    """Functions, methods and classes of a module."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


class TestLines(unittest.TestCase):
    """Pages are read in an editor, too; only a simple table may be wider."""

    def test_none_is_too_long(self) -> None:
        pages = sorted((ROOT / "doc" / "source").rglob("*.rst"))
        self.assertGreater(len(pages), 40)
        long = [
            f"{path.relative_to(ROOT)}:{number}"
            for path in pages
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
            if len(line) > _LONGEST and not re.search(r"\S   +\S", line)
        ]
        self.assertEqual([], long)


class TestWhere(unittest.TestCase):
    def test_every_path_exists(self) -> None:
        paths = named_paths(page("where.rst"))
        self.assertGreaterEqual(len(paths), 30)
        self.assertEqual([], [path for path in paths if not exists(path)])

    def test_every_test_module_exists(self) -> None:
        modules = re.findall(r"``(test_\w+)``", page("where.rst"))
        self.assertGreaterEqual(len(modules), 20)
        here = Path(__file__).parent
        self.assertEqual([], [one for one in modules if not (here / f"{one}.py").is_file()])

    def test_there_are_thirty_nine_changes_and_none_twice(self) -> None:
        changes = re.findall(r"^   \* - (.+)$", page("where.rst"), re.MULTILINE)
        changes = [change for change in changes if change != "Change"]
        self.assertEqual(39, len(changes))
        self.assertEqual(39, len(set(changes)))

    def test_a_wrong_path_is_seen(self) -> None:
        text = (
            "``labels/topics/addons.py``, ``labels/owed.py``, ``tox -e charts``, "
            "``charts/none/a.yaml``"
        )
        missing = [path for path in named_paths(text) if not exists(path)]
        self.assertEqual(["labels/owed.py", "charts/none/a.yaml"], missing)


class TestWalks(unittest.TestCase):
    def setUp(self) -> None:
        self.text = page("walks.rst")
        self.steps = [(step["path"], step["name"]) for step in STEP.finditer(self.text)]

    def test_every_walk_has_steps(self) -> None:
        self.assertEqual(4, self.text.count(".. walk::"))
        for walk in self.text.split(".. walk::")[1:]:
            self.assertGreater(len(STEP.findall(walk)), 8)

    def test_every_file_exists(self) -> None:
        paths = [path for path, _ in self.steps] + named_paths(self.text)
        self.assertEqual([], [path for path in paths if not exists(path)])

    def test_every_function_exists(self) -> None:
        modules = [(path, name) for path, name in self.steps if path.endswith(".py")]
        self.assertNotEqual([], modules)
        missing = [
            f"{path} {name}" for path, name in modules if name not in functions(sources.ROOT / path)
        ]
        self.assertEqual([], missing)


class TestPicture(unittest.TestCase):
    def test_it_shows_each_room_on_its_floor(self) -> None:
        shown = re.findall(r'data-floor="(\d)">([^<]+)<', PICTURE.read_text(encoding="utf-8"))
        found = {room: int(floor) for floor, rooms in shown for room in rooms.split()}
        self.assertEqual(floors.FLOORS, found)


class TestContributing(unittest.TestCase):
    def setUp(self) -> None:
        self.text = (ROOT / "CONTRIBUTING.rst").read_text(encoding="utf-8")

    def test_every_link_and_every_path_exists(self) -> None:
        links = re.findall(r"<((?!https:)[^>\s]+)>`__", self.text)
        paths = links + [path for path in named_paths(self.text) if not path.startswith(BUILT)]
        self.assertGreater(len(paths), 10)
        self.assertEqual([], [path for path in paths if not exists(path)])

    def test_the_sentence_to_change_is_there(self) -> None:
        """Both commands of the first change to try find what they replace."""
        commands = re.findall(r"sed -i 's/([^/]+)/[^/]+/' (\S+)", self.text)
        self.assertEqual(2, len(commands))
        for sentence, path in commands:
            self.assertIn(sentence, (ROOT / path).read_text(encoding="utf-8"))

    def test_the_readme_links_to_what_there_is(self) -> None:
        text = (ROOT / "README.rst").read_text(encoding="utf-8")
        links = re.findall(r"<((?!https:)[^>\s]+)>`__|image:: (\S+)", text)
        self.assertGreater(len(links), 4)
        self.assertEqual([], [one for one in links if not exists("".join(one))])


class TestTroubleshooting(unittest.TestCase):
    """Messages of the installation page are those of the code, and a test has seen each."""

    #: Between two parts of a text in several lines.
    JOINT = re.compile(r'"\s+[rf]*"')

    def setUp(self) -> None:
        text = (ROOT / "doc" / "source" / "install" / "index.rst").read_text(encoding="utf-8")
        section = text.partition("\nTroubleshooting\n")[2]
        rows = re.findall(r"^   \* - ``([^`]+)``", section, re.MULTILINE)
        self.messages = [[part for part in row.split("...") if len(part) > 3] for row in rows]

    def texts(self, *places: Path) -> str:
        """The texts of all modules below some directories."""
        paths = [path for place in places for path in sorted(place.rglob("*.py"))]
        return "\n".join(self.JOINT.sub("", path.read_text(encoding="utf-8")) for path in paths)

    def test_the_code_has_them(self) -> None:
        code = self.texts(sources.ROOT, ROOT / "magnum_k8s_capi_helm")
        self.assertGreater(len(self.messages), 10)
        parts = [part for parts in self.messages for part in parts]
        self.assertEqual([], [part for part in parts if part not in code])

    def test_a_test_has_seen_them(self) -> None:
        packaging = ROOT / "magnum" / "tests" / "functional" / "k8s_capi_helm" / "packaging"
        tests = self.texts(Path(__file__).parent, packaging)
        unseen = [parts for parts in self.messages if not any(part in tests for part in parts)]
        self.assertEqual([], unseen)


class TestGlossary(unittest.TestCase):
    def setUp(self) -> None:
        entries = re.split(r"\n\n(?=   \S)", page("glossary.rst").partition("\n   :sorted:\n\n")[2])
        self.entries = [entry.strip("\n").split("\n") for entry in entries]

    def test_it_is_sorted_and_says_nothing_twice(self) -> None:
        terms = [lines[0].strip().lower() for lines in self.entries]
        self.assertGreater(len(terms), 60)
        self.assertEqual(sorted(set(terms)), terms)

    def test_each_word_has_a_public_source(self) -> None:
        without = [lines[0] for lines in self.entries if "<https://" not in " ".join(lines[1:])]
        self.assertEqual([], without)
