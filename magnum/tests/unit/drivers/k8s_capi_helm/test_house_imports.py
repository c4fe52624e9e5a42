# SPDX-License-Identifier: Apache-2.0
"""What the import law allows and refuses, and what the law about sizes measures."""

from __future__ import annotations

import textwrap

from magnum.tests.unit.drivers.k8s_capi_helm.house import imports, sizes
from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import LawCase, made_up, PACKAGE
from tools import house


class TestRefusal(LawCase):
    def test_what_is_allowed(self) -> None:
        for room, name in (
            ("model", "dataclasses"),
            ("status", f"{PACKAGE}.errors"),
            ("deadline", "time"),
            ("kube", "kubernetes"),
            ("kube", f"{PACKAGE}.kube.http.request"),
            ("kube_client", f"{PACKAGE}.kube.http.request"),
            ("cloud", "magnum.x"),
            ("conf", "oslo_config.cfg"),
            ("lease", f"{PACKAGE}.kube_client"),
            ("reconcile", f"{PACKAGE}.values.tree.live"),
            ("reconcile", f"{PACKAGE}.kube.watch.snapshot.Snapshot"),
            ("reconcile", f"{PACKAGE}.values.tree.merge"),
        ):
            self.assertIsNone(imports.refusal(room, name), (room, name))

    def test_what_is_refused(self) -> None:
        for room, name in (
            ("labels", "requests"),
            ("model", "time"),
            ("values", f"{PACKAGE}.cloud"),
            ("helm", f"{PACKAGE}.driver"),
            ("lease", f"{PACKAGE}.kube.http.request"),
            ("reconcile", "magnum.objects"),
            ("handlers", "oslo_config.cfg"),
            ("labels", f"{PACKAGE}.model"),
            ("reconcile", f"{PACKAGE}.values"),
            ("reconcile", f"{PACKAGE}.values.sections.storage"),
            ("reconcile", f"{PACKAGE}.kube.http.transport.Transport"),
            ("cloud", f"{PACKAGE}.values.tree.merge"),
            ("reconcile", f"{PACKAGE}.handlers.requests.create"),
        ):
            self.assertIsNotNone(imports.refusal(room, name), (room, name))

    def test_an_exception_without_use_is_seen(self) -> None:
        used = made_up(f"from {PACKAGE}.values.tree import merge\n", "reconcile/made_up.py")
        self.assertEqual({("values.tree.merge", "reconcile")}, imports.used_exceptions([used]))
        self.assertEqual(set(), imports.used_exceptions([made_up("import os\n")]))


class TestCircles(LawCase):
    def test_a_circle_of_rooms_has_no_longest_chain(self) -> None:
        self.assertRaises(
            RecursionError, imports.longest_chain, {"a": {"b"}, "b": {"c"}, "c": {"a"}}
        )
        self.assertEqual(
            ["a", "b", "c"], imports.longest_chain({"a": {"b", "c"}, "b": {"c"}, "c": set()})
        )

    def test_circles_of_modules_are_found(self) -> None:
        graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"f"}, "f": {"e", "a"}}
        self.assertEqual([["b", "c"], ["e", "f"]], imports.circles(graph))
        self.assertEqual([], imports.circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}))

    def test_imports_inside_of_functions_count(self) -> None:
        files = [
            made_up(f"from {PACKAGE}.status import second\n", "status/first.py"),
            made_up(
                f"def f():\n    from {PACKAGE}.status.first import g\n    g()\n", "status/second.py"
            ),
        ]
        graph = imports.modules(files, PACKAGE)
        self.assertEqual([["status.first", "status.second"]], imports.circles(graph))


class TestHandedOn(LawCase):
    def test_classes_may_be_and_functions_may_not(self) -> None:
        text = f"from {PACKAGE}.lease.x import Front, work\n\n__all__ = ['Front', 'work']\n"
        source = made_up(text, "lease/__init__.py")
        self.assertEqual(["work"], list(imports.handed_on(source)))

    def test_what_a_room_defines_itself_is_its_own(self) -> None:
        source = made_up("__all__ = ['work']\n\ndef work(): ...\n", "lease/__init__.py")
        self.assertEqual([], list(imports.handed_on(source)))


class TestSizes(LawCase):
    def test_lines_and_parameters_are_counted(self) -> None:
        body = "\n".join(["    x = 1"] * 40)
        text = f"@decorated\ndef f(self, a, /, b=1, *, c: int, **more):\n{body}\n"
        [one] = sizes.measured([made_up(text)])
        self.assertEqual((41, 3), (one.lines, one.parameters))
        self.assertEqual([one], sizes.long([one]))
        self.assertEqual([], sizes.wide([one]))

    def test_seven_parameters_are_many(self) -> None:
        text = "def f(a, b, c, d, e, f): ...\ndef g(a, b, c, d, e, f, g): ...\n"
        places = [one.place for one in sizes.wide(sizes.measured([made_up(text)]))]
        self.assertEqual(["status/made_up.py:2 g"], places)

    def test_configuration_of_any_type_is_refused(self) -> None:
        text = textwrap.dedent("""\
            def f(conf): ...
            def g(conf: Any): ...
            def h(conf: Settings, x: Any): ...
            def i(conf: cfg.ConfigOpts): ...
        """)
        found = [one.partition(" ")[2] for one in sizes.untyped_conf(made_up(text))]
        self.assertEqual(["f(conf: )", "g(conf: Any)"], found)


class TestNumbers(LawCase):
    def test_the_tool_prints_what_the_laws_hold(self) -> None:
        held = {row.name: (row.number, row.limit) for row in house.rows() if row.limit is not None}
        self.assertIn("longest chain of rooms", held)
        self.assertEqual((0, 0), held["circles of modules, sandbox"])
        self.assertEqual({}, {name: pair for name, pair in held.items() if pair[0] > pair[1]})
