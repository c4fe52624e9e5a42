# SPDX-License-Identifier: Apache-2.0
"""The command's requests reach a conductor where Magnum's services listen, and no other place."""

from __future__ import annotations

from typing import Any

import fixtures
import oslo_messaging
from oslo_messaging import conffixture

from magnum.common import exception, rpc
from magnum.drivers.k8s_capi_helm import errors
from magnum.objects import base as objects_base
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import CONF, DriverCase
from magnum_k8s_capi_helm.conductor import MagnumConductor


class Listener:
    """A conductor's end of the message bus.

    :ivar requests: cluster and template of each upgrade.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self.error: Exception | None = None

    def cluster_upgrade(
        self, context: Any, cluster: Any, cluster_template: Any, **more: Any
    ) -> None:
        if self.error:
            raise self.error
        self.requests.append((cluster.uuid, cluster_template.uuid))


class TestMessageBus(DriverCase):
    def setUp(self) -> None:
        super().setUp()
        self.made()
        bus = self.useFixture(conffixture.ConfFixture(CONF))
        bus.transport_url = "fake:/"
        self.addCleanup(CONF.clear_override, "rpc_response_timeout")
        for name in ("TRANSPORT", "NOTIFIER"):
            self.useFixture(fixtures.MonkeyPatch(f"magnum.common.rpc.{name}", None))
        self.listener = Listener()

    def listen(self, exchange: str) -> None:
        target = oslo_messaging.Target(
            exchange=exchange, topic=CONF.conductor.topic, server="a-conductor", version="1.1"
        )
        transport = oslo_messaging.get_rpc_transport(CONF)
        serializer = rpc.RequestContextSerializer(objects_base.MagnumObjectSerializer())
        server = oslo_messaging.get_rpc_server(
            transport, target, [self.listener], executor="threading", serializer=serializer
        )
        server.start()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)

    def request(self) -> None:
        MagnumConductor().request_upgrade(self.cluster().uuid, self.template.uuid, 1)

    def test_it_reaches_a_conductor(self) -> None:
        self.listen("magnum")
        self.request()
        self.assertEqual([(self.cluster().uuid, self.template.uuid)], self.listener.requests)

    def test_a_refusal(self) -> None:
        self.listen("magnum")
        self.listener.error = exception.NotSupported("The image skips a minor release.")
        error = self.assertRaises(errors.InvalidRequest, self.request)
        self.assertIn("The image skips a minor release.", str(error))

    def test_nobody_answers(self) -> None:
        self.listen("openstack")
        CONF.set_override("rpc_response_timeout", 1)
        error = self.assertRaises(errors.ManagementUnreachable, self.request)
        self.assertIn("It may have begun all the same.", str(error))
        self.assertEqual("MessagingTimeout", error.detail)
