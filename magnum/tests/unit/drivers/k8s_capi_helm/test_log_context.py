# SPDX-License-Identifier: Apache-2.0
"""Log lines have cluster, operation and request id, with oslo.log's own formatters."""

from __future__ import annotations

import functools
import importlib
import logging
import pkgutil
import threading
from typing import Any

from oslo_context import context as oslo_context
from oslo_log import log
from oslo_utils import uuidutils

from magnum import objects
from magnum.common import context as magnum_context
from magnum.drivers import k8s_capi_helm
from magnum.drivers.k8s_capi_helm import errors, lease
from magnum.drivers.k8s_capi_helm.handlers.entry import log_context
from magnum.drivers.k8s_capi_helm.handlers.tasks import failed_clusters, watch_trigger
from magnum.drivers.k8s_capi_helm.lease import codec, pending_operations
from magnum.drivers.k8s_capi_helm.model import log_scope, names, Operation, Verb
from magnum.tests.unit.drivers.k8s_capi_helm import builders, driver_case
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one
from magnum.tests.unit.drivers.k8s_capi_helm.log_lines import LogLines, PACKAGE
from magnum.tests.unit.drivers.k8s_capi_helm.magnum_release import credential_conductor
from magnum.tests.unit.drivers.k8s_capi_helm.turns import Turns

UUID = "99999999-8888-4777-8666-555555555555"
OTHER, OTHER_RELEASE = "88888888-7777-4666-8555-444444444444", "other-mnopqrstuvwx"
TOKEN = "gAAAAA-a-token-of-a-tenant"  # noqa: S105


def new_id() -> str:
    """An id of a request, as Magnum's API makes one."""
    return str(oslo_context.generate_request_id())


class LogCase(driver_case.DriverCase):
    def setUp(self) -> None:
        super().setUp()
        self.lines = self.useFixture(LogLines())
        self.context.auth_token = TOKEN
        self.context.auth_token_info = {"token": {"id": TOKEN}}

    def periodic_context(self) -> Any:
        """What Magnum's periodic tasks give their jobs; the job's thread has no context."""
        magnum_context.set_ctx(magnum_context.make_admin_context(all_tenants=True))
        admin = magnum_context.ctx()
        magnum_context.set_ctx(None)
        return admin

    def pass_by(self, *, is_health: bool = False) -> None:
        """A periodic task, in a thread without a context, as Magnum makes it."""
        user, self.context = self.context, self.periodic_context()
        try:
            (self.health_task if is_health else self.status_task)()
        finally:
            self.context = user

    def assert_about(self, operation: str) -> None:
        """All lines so far are about one operation of the cluster."""
        for text, document in zip(
            at_least_one(self.lines.texts), self.lines.documents, strict=True
        ):
            self.assertIn(f"[cluster: {UUID} {operation}] ", text)
            found = document["context"]
            self.assertEqual((UUID, operation), (found["cluster_uuid"], found["operation"]), text)
            self.assertEqual(UUID, found["resource_uuid"])
            self.assertEqual("demo", found["cluster_name"])


