# SPDX-License-Identifier: Apache-2.0
"""The directive ``walk``: the way of one request through the files, drawn as an SVG, and its steps.

It is hand-written because a fresh machine builds the pages with nothing but the package index:
``sphinx.ext.graphviz`` needs the program ``dot``; Mermaid needs a browser, or a script that every
reader's browser loads from elsewhere; ``sphinxcontrib-seqdiag`` fails with Pillow 10 and has had no
release since 2021; ``sphinxcontrib-svgbob`` draws what somebody has drawn in characters already.
This one also knows the floors, and refuses a file that does not exist.

A step is ``PLACE NAME: sentence``, and its further lines are indented::

    .. walk:: A resize

       (Magnum) conductor: Saves the new count and calls the driver.
       handlers/requests/resize.py resize: Checks the request.

PLACE is a file of the driver, a file of ``charts``, or something outside in parentheses.
"""

from __future__ import annotations

import dataclasses
from html import escape
import re

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ext import house

STEP = re.compile(
    r"(?:\((?P<outside>[^)]+)\)|(?P<path>[\w./-]+))(?: (?P<name>[^:]+))?: (?P<text>.+)"
)
CHARTS = "Charts"
MAGNUM = "Magnum"

WIDTH, HEIGHT, ASIDE, BETWEEN, TOP = 164, 50, 18, 30, 34
FONT = 'font-family="sans-serif" font-size="12"'
MONO = 'font-family="monospace" font-size="11"'


@dataclasses.dataclass(frozen=True)
class Step:
    """One box of a walk.

    :ivar lane: title of the column that it stands in.
    :ivar path: its file below the driver or the repository, "" outside of them.
    :ivar name: a function, a class or an object.
    """

    lane: str
    path: str
    name: str
    text: str

    @property
    def lines(self) -> list[str]:
        """What the box says."""
        room, _, file = self.path.removeprefix("charts/").rpartition("/")
        function = self.path.endswith(".py") and self.name[:1].islower()
        name = f"{self.name}()" if function else self.name
        return [line for line in (f"{room}/" if room else "", file, name) if line]

    @property
    def place(self) -> str:
        """What the list below the picture calls it."""
        return self.path or self.lane


def steps_of(text: str) -> list[Step]:
    """The steps of a walk.

    :raises ValueError: a line is none, or names a file that does not exist.
    """
    found: list[Step] = []
    for line in re.sub(r"\n\s+", " ", text).splitlines():
        if not line.strip():
            continue
        match = STEP.fullmatch(line)
        if match is None:
            raise ValueError(f"no step: {line}")
        path = match["path"] or ""
        lane = match["outside"] or lane_of(path)
        found.append(Step(lane, path, match["name"] or "", match["text"]))
    return found


def lane_of(path: str) -> str:
    """The column of a file: its floor, or that of the charts."""
    if path.startswith("charts/"):
        if not (house.ROOT / path).is_file():
            raise ValueError(f"there is no {path}")
        return CHARTS
    if not (house.DRIVER / path).is_file():
        raise ValueError(f"there is no {path} in the driver")
    floor = house.floors()[path.partition("/")[0].removesuffix(".py")]
    return f"{floor} {house.TITLES[floor].partition(':')[0].lower()}"


def lanes(steps: list[Step]) -> list[str]:
    """The columns: Magnum, the floors from the top, and what else is outside."""
    named = list(dict.fromkeys(step.lane for step in steps))
    inside = sorted((lane for lane in named if lane[0].isdigit()), reverse=True)
    first = [lane for lane in named if lane == MAGNUM]
    return first + inside + [lane for lane in named if lane not in {*first, *inside}]


def draw(title: str, steps: list[Step]) -> str:
    """The picture: a column for each lane, a row for each step, numbered arrows between them."""
    columns = lanes(steps)
    width = len(columns) * (WIDTH + ASIDE) + ASIDE
    height = TOP + len(steps) * (HEIGHT + BETWEEN) + ASIDE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">',
        f"<title>{escape(title)}</title>",
    ]
    for number, lane in enumerate(columns):
        left = ASIDE + number * (WIDTH + ASIDE)
        parts.append(
            f'<rect x="{left - 6}" y="4" width="{WIDTH + 12}" height="{height - 8}" rx="6" '
            f'fill="{"#eef3fa" if lane[0].isdigit() else "#f6f1e7"}"/>'
            f'<text x="{left + WIDTH / 2}" y="22" text-anchor="middle" font-weight="bold" {FONT}>'
            f"{escape(lane)}</text>"
        )
    for number, step in enumerate(steps):
        left = ASIDE + columns.index(step.lane) * (WIDTH + ASIDE)
        top = TOP + BETWEEN + number * (HEIGHT + BETWEEN)
        middle, bend = left + WIDTH / 2, top - BETWEEN / 2 - 1
        way = f"M{middle} {top - BETWEEN + 4}V{top}"
        if number:
            before = ASIDE + columns.index(steps[number - 1].lane) * (WIDTH + ASIDE) + WIDTH / 2
            way = f"M{before} {top - BETWEEN}V{bend}H{middle}V{top}"
        parts.append(
            f'<path d="{way}" fill="none" stroke="#44546a" stroke-width="1.5"/>'
            f'<path d="M{middle - 4} {top - 7}h8l-4 7z" fill="#44546a"/>'
            f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" rx="4" fill="#fff" '
            'stroke="#44546a"/>'
            f'<circle cx="{middle}" cy="{bend}" r="9" fill="#44546a"/>'
            f'<text x="{middle}" y="{bend + 4}" text-anchor="middle" fill="#fff" '
            f'font-family="sans-serif" font-size="11">{number + 1}</text>'
        )
        shown = step.lines
        for row, line in enumerate(shown):
            bold = ' font-weight="bold"' if line.endswith((".py", ".json", ".yaml")) else ""
            at = top + HEIGHT / 2 + 4 + 14 * (row - (len(shown) - 1) / 2)
            fit = f' textLength="{WIDTH - 8}" lengthAdjust="spacingAndGlyphs"'
            parts.append(
                f'<text x="{middle}" y="{at:g}" text-anchor="middle"{bold} {MONO}'
                f"{fit if len(line) > 23 else ''}>{escape(line)}</text>"
            )
    return "\n".join([*parts, "</svg>"])


class Walk(SphinxDirective):
    """``.. walk:: TITLE`` with one step a paragraph."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(house.LAW))
        try:
            steps = steps_of("\n".join(self.content))
        except ValueError as error:
            raise self.error(str(error)) from error
        title = self.arguments[0]
        picture = f'<div style="overflow-x: auto">{draw(title, steps)}</div>'
        listing = nodes.enumerated_list(enumtype="arabic", prefix="", suffix=".")
        for step in steps:
            line = nodes.paragraph("", "", nodes.literal("", step.place))
            if step.name:
                line += [nodes.Text(", "), nodes.literal("", step.name)]
            said, problems = self.parse_inline(step.text, lineno=self.lineno)
            line += [nodes.Text(": "), *said]
            listing += nodes.list_item("", line, *problems)
        return [nodes.raw("", picture, format="html"), listing]


def setup(app: Sphinx) -> dict[str, bool]:
    directive: type[Directive] = Walk
    app.add_directive("walk", directive)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
