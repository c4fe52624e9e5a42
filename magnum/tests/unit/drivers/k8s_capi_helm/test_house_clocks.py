# SPDX-License-Identifier: Apache-2.0
"""Where the conductor's clock has a part: a closed list, each place with its reason.

How long something lasts on the management cluster is told by the times that its controllers write,
among each other (``status/objects/timestamps.py``), or by seconds that this process has counted. So
no ``now`` and no ``at`` of a look is subtracted from anything, or compared with it, but for these.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
import tempfile

from magnum.tests.unit.drivers.k8s_capi_helm.house.file_names import FileNames
from magnum.tests.unit.drivers.k8s_capi_helm.house.floors import CLOCK
from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import (
    LawCase,
    made_up,
    ROOT,
    Source,
    sources,
    TESTS,
)

_PROCESS = "seconds, or moments, of this process alone"
_DEADLINE = "a limit that conductors write down by their clocks: off by as much as two hosts differ"
_ROLLOUT = "minutes that operators' hosts write down: off by as much as two hosts differ"
_WINDOW = "a window is hours of the world's clock"
#: Function -> why it may.
ALLOWED = {
    "reconcile/process/controller_check.py:_ask_now_and_then": _PROCESS,
    "reconcile/process/controller_check.py:_note": _PROCESS,
    "handlers/tasks/watch_trigger.py:_clean": _PROCESS,
    "handlers/tasks/watch_trigger.py:_ready": _PROCESS,
    "handlers/tasks/watch_trigger.py:_rested": _PROCESS,
    "handlers/tasks/watch_trigger.py:visit": _PROCESS,
    "reconcile/process/controller_check.py:note": "what a clock there is ahead of one's seconds",
    "reconcile/process/credential_check.py:problem": _PROCESS,
    "reconcile/observe/observe_cluster.py:observe": "how far this process's own watches are behind",
    "commands/output/expiry.py:days_left": "a certificate ends when the world's clock says so",
    "commands/output/expiry.py:expiry_status": "a certificate ends when the world's clock says so",
    "labels/value_types/maintenance_window.py:is_open": _WINDOW,
    "labels/value_types/maintenance_window.py:next_opening": _WINDOW,
    "labels/value_types/maintenance_window.py:common_opening": _WINDOW,
    "commands/rollout/status.py:_time_text": _ROLLOUT,
    "commands/rollout/steps.py:take_step": _WINDOW,
    "commands/rollout/plan.py:_chosen": _ROLLOUT,
    "commands/rollout/plan.py:_follow_requested": _ROLLOUT,
    "commands/check/management_cluster.py:_server_time": "the other clock, by what differs",
    "kube/http/clock_check.py:compare": "a difference is shown, and decides nothing",
    "reconcile/process/caches.py:age": "times of rows, a day more than clocks differ by",
    "status/__init__.py:_fresh": "the age of this process's own look",
    "status/health.py:_certificates": "a certificate ends when the world's clock says so",
    "status/causes/reasons.py:is_late": _DEADLINE,
    "handlers/tasks/status_task.py:_is_late": _DEADLINE,
    "handlers/entry/reconciliation.py:record_pass": _PROCESS,
    "handlers/entry/reconciliation.py:_show": _PROCESS,
    "metrics/fleet.py:clean": _PROCESS,
    "handlers/outcome/write_status.py:_count_ended": "a duration is shown, and decides nothing",
    "handlers/tasks/status_task.py:_is_temporary": _DEADLINE,
    "reconcile/process/addon_check.py:inside": _PROCESS,
    "lease/lock.py:_expired": _PROCESS,
    "helm/process.py:_judge": _PROCESS,
    "kube/http/circuit_breaker.py:refusal": _PROCESS,
    "reconcile/process/evaluation_cache.py:holds": _PROCESS,
    "reconcile/process/evaluation_cache.py:verdict_of": _PROCESS,
    "reconcile/process/credential_check.py:is_due": _PROCESS,
    "reconcile/process/addon_check.py:is_due": _PROCESS,
}


#: Modules that read the wall clock, and their functions that do.
READERS = ("time.", "datetime.", "oslo_utils.timeutils.")
READ = frozenset(
    "ctime gmtime localtime now time time_ns today utcnow utcnow_ts".split(),
)


def clock_readers(source: Source) -> Iterator[str]:
    """What of a file reads the wall clock, called or handed over."""
    file = FileNames(source)
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Load):
            name = file.dotted(node) or ""
            if name.startswith(READERS) and name.rpartition(".")[2] in READ:
                yield name


def clock_users(source: Source) -> Iterator[str]:
    """Functions of a file that reckon with ``now`` or with the ``at`` of something."""
    for function in ast.walk(source.tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            parts: list[ast.expr] = []
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
                parts = [node.left, node.right]
            if isinstance(node, ast.Compare):
                parts = [node.left, *node.comparators]
            if any(_has_clock(part) for part in parts):
                yield f"{source.name}:{function.name}"


def _has_clock(node: ast.AST) -> bool:
    """Whether it reckons with a clock; what is handed to a function is that function's."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2] in ("utc_now", "now")
    if isinstance(node, ast.Attribute) and node.attr in ("at", "now"):
        return True
    if isinstance(node, ast.Name) and node.id == "now":
        return True
    return any(_has_clock(one) for one in ast.iter_child_nodes(node))


