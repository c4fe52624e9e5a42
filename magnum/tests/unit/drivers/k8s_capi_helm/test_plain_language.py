# SPDX-License-Identifier: Apache-2.0
"""Texts for operators, tenants and contributors: none has a phrase of a closed list.

The list holds phrases that this project used in a meaning of its own, or where a sentence lacks its
subject. Quotes of commands and of other programs' messages stand in literals, which are not read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
import re

import testtools

from magnum.drivers.k8s_capi_helm import conf, labels
from magnum.drivers.k8s_capi_helm.magnum_objects.validation import fields
from magnum.tests.unit.drivers.k8s_capi_helm import test_house

ROOT = Path(__file__).parents[5]

#: Phrases that do not come back, with what to write instead.
PRIVATE = {
    "whoever": "name the user: the requesting user, an administrator, a user with the role ...",
    "who asks": "the requesting user",
    "nobody": "no user, no program; or say what happens instead",
    "somebody": "a user, an operator, another program",
    "everybody": "all users, any client",
    "anew": "again; recreate, rewrite, reinstall",
    "told": "reported, configured, passed",
    "mend": "fix",
    "mends": "fixes",
    "in the way": "blocks, prevents",
    "what becomes of": "the effect on, the result",
    "look at": "check, read, see",
    "looks at": "checks, reads",
    "looked at": "checked, read",
    "looks after": "manages",
    "is through": "has finished",
    "comes good": "recovers",
    "of your own": "custom, separate",
    "of one's own": "custom, separate",
    "as it is": "unchanged, current",
    "as they are": "unchanged, current",
    "makes anew": "recreates",
    "taken over as": "adopted",
    "out of turn": "event-triggered",
    "gives its word": "confirms",
    "by the operator's word": "the operator has confirmed",
    "would go nowhere": "has no effect",
    "keep nobody out": "do not support access restrictions",
    "puts it back to work": "resumes it",
    "let go": "release, remove the finalizers",
    "what there is": "name it: the existing objects, the remaining resources",
    "cut short": "interrupted, failed",
}
_PHRASE = re.compile(
    r"(?<![\w-])(?<!\blong )("
    + "|".join(re.escape(one).replace(r"\ ", r"\s+") for one in PRIVATE)
    + r")(?!\w)",
    re.IGNORECASE,
)
#: Pages of operators, tenants and contributors; the page of sentences has tests of its own.
PAGES = (
    *(ROOT / "doc" / "source").rglob("*.rst"),
    *ROOT.glob("*.rst"),
    *(ROOT / "releasenotes" / "notes").glob("*.yaml"),
    *(ROOT / "charts").glob("*/README.md"),
    ROOT / "sandbox" / "README.md",
)


def phrases(text: str) -> list[str]:
    """Private phrases in a text, as :data:`PRIVATE` has them."""
    return [" ".join(one.lower().split()) for one in _PHRASE.findall(text)]


def prose(text: str) -> str:
    """A page without its literals: blocks of code, and what stands in backquotes."""
    kept: list[str] = []
    inside = -1
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        if inside >= 0 and (indent > inside or not line.strip()):
            kept.append("")
            continue
        starts = re.match(r"\s*\.\. (code-block|graphviz|literalinclude)::|.*[^:]::$", line)
        inside = indent if starts else -1
        kept.append(line)
    return re.sub(r"(`+).+?\1", "", "\n".join(kept), flags=re.DOTALL)


def helps() -> Iterator[tuple[str, str]]:
    """Help of groups, options, labels and Magnum's fields, and of which."""
    for group, options in conf.list_opts():
        yield group.name, group.help or ""
        for option in options:
            yield f"{group.name}.{option.name}", option.help or ""
    for label in labels.REGISTRY:
        yield label.name, label.help
    for field in fields.FIELDS:
        yield f"{field.owner} {field.name}", field.help


def log_lines() -> Iterator[tuple[str, str]]:
    """The texts of log lines of the driver, and where each stands."""
    for source in test_house.rooms():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("LOG."):
                for one in node.args:
                    if isinstance(one, ast.Constant) and isinstance(one.value, str):
                        yield source.at(node), one.value


