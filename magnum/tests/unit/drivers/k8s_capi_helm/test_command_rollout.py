# SPDX-License-Identifier: Apache-2.0
"""``rollout``: one template over many clusters, through Magnum's conductor, and through deaths."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
from typing import Any

from oslo_db import exception as db_exception

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.rollout.store import RolloutStore
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.reconcile.ownership import ownership
from magnum.drivers.k8s_capi_helm.reconcile.upgrade import planned_upgrade
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CRITICAL,
    OK,
    UNKNOWN,
    WARNING,
)
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.rendered_case import RenderedCase
from magnum_k8s_capi_helm.conductor import MagnumConductor

NEXT = "1.35.2"


class Killed(BaseException):
    """The process dies here."""


class CaseConductor(MagnumConductor):
    """Magnum's conductor, called as its RPC calls it.

    :ivar meanwhile: called before the next request.
    :ivar dies: "before" a request is made, or "after" it; "" for never.
    :ivar error: what the next request meets.
    """

    def __init__(self, case: DriverCase) -> None:
        self._case = case
        self.requests: list[str] = []
        self.dies = ""
        self.meanwhile: Callable[[], object] | None = None
        self.error: Exception | None = None

    def request_upgrade(self, uuid: str, template: str, max_batch_size: int) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            meanwhile()
        if self.dies == "before":
            raise Killed
        if self.error:
            raise self.error
        self.requests.append(uuid)
        chosen = objects.ClusterTemplate.get_by_uuid(self._case.context, template)
        if refusal := self._case.upgrade(chosen, batch=max_batch_size):
            raise errors.InvalidRequest(refusal)
        if self.dies == "after":
            raise Killed


class RolloutCase(RenderedCase):
    def setUp(self) -> None:
        super().setUp()
        self.cloud.images["ubuntu-kube-1.35"] = ("image-2", NEXT)
        self.next = self._template(
            uuid="21111111-2222-4333-8444-555555555555",
            name="next",
            image_id="ubuntu-kube-1.35",
            public=True,
        )
        self.magnum = CaseConductor(self)
        self.conductor = self.magnum
        self.health_task()

    def rows(self, *argv: str, status: int = OK) -> list[dict[str, Any]]:
        printed = self.command("rollout", *argv, "-f", "json")
        self.assertEqual(status, printed.status, printed.out + printed.error)
        return printed.rows()

    def refused(self, words: str, *argv: str) -> None:
        printed = self.command("rollout", *argv)
        self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))
        self.assertIn(words, printed.error)

    def start(self, *argv: str, status: int = OK) -> list[dict[str, Any]]:
        return self.rows("start", "patch", "--template", "next", *argv, status=status)

    def once(self, status: int = WARNING) -> dict[str, Any]:
        [row] = self.rows("run", "patch", "--once", status=status)
        return row

    def converge(self) -> None:
        for _ in range(3):
            self.capi_converges()
            self.status_task(2)
        self.health_task()

    def stored(self) -> list[str]:
        return [
            obj["metadata"]["name"] for obj in self.kube.list(names.CONFIG_MAP, "magnum-rollouts")
        ]


class TestStart(RolloutCase):
    def test_a_dry_run_predicts_and_records_nothing(self) -> None:
        before = self.world()

        def change(manifests: list[Any]) -> None:
            for manifest in manifests:
                if manifest["kind"] == "MachineDeployment":
                    manifest["spec"]["template"]["spec"]["version"] = f"v{NEXT}"

        self.renders(change)
        [row] = self.start("--dry-run")
        self.assertEqual(
            (1, "demo", 1, 10, ""),
            tuple(row[key] for key in ("Wave", "Cluster", "Machines", "Minutes", "Refusal")),
        )
        self.assertEqual(before, self.world())
        self.assertEqual([], self.stored())

    def test_a_dry_run_names_who_would_be_refused(self) -> None:
        self.cloud.images["ubuntu-kube-1.35"] = ("image-2", "1.40.0")
        [row] = self.start("--dry-run", status=WARNING)
        self.assertIn("1.40.0", row["Refusal"])

    def test_it_is_recorded_and_touches_nothing(self) -> None:
        self.start()
        self.assertEqual(["patch"], self.stored())
        self.assertEqual([], self.magnum.requests)
        [row] = self.rows("status", status=WARNING)
        self.assertEqual(
            ("running", 0, 1, "now"), tuple(row[key] for key in ("State", "Done", "Of", "Next"))
        )

    def test_who_is_chosen(self) -> None:
        for argv in (
            ("--project", "p1"),
            ("--from-template", self.cluster().cluster_template_id),
            ("--kubernetes", "v1.34"),
            ("--cluster", "demo"),
        ):
            with self.subTest(argv):
                self.assertEqual(1, len(self.start("--dry-run", *argv)))
        for argv in (
            ("--project", "p2"),
            ("--from-template", "next"),
            ("--kubernetes", "v1.33"),
            ("--with-label", "x=y"),
        ):
            with self.subTest(argv):
                words = "No cluster is to be upgraded"
                self.refused(words, "start", "patch", "--template", "next", *argv)

    def test_what_no_rollout_is_made_of(self) -> None:
        for argv, words in (
            (("Patch", "--template", "next"), "'Patch'"),
            (("patch", "--template", "none"), "There is no such cluster template"),
            (("patch", "--template", "next", "--budget", "0"), "--budget is 0, and at least 1"),
            (("patch", "--template", "next", "--waves", "1,x"), "--waves takes sizes"),
            (("patch", "--template", "next", "--window", "night"), "'night'"),
            (("patch", "--template", "next", "--with-label", "x"), "--with-label has 'x'"),
            (("patch", "--template", "next", "--cluster", "x"), "There is no such cluster"),
        ):
            with self.subTest(argv):
                self.refused(words, "start", *argv)
        self.assertEqual([], self.stored())

    def test_a_template_that_the_tenant_could_not_see(self) -> None:
        self.next.public = False
        self.next.save()
        self.rows("start", "patch", "--template", self.next.uuid, "--dry-run")
        self.next.project_id = "p2"
        self.next.save()
        argv = ("start", "patch", "--template", self.next.uuid)
        self.refused("leave out cluster 'demo' of project 'p1'", *argv)

    def test_windows_that_are_never_open_together(self) -> None:
        cluster = self.cluster()
        cluster.labels = {"maintenance_window": "sun 06:00-08:00 europe/berlin"}
        cluster.save()
        [row] = self.start("--dry-run", "--window", "Sun 06:30-07:00")
        self.assertEqual("Sun 06:00-08:00 Europe/Berlin", row["Window"])
        self.refused(
            "leave out cluster 'demo', whose label maintenance_window is 'Sun 06:00-08:00",
            *("start", "patch", "--template", "next", "--window", "Sat 06:00-08:00"),
        )
        self.assertEqual([], self.stored())

    def test_two_of_one_name(self) -> None:
        self.start()
        self.refused("There is a rollout of this name", "start", "patch", "--template", "next")


class TestRun(RolloutCase):
    def test_to_its_end(self) -> None:
        self.start()
        self.assertEqual("running", self.once()["State"])
        self.assertEqual([self.cluster().uuid], self.magnum.requests)
        self.assertEqual("UPDATE_IN_PROGRESS", self.cluster().status)
        self.converge()
        self.assertEqual(("finished", 1), (self.once(OK)["State"], self.once(OK)["Done"]))
        [row] = self.rows("status", "patch")
        self.assertEqual(("demo", "done"), (row["Cluster"], row["State"]))

    def test_it_runs_on_until_it_is_finished(self) -> None:
        self.start()
        pauses = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            self.converge()

        self.ports = dataclasses.replace(self.ports, pause=pause)
        [row] = self.rows("run", "patch")
        self.assertEqual("finished", row["State"])
        self.assertEqual([15.0], pauses)

    def test_outside_of_its_window_it_waits(self) -> None:
        now = self.wall_clock()
        self.start("--window", f"{(now.hour + 2) % 24:02}:00-{(now.hour + 3) % 24:02}:00")
        row = self.once()
        self.assertEqual([], self.magnum.requests)
        self.assertIn(f" {(now.hour + 2) % 24:02}:00 UTC", row["Next"])

    def test_a_refusal_stops_it_with_the_drivers_sentence(self) -> None:
        self.start()
        self.cloud.images["ubuntu-kube-1.35"] = ("image-2", "1.40.0")
        self.stand_still(self.wall_clock())
        self.assertEqual("running", self.once()["State"], "a service may have been away")
        self.after(3)
        row = self.once(CRITICAL)
        self.assertEqual("stopped", row["State"])
        self.assertIn("1.40.0", row["Reason"])
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)
        self.cloud.images["ubuntu-kube-1.35"] = ("image-2", NEXT)
        self.rows("resume", "patch", "--retry", status=WARNING)
        self.once()
        self.converge()
        self.once(OK)

    def test_no_conductor_answers(self) -> None:
        self.start()
        self.magnum.error = errors.ManagementUnreachable("No magnum-conductor has answered.")
        self.refused("No magnum-conductor has answered.", "run", "patch", "--once")
        self.magnum.error = None
        self.stand_still(self.wall_clock())
        self.after(3)
        self.once()
        self.assertEqual(1, len(self.magnum.requests))

    def test_a_process_that_dies_before_its_request(self) -> None:
        self.start()
        self.magnum.dies = "before"
        self.assertRaises(Killed, self.command, "rollout", "run", "patch", "--once")
        self.magnum.dies = ""
        self.stand_still(self.wall_clock())
        self.once()
        self.assertEqual([], self.magnum.requests, "it may be on its way")
        self.after(3)
        self.once()
        self.converge()
        self.assertEqual(("finished", 1), (self.once(OK)["State"], len(self.magnum.requests)))

    def test_a_process_that_dies_after_its_request(self) -> None:
        self.start()
        self.magnum.dies = "after"
        self.assertRaises(Killed, self.command, "rollout", "run", "patch", "--once")
        self.magnum.dies = ""
        self.once()
        self.converge()
        self.assertEqual(("finished", 1), (self.once(OK)["State"], len(self.magnum.requests)))

    def test_two_processes_at_once_request_once(self) -> None:
        self.start()
        self.magnum.meanwhile = self.once
        self.once()
        self.assertEqual(1, len(self.magnum.requests))

    def test_of_two_that_save_at_once_one_is_told(self) -> None:
        self.start()
        store = RolloutStore(self.periodic())
        first, second = store.read("patch"), store.read("patch")
        store.replace(first, dataclasses.replace(first.rollout, budget=2))
        changed = dataclasses.replace(second.rollout, budget=3)
        self.assertRaises(errors.Conflict, store.replace, second, changed)
        self.assertEqual(2, store.read("patch").rollout.budget)


class TestNotice(RolloutCase):
    def notice(self) -> str:
        self.health_task()
        return str(self.cluster().health_status_reason.get("notice", ""))

    def test_the_tenant_reads_what_is_planned_until_it_is_made(self) -> None:
        self.start("--window", "Sat 22:00-04:00 UTC", "--dry-run")
        self.assertNotIn("planned", self.notice())
        self.start("--window", "00:00-00:00")
        self.assertIn(
            "The cloud's operator has planned an upgrade of this cluster to cluster template "
            "'next', which may begin in the maintenance window 00:00-00:00.",
            self.notice(),
        )
        self.once()
        self.converge()
        owner = ownership.owner(self.cluster(), self.periodic().settings)
        for template, is_planned in ((self.next.uuid, False), ("another", True)):
            upgrade = planned_upgrade.PlannedUpgrade(template, "next")
            planned_upgrade.record_plan(self.ports, owner, upgrade)
            self.assertEqual(is_planned, "planned" in self.notice(), template)
        self.once(OK)
        obj = self.kube.get(names.CLUSTER, NAMESPACE, RELEASE)
        assert obj is not None
        self.assertNotIn(planned_upgrade.ANNOTATION, obj["metadata"].get("annotations") or {})

    def test_it_goes_with_the_rollout(self) -> None:
        self.start()
        self.assertIn("which may begin at any time", self.notice())
        self.rows("pause", "patch", status=WARNING)
        self.rows("delete", "patch", status=WARNING)
        self.assertNotIn("planned", self.notice())

    def test_an_annotation_that_cannot_be_read_is_no_notice(self) -> None:
        for text in ("{", "[]", '{"template": "x"}', "1"):
            with self.subTest(text):
                obj = self.kube.get(names.CLUSTER, NAMESPACE, RELEASE)
                assert obj is not None
                obj["metadata"].setdefault("annotations", {})[planned_upgrade.ANNOTATION] = text
                self.kube.put(names.CLUSTER, obj)
                self.assertNotIn("planned", self.notice())


class TestAct(RolloutCase):
    def test_paused_it_requests_nothing_until_it_is_resumed(self) -> None:
        self.start()
        [row] = self.rows("pause", "patch", status=WARNING)
        self.assertEqual("paused", row["State"])
        self.once()
        self.assertEqual([], self.magnum.requests)
        self.rows("resume", "patch", status=WARNING)
        self.once()
        self.assertEqual(1, len(self.magnum.requests))

    def test_deleted(self) -> None:
        self.start()
        self.refused("it has to be paused or stopped or finished", "delete", "patch")
        self.rows("pause", "patch", status=WARNING)
        self.rows("delete", "patch", status=WARNING)
        self.assertEqual([], self.stored())

    def test_one_that_does_not_exist(self) -> None:
        for verb in ("run", "pause", "resume", "delete", "status"):
            with self.subTest(verb):
                self.refused("There is no such rollout", verb, "other")

    def test_a_state_that_does_not_fit(self) -> None:
        self.start()
        self.refused("it has to be paused or stopped", "resume", "patch")
        self.rows("pause", "patch", status=WARNING)
        self.refused("it has to be running", "pause", "patch")

    def test_a_record_that_cannot_be_read(self) -> None:
        self.start()
        obj = self.kube.get(names.CONFIG_MAP, "magnum-rollouts", "patch")
        assert obj is not None
        for text in ("{", "[]", "{}", '{"format": 2}'):
            with self.subTest(text):
                obj["data"]["rollout.json"] = text
                self.kube.put(names.CONFIG_MAP, obj)
                words = "later version" if "format" in text else "cannot be read"
                self.refused(words, "run", "patch")


class TestRobust(RolloutCase):
    """What an operator meets who was not there when something went wrong."""

    def test_before_the_first_rollout_there_is_none(self) -> None:
        self.kube.unserved.add(names.CONFIG_MAP)  # as without rights in the namespace
        self.assertEqual([], self.rows("status"))
        self.refused("there are: none", "run", "patch")

    def test_a_notice_that_cannot_be_written_is_a_warning_and_stops_nothing(self) -> None:
        def refuse(verb: str, kind: Any, name: str) -> None:
            if verb == "patch" and kind == names.CLUSTER:
                raise errors.NotAllowed("The management cluster refused.", "forbidden")

        self.kube.before = refuse
        printed = self.command("rollout", "start", "patch", "--template", "next")
        self.assertEqual(WARNING, printed.status)
        self.assertIn("has no notice", printed.error)
        self.once()
        self.converge()
        printed = self.command("rollout", "run", "patch")
        self.assertEqual(OK, printed.status)
        self.assertIn("keeps its notice", printed.error)

    def test_a_cluster_is_in_one_rollout_at_a_time(self) -> None:
        self.start()
        self.refused("Rollout 'patch' has cluster 'demo'", "start", "more", "--template", "next")
        self.rows("pause", "patch", status=WARNING)
        self.rows("delete", "patch", status=WARNING)
        self.rows("start", "more", "--template", "next")

    def test_one_that_cannot_be_read_hides_no_other(self) -> None:
        self.start()
        obj = self.kube.get(names.CONFIG_MAP, "magnum-rollouts", "patch")
        assert obj is not None
        broken = {**obj, "metadata": {**obj["metadata"], "name": "broken"}, "data": {}}
        self.kube.put(names.CONFIG_MAP, broken)
        first, second = self.rows("status", status=CRITICAL)
        self.assertEqual(("patch", "running"), (first["Name"], first["State"]))
        self.assertEqual(("broken", "unreadable"), (second["Name"], second["State"]))

    def test_a_cluster_that_was_left_out_is_no_success(self) -> None:
        self.start()
        cluster = self.cluster()
        cluster.status = "UPDATE_FAILED"
        cluster.save()
        row = self.once(WARNING)
        self.assertEqual(("finished", 1), (row["State"], row["Skipped"]))

    def test_services_that_are_away_are_waited_for(self) -> None:
        self.start()
        self.once()
        faults: list[Exception] = [
            errors.ManagementUnreachable("The management cluster does not answer."),
            db_exception.DBConnectionError(),
        ]

        def pause(seconds: float) -> None:
            if faults:
                self.problem = faults.pop()
                return
            self.problem = None
            self.converge()

        self.ports = dataclasses.replace(self.ports, pause=pause)
        printed = self.command("rollout", "run", "patch")
        self.assertEqual(OK, printed.status, printed.error)
        self.assertIn("ManagementUnreachable: The management cluster", printed.error)
        self.assertIn("DBConnectionError", printed.error)

    def test_progress_is_said(self) -> None:
        self.start()
        printed = self.command("rollout", "run", "patch", "--once")
        self.assertRegex(printed.error, r"\d\d:\d\d:\d\d cluster demo is requested\n")


class TestManyClusters(RolloutCase):
    """A fleet costs as many requests and queries as a cluster, until something is changed."""

    def cost(self, *argv: str, status: int) -> tuple[int, int]:
        selects = self.selects()
        self.kube.calls.clear()
        self.rows(*argv, status=status)
        return len(selects), len(self.kube.calls)

    def test_sixty_cost_what_one_does(self) -> None:
        self.cloud.images["ubuntu-kube-1.34.9"] = ("image-3", "1.34.9")
        self._template(
            uuid="31111111-2222-4333-8444-555555555555",
            name="newer",
            image_id="ubuntu-kube-1.34.9",
            public=True,
        )
        for number in range(59):
            self.copy_row(number)
        now = self.wall_clock()
        self.stand_still(now)
        closed = f"{(now.hour + 2) % 24:02}:00-{(now.hour + 3) % 24:02}:00"
        self.start("--cluster", "demo", "--window", closed, "--waves", "1,10%")
        asked = (
            (("status",), WARNING),
            (("status", "patch"), WARNING),
            (("run", "patch", "--once"), WARNING),
        )
        one = [self.cost(*argv, status=status) for argv, status in asked]
        self.rows("pause", "patch", status=WARNING)
        self.rows("delete", "patch", status=WARNING)
        self.start("--window", closed, "--waves", "1,10%")
        self.assertEqual(60, len(self.rows("status", "patch", status=WARNING)))
        self.assertEqual(one, [self.cost(*argv, status=status) for argv, status in asked])
        self.rows("pause", "patch", status=WARNING)
        self.rows("delete", "patch", status=WARNING)
        argv = ("patch", "--window", closed, "--dry-run")
        # Other projects of the cloud do not see the image.
        self.assertEqual(40, len(self.rows(*argv, status=WARNING)))
        few, _ = self.cost(*argv, "--project", "p1", status=WARNING)
        many, requests = self.cost(*argv, status=WARNING)
        self.assertEqual((few, 2), (many, requests))