class TestVerbs(LogCase):
    def test_lines_of_a_request_have_its_id_to_the_end(self) -> None:
        """Although the driver, and Magnum, make contexts of an administrator meanwhile."""
        self.context.request_id = new_id()
        self.create()
        self.assert_about("create_cluster")
        for text, document in zip(self.lines.texts, self.lines.documents, strict=True):
            self.assertIn(f" {self.context.request_id} ", text)
            self.assertEqual(self.context.request_id, document["context"]["request_id"])

    def test_each_verb_says_which_it_is(self) -> None:
        self.made(workers=2)
        self.kube.unreachable = True
        newer = self._template(uuid=uuidutils.generate_uuid(), name="newer")
        for operation, call in (
            ("resize_cluster", lambda: self.resize(1)),
            ("upgrade_cluster", lambda: self.upgrade(newer)),
            ("create_nodegroup", lambda: self.add_group("more")),
            ("update_nodegroup", lambda: self.change_group(max_node_count=3)),
            ("delete_nodegroup", lambda: self.drop_group("default-worker")),
            ("delete_cluster", self.delete),
        ):
            cluster = self.cluster()
            cluster.status = "UPDATE_COMPLETE"
            cluster.save()
            self.lines.clear()
            call()
            self.assert_about(operation)

    def test_a_rotation_says_so(self) -> None:
        self.made()
        self.kube.unreachable = True
        self.lines.clear()
        self.quietly(credential_conductor.Handler().credential_rotate, self.context, self.cluster())
        self.assert_about("rotate_credential")

    def test_the_thread_has_its_own_context_again(self) -> None:
        """Else lines of Magnum after a request had the id of the driver's administrator."""
        self.context.update_store()
        self.made()
        self.resize(2)
        self.assertIs(self.context, oslo_context.get_current())
        self.assertIsNone(log_scope.current())

    def test_a_thread_without_a_context_has_none_again(self) -> None:
        self.made()
        self.resize(2)
        self.pass_by()
        self.assertIsNone(oslo_context.get_current())

    def test_lines_of_libraries_are_about_the_cluster(self) -> None:
        library = log.getLogger("keystoneauth.session")

        def ask(*_call: Any) -> None:
            log_context.make_admin_context()
            library.debug("a request")

        self.made()
        self.kube.before = ask
        self.resize(2)
        found = [one for one in self.lines.others if " keystoneauth.session " in one]
        for text in at_least_one(found):
            self.assertIn(f"[instance: {UUID}] ", text)
            self.assertIn(f" {self.context.request_id} ", text)

    def test_no_secret(self) -> None:
        self.create()
        self.pass_by()
        known = (TOKEN, driver_case.SECRET_TEXT)
        lines = [*self.lines.texts, *map(str, self.lines.documents), *self.lines.others]
        for line in at_least_one(lines):
            self.assertEqual([], [one for one in known if one in line])

    def test_a_custom_format_may_name_the_fields(self) -> None:
        """What %(resource)s and the like need: each value stands on the record of the line."""
        self.create()
        scope = log_context.LogContext(self.cluster(), "create_cluster", self.context)
        values = scope.get_logging_values()
        self.assertEqual(("demo", "create_cluster"), (values["cluster_name"], values["operation"]))
        self.assertEqual("***", values["auth_token"])


