# SPDX-License-Identifier: Apache-2.0
"""The law about inner rooms, which a room of many files has, and what it allows and refuses."""

from __future__ import annotations

from magnum.tests.unit.drivers.k8s_capi_helm.house import imports
from magnum.tests.unit.drivers.k8s_capi_helm.house.floors import (
    INNER_BESIDE,
    INNER_FLOORS,
    MOST_FILES,
)
from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import (
    LawCase,
    made_up,
    PACKAGE,
    rooms,
    ROOT,
)


class TestInnerRooms(LawCase):
    """In a room of many files, each stands in an inner room, and imports go down there, too."""

    def test_every_inner_room_has_its_floor(self) -> None:
        found: dict[str, set[str]] = {}
        for source in rooms():
            room, *inner = source.path.relative_to(ROOT).parts[:-1] or (source.room,)
            self.assertLessEqual(len(inner), 1, f"{source.name} is in a room of an inner room")
            found.setdefault(room, set()).add(inner[0] if inner else room)
        nested = {room: inner for room, inner in found.items() if len(inner) > 1}
        self.assertEqual({room: set(floors) for room, floors in INNER_FLOORS.items()}, nested)

    def test_imports_go_down(self) -> None:
        broken = []
        for source in rooms():
            for node, name in source.imports():
                reason = imports.inner_refusal(source, name)
                if reason:
                    broken.append(f"{source.at(node)} imports {name}: {reason}")
        self.assertEqual([], broken)

    def test_inner_rooms_import_each_other_in_one_direction(self) -> None:
        for room in INNER_FLOORS:
            arrows = imports.inner_arrows(rooms(), room)
            self.assertGreater(sum(map(len, arrows.values())), 0)
            self.assertEqual([], imports.circles(arrows))

    def test_every_exception_is_needed(self) -> None:
        for room, pairs in INNER_BESIDE.items():
            arrows = imports.inner_arrows(rooms(), room)
            self.assertEqual([], [pair for pair in sorted(pairs) if pair[1] not in arrows[pair[0]]])

    def test_directories_are_small(self) -> None:
        self.assertEqual({}, imports.larger_directories(rooms(), MOST_FILES))


class TestRefusal(LawCase):
    def refusal(self, path: str, name: str) -> str | None:
        return imports.inner_refusal(made_up("", path), f"{PACKAGE}.{name}")

    def test_what_is_allowed(self) -> None:
        for path, name in (
            ("commands/app.py", "commands.check.check.Check"),
            ("commands/check/host.py", "commands.check.result"),
            ("commands/check/host.py", "commands.output.lister.ExitStatus"),
            ("commands/support/support_bundle.py", "commands.check"),
            ("commands/check/host.py", "reconcile.upgrade"),
            ("cloud/client.py", "cloud.preflight.message"),
            ("cloud/preflight/checks.py", "cloud.preflight.message"),
            ("reconcile/reconciler.py", "reconcile.observe.pending"),
            ("reconcile/deletion/deletion.py", "reconcile.ownership.ownership"),
            ("labels/parser.py", "labels.value_types.types"),
        ):
            self.assertIsNone(self.refusal(path, name), (path, name))

    def test_what_is_refused(self) -> None:
        for path, name in (
            ("commands/check/host.py", "commands.app.OperatorApp"),
            ("commands/check/host.py", "commands.support.bundle_files"),
            ("commands/check/__init__.py", "commands.why"),
            ("commands/output/lister.py", "commands.lookup.clusters"),
            ("commands/lookup/clusters.py", "commands.clusters"),
            ("cloud/preflight/checks.py", "cloud.client"),
            ("reconcile/observe/observe.py", "reconcile.reconciler"),
            ("reconcile/process/clients.py", "reconcile.context.reconciliation"),
            ("reconcile/release/apply.py", "reconcile.upgrade.upgrade"),
            ("status/objects/machines.py", "status.causes.root_cause"),
        ):
            self.assertIsNotNone(self.refusal(path, name), (path, name))

    def test_arrows_are_those_of_one_room(self) -> None:
        text = f"from {PACKAGE}.commands.why import advice\nfrom {PACKAGE}.cloud import client\n"
        files = [made_up(text, "commands/support/made_up.py"), made_up(text, "cloud/made_up.py")]
        arrows = imports.inner_arrows(files, "commands")
        self.assertEqual({"support": {"why"}}, {one: to for one, to in arrows.items() if to})

    def test_directories_are_counted_one_by_one(self) -> None:
        files = [made_up("", name) for name in ("a/x.py", "a/y.py", "a/b/x.py", "c.py", "d.py")]
        self.assertEqual({"a": 2, "": 2}, imports.larger_directories(files, 1))