def chart_messages() -> Iterator[tuple[str, str]]:
    """The messages with which charts refuse values, and where each stands."""
    charts = (*(ROOT / "charts").glob("*"), ROOT / "charts/openstack-cluster/charts/common")
    for path in sorted(path for chart in charts for path in chart.glob("templates/**/*")):
        if path.is_file():
            for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
                for text in re.findall(r'\bfail \(?(?:printf )?"((?:[^"\\]|\\.)*)"', line):
                    yield f"{path.relative_to(ROOT)}:{number}", text


def chart_values() -> Iterator[tuple[str, str]]:
    """Comments of the charts' values and descriptions of their schemas, and where each stands."""
    for path in sorted((ROOT / "charts").glob("*/values.*")):
        form = r'"description": "(.*?)"' if path.suffix == ".json" else r"^ *# (.*)$"
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            for text in re.findall(form, line):
                yield f"{path.relative_to(ROOT)}:{number}", text


def output() -> Iterator[tuple[str, str]]:
    """What the sandbox and the tools print: steps, help and errors, and where each stands."""
    calls = {"SandboxError", "Fault", "say", "step", "print", "add_argument", "add_parser"}
    for path in sorted([*(ROOT / "sandbox").rglob("*.py"), *(ROOT / "tools").glob("*.py")]):
        if "tests" in path.relative_to(ROOT).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in calls:
                for one in ast.walk(node):
                    if isinstance(one, ast.Constant) and isinstance(one.value, str):
                        yield f"{path.relative_to(ROOT)}:{one.lineno}", one.value


def docstrings() -> Iterator[tuple[str, str]]:
    """First paragraphs of modules, and of public classes and functions of the driver."""
    for source in test_house.rooms():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                name = getattr(node, "name", source.name)
                text = ast.get_docstring(node)
                if text and not name.startswith("_"):
                    yield f"{source.name} {name}", text.partition("\n\n")[0]


class TestPlainLanguage(testtools.TestCase):
    def check(self, texts: Iterator[tuple[str, str]], least: int) -> None:
        found = list(texts)
        self.assertGreater(len(found), least)
        wrong = [
            f"{where}: {phrase!r}; write: {PRIVATE[phrase]}"
            for where, text in found
            for phrase in phrases(text)
        ]
        self.assertEqual([], wrong)

    def test_help_of_options_and_labels(self) -> None:
        self.check(helps(), 180)

    def test_log_lines(self) -> None:
        self.check(log_lines(), 70)

    def test_chart_messages(self) -> None:
        self.check(chart_messages(), 130)

    def test_values_of_charts(self) -> None:
        self.check(chart_values(), 700)

    def test_docstrings(self) -> None:
        self.check(docstrings(), 900)

    def test_output_of_sandbox_and_tools(self) -> None:
        self.check(output(), 300)

    def test_pages(self) -> None:
        self.check(
            (
                (str(path.relative_to(ROOT)), prose(path.read_text(encoding="utf-8")))
                for path in PAGES
                if path.name != "status.rst"
            ),
            50,
        )

    def test_a_log_line_of_a_cluster_begins_with_it(self) -> None:
        """An operator greps "Cluster UUID:"."""
        lines = [text for _, text in log_lines() if "luster %s" in text]
        self.assertGreater(len(lines), 25)
        self.assertEqual([], [one for one in lines if not one.startswith("Cluster %s: ")])

    def test_each_phrase_is_seen(self) -> None:
        for phrase in PRIVATE:
            for text in (
                f"It is {phrase}.",
                f"{phrase.capitalize()} it is",
                phrase.replace(" ", "\n"),
            ):
                self.assertIn(phrase, phrases(text), text)
        for text in ("Retold", "renewal", "a newer one", "as it isolates", "as long as it is"):
            self.assertEqual([], phrases(text))

    def test_literals_are_not_read(self) -> None:
        text = "Run::\n\n   nobody\n\nthen ``anew``\n\n.. code-block:: sh\n\n   told\n\nEnd, mend."
        self.assertEqual(["mend"], phrases(prose(text)))