class TestPasses(LogCase):
    def test_the_status_task(self) -> None:
        self.create()
        self.lines.clear()
        self.kube.unreachable = True
        self.pass_by()
        self.assert_about("status_task")

    def test_the_health_task(self) -> None:
        self.made()
        self.kube.unreachable = True
        self.lines.clear()
        self.health_task()
        self.assert_about("health_task")

    def test_an_unexpected_error_of_the_health_task(self) -> None:
        self.made()

        def stumble(*_call: Any) -> None:
            raise ZeroDivisionError

        self.kube.before = stumble
        self.lines.clear()
        self.health_task()
        self.assert_about("health_task")
        self.assertIn("ZeroDivisionError", "".join(self.lines.texts))

    def test_a_watch_event(self) -> None:
        self.create()
        self.lines.clear()
        self.kube.unreachable = True
        watch_trigger.sync(self.ports, driver_case.CONF, RELEASE)
        self.assert_about("watch_event")

    def test_an_unexpected_error_of_a_watch_event(self) -> None:
        self.create()

        def stumble(*_call: Any) -> None:
            raise ZeroDivisionError

        self.kube.before = stumble
        self.lines.clear()
        watch_trigger.sync(self.ports, driver_case.CONF, RELEASE)
        self.assert_about("watch_event")
        self.assertIn("Traceback", "".join(self.lines.texts))

    def test_the_poll_of_failed_clusters(self) -> None:
        self.made()
        cluster = self.cluster()
        cluster.status = "UPDATE_FAILED"
        cluster.save()
        self.lines.clear()
        self.kube.unreachable = True
        failed_clusters.poll_health(self.periodic_context())
        self.assert_about("health_task")

    def test_a_pass_that_carries_a_request_out_has_its_id(self) -> None:
        """It may run in another conductor, minutes later."""
        self.made()
        self.context.request_id = new_id()
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            self.resize(3)
        self.ports = self.clients_of(
            kube=self.kube,
            leases=lease.ReleaseLeases(self.kube, holder="another", lease_duration=60),
            helm=self.helm,
            charts=self.ports.charts,
        )
        self.driver = self.new_driver()
        self.lines.clear()
        self.pass_by()
        self.assert_about("status_task")
        applied = [text for text in self.lines.texts if "reconcile.release.apply " in text]
        for text in at_least_one(applied):
            self.assertIn(f"[{self.context.request_id} req-", text)
        for document in at_least_one(self.lines.documents[-1:]):
            found = document["context"]
            self.assertEqual(self.context.request_id, found["global_request_id"])
            self.assertNotEqual(self.context.request_id, found["request_id"])

    def test_a_pass_that_carries_nothing_out_has_none(self) -> None:
        self.made()
        self.context.request_id = new_id()
        self.resize(2)
        self.capi_converges()
        self.pass_by()
        self.pass_by()
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.kube.unreachable = True
        self.lines.clear()
        self.pass_by(is_health=True)
        self.assert_about("health_task")
        self.assertNotIn(self.context.request_id, "".join(self.lines.texts))

    def test_several_requests_at_once(self) -> None:
        self.made()
        ids = []
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            for name in ("one", "two"):
                self.context.request_id = new_id()
                ids.append(self.context.request_id)
                self.add_group(name)
        self.lines.clear()
        self.pass_by()
        self.assertIn(",".join(ids), self.lines.texts[-1])


class TestRecord(LogCase):
    def test_a_series_keeps_the_newest_ids(self) -> None:
        first = Operation("resize-1", Verb.RESIZE, builders.NOW, ("a",), request_ids=("req-0",))
        for number in range(1, 7):
            ids = (f"req-{number}",)
            new = Operation("resize-1", Verb.RESIZE, builders.NOW, ("a",), request_ids=ids)
            first = pending_operations.merge_operations(first, new)
            self.assertEqual(first, pending_operations.merge_operations(first, new))
        self.assertEqual(("req-3", "req-4", "req-5", "req-6"), first.request_ids)

    def test_a_forged_id_makes_no_line(self) -> None:
        """Whoever may write Leases may write anything."""
        self.made()
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            self.resize(3)
        forged = "req-1\n2026-01-01 00:00:00.000 1 ERROR magnum [-] All is lost"
        found = self.kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE))
        notes = found["metadata"]["annotations"]
        self.assertIn(self.context.request_id, notes[codec.OPERATIONS])
        packed = forged.replace("\n", "\\n")
        notes[codec.OPERATIONS] = notes[codec.OPERATIONS].replace(self.context.request_id, packed)
        self.kube.put(names.LEASE, found)
        self.lines.clear()
        self.pass_by()
        self.assert_about("status_task")
        self.assertEqual([], [text for text in self.lines.texts if "All is lost" in text])
        self.assertEqual(3, self.group().node_count)


