# SPDX-License-Identifier: Apache-2.0
"""A cluster that is deleted while the request to create it is being carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

from magnum import objects
from magnum.common import exception
from magnum.conductor.handlers.common import cert_manager
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase


class TestTakenBack(DriverCase):
    """Magnum lets that through at any time; what was accepted last is carried out."""

    def delete_and_go(self) -> None:
        self.delete()
        self.status_task()

    def make(self, call: Callable[[], Any]) -> None:
        """Create it, and do that at another worker when the cloud is asked for the first time."""
        quotas = self.cloud.quotas

        def asked(*args: Any) -> Any:
            self.cloud.quotas = quotas
            call()
            return quotas(*args)

        self.cloud.quotas = asked
        self.try_to_create()

    def try_to_create(self) -> None:
        try:
            self.create()
        except exception.ClusterNotFound:
            self.assertEqual([], objects.Cluster.list(self.context), "its row has gone")

    def when(self, verb: str, kind: names.Kind, call: Callable[[], Any]) -> None:
        """Have another worker do that just before the management cluster is asked for that."""

        def before(asked: str, about: names.Kind, name: str) -> None:
            if (asked, about) == (verb, kind):
                self.kube.before = None
                call()

        self.kube.before = before

    def check_gone(self) -> None:
        for _ in range(3):
            self.health_task()
            self.status_task(2)
            self.capi_deletes()
        self.assertEqual([], objects.Cluster.list(self.context))
        self.assertEqual([], self.left())
        self.assertEqual({}, self.cloud.credentials)
        self.assertEqual({}, self.cloud.openstack.ids())
        self.assertEqual([], objects.X509KeyPair.list(self.context))

    def test_it_goes_although_it_is_refused(self) -> None:
        def call() -> None:
            self.delete()
            raise errors.CloudRefused("There is no such flavor.")

        self.make(call)
        self.check_gone()

    def test_it_goes_although_its_refusal_was_written_over_that(self) -> None:
        self.make(self.delete)
        cluster = self.cluster()
        cluster.status = "CREATE_FAILED"
        cluster.save()
        self.check_gone()

    def test_it_goes_although_helm_refuses_it_and_nobody_could_write_that_down(self) -> None:
        def refuses(values: Any) -> errors.DriverError:
            self.helm.refuses = lambda values: None
            self.kube.unreachable = True
            self.delete()
            self.kube.unreachable = False
            return errors.HelmRefused("no")

        self.helm.refuses = refuses
        self.create()
        self.check_gone()

    def test_its_lease_goes_when_its_row_has_gone(self) -> None:
        self.make(self.delete_and_go)
        self.check_gone()

    def test_nothing_is_made_for_it_any_more(self) -> None:
        self.when("create", names.LEASE, self.delete)
        self.try_to_create()
        self.assertEqual((None, {}), (self.cluster().stack_id, self.cloud.credentials))
        self.assertEqual(([], []), (self.left(), self.helm.runs))
        self.check_gone()

    def test_what_was_made_by_then_goes(self) -> None:
        self.when("apply", names.SECRET, self.delete_and_go)
        self.try_to_create()
        self.check_gone()

    def test_its_certificates_go_when_its_row_has_gone_before_they_are_known(self) -> None:
        generate = cert_manager.generate_certificates_to_cluster

        def slowly(cluster: Any, context: Any) -> None:
            self.delete_and_go()
            generate(cluster, context=context)

        where = "generate_certificates_to_cluster"
        with mock.patch.object(cert_manager, where, slowly):
            self.try_to_create()
        self.check_gone()