class TestClocks(LawCase):
    def test_the_conductors_clock_is_compared_with_nobody_elses(self) -> None:
        found = {user for one in sources(ROOT) for user in clock_users(one)}
        self.assertEqual(set(ALLOWED), found)

    def test_one_module_reads_the_wall_clock(self) -> None:
        readers = {source.name for source in sources(ROOT) for _ in clock_readers(source)}
        self.assertEqual({CLOCK}, readers)

    def test_tests_ask_the_wall_clock_of_the_driver(self) -> None:
        """Whoever moves it moves it for all: a test in memory has no other one."""
        readers = {
            source.name
            for source in sources(TESTS)
            for name in clock_readers(source)
            if name.startswith("oslo_utils")
        }
        self.assertEqual(set(), readers)

    def test_every_reader_is_seen(self) -> None:
        for text in (
            "import datetime\nx = datetime.datetime.now(datetime.timezone.utc)",
            "import datetime as d\nx = d.datetime.utcnow()",
            "from datetime import datetime\nx = datetime.now()",
            "import datetime\nx = datetime.date.today()",
            "import time\nx = time.time()",
            "import time\ndef f(clock=time.time): ...",
            "from time import time_ns\nx = time_ns()",
            "import time\nx = time.gmtime()",
            "from oslo_utils import timeutils\nx = timeutils.utcnow(with_timezone=True)",
            "from oslo_utils import timeutils\nfield(default_factory=timeutils.utcnow)",
        ):
            self.assertEqual(1, len(list(clock_readers(made_up(text)))), text)

    def test_other_clocks_are_free(self) -> None:
        for text in (
            "import time\nx = time.monotonic()",
            "import datetime\nx = datetime.datetime.fromisoformat('2026-01-01')",
            "from oslo_utils import timeutils\nx = timeutils.parse_isotime('x')",
            "x = self.now()",
            "now = 3",
        ):
            self.assertEqual([], list(clock_readers(made_up(text))), text)

    def test_the_law_sees_what_it_forbids(self) -> None:
        for line in ("now - made > LIMIT", "x > observed.at - made", "utc_now() - made", "now < x"):
            with tempfile.TemporaryDirectory() as place:
                path = Path(place) / "faults.py"
                path.write_text(f"def f(now, made, x, observed):\n    return {line}\n")
                self.assertEqual(
                    ["faults.py:f"], sorted(set(clock_users(Source(path, path.parent))))
                )