class TestThreads(LogCase):
    def release_of(self, name: str) -> str:
        return {"demo": RELEASE, "other": OTHER_RELEASE}[name]

    def test_lines_of_two_clusters_at_once_do_not_mix(self) -> None:
        ids = {}
        for uuid, name in ((UUID, "demo"), (OTHER, "other")):
            self.context.request_id = ids[uuid] = new_id()
            self.create(uuid=uuid, name=name)
        turns = Turns(1)

        def before(verb: str, kind: names.Kind, name: str) -> None:
            turns.pause(turns.lot.uniform(0.5, 1.5))
            if kind != names.LEASE:
                raise errors.ManagementUnreachable("It does not answer.", f"{verb} {name}")

        self.kube.before = before
        self.lines.clear()
        admin = self.periodic_context()

        def pass_by(uuid: str) -> None:
            self.driver.update_cluster_status(admin, objects.Cluster.get_by_uuid(admin, uuid))

        works = [functools.partial(pass_by, uuid) for uuid in (UUID, OTHER) * 2]
        self.assertEqual([], turns.run((number / 10, work) for number, work in enumerate(works)))
        foreign = {
            UUID: (OTHER, OTHER_RELEASE, ids[OTHER]),
            OTHER: (UUID, f"{RELEASE}:", ids[UUID]),
        }
        order = [one["context"]["cluster_uuid"] for one in self.lines.documents]
        self.assertEqual(set(foreign), set(order))
        self.assertNotIn(order, (sorted(order), sorted(order, reverse=True)), "none has met")
        with_request = set()
        for text, document in zip(self.lines.texts, self.lines.documents, strict=True):
            uuid = document["context"]["cluster_uuid"]
            self.assertIn(f"[cluster: {uuid} status_task] ", text)
            self.assertEqual([], [one for one in foreign[uuid] if one in text])
            if ids[uuid] in text:
                with_request.add(uuid)
        self.assertEqual(set(foreign), with_request)
        threads = {(one["thread"], one["context"]["cluster_uuid"]) for one in self.lines.documents}
        self.assertEqual(len(threads), len({thread for thread, _ in threads}))


class TestRenewal(LogCase):
    def test_the_thread_that_renews_a_lock_is_about_the_operation(self) -> None:
        self.made()
        cluster, failed = self.cluster(), threading.Event()

        class Waiter(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                if record.threadName == f"lease-{RELEASE}":
                    failed.set()

        handler, root = Waiter(), logging.getLogger()
        root.addHandler(handler)  # after the one that collects the lines
        self.addCleanup(root.removeHandler, handler)
        leases = lease.ReleaseLeases(self.kube, holder="test", lease_duration=1)
        self.lines.clear()
        with log_context.log_about(cluster, "resize_cluster", self.context):
            with leases.acquire(NAMESPACE, RELEASE, wait=0):
                self.kube.unreachable = True
                self.assertTrue(failed.wait(30))
                self.kube.unreachable = False
        self.assert_about("resize_cluster")
        for document in self.lines.documents:
            self.assertEqual(self.context.request_id, document["context"]["request_id"])
        names_of_threads = {one["thread_name"] for one in self.lines.documents}
        self.assertIn(f"lease-{RELEASE}", names_of_threads)


class TestModules(driver_case.DriverCase):
    def test_every_logger_of_the_driver_is_included(self) -> None:
        """A module that is imported only when it is needed would be left out."""
        found = []
        for module in pkgutil.walk_packages(k8s_capi_helm.__path__, f"{k8s_capi_helm.__name__}."):
            logger = getattr(importlib.import_module(module.name), "LOG", None)
            if isinstance(logger, log.KeywordArgumentAdapter):
                found.append(logger.logger)
        rooms = {one.name.removeprefix(f"{PACKAGE}.") for one in found if not one.filters}
        only_of_commands = {
            "reconcile.deletion.forced_deletion",
            "reconcile.ownership.moved_release",
        }
        self.assertEqual(set(), rooms - only_of_commands)
        # As the command does, which has loaded all of them by then.
        log_context.enable_log_context.__wrapped__()
        self.assertEqual([], [one.name for one in at_least_one(found) if not one.filters])

    def test_a_line_outside_of_all_requests_is_as_it_was(self) -> None:
        lines = self.useFixture(LogLines())
        watch_trigger.LOG.info("nothing in particular")
        [text] = lines.texts
        self.assertNotIn("cluster:", text)
