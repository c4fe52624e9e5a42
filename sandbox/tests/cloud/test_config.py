# SPDX-License-Identifier: Apache-2.0
"""The files of the services: complete, private, and of this very sandbox."""

import configparser
import stat

from sandbox.cloud.conductor_layout import Layout
from sandbox.cloud.config import compute_node_id, Configuration, Paths
from sandbox.cloud.ini import ini, merged, write_private
from sandbox.cloud.services import COMPUTE_HOSTS, SERVICES
from sandbox.tests.test_state import StateCase

PASSWORD = "a$b"  # noqa: S105


class TestConfiguration(StateCase):
    def setUp(self) -> None:
        super().setUp()
        self.box = self.sandbox()
        self.configuration = self.configure(Layout())

    def configure(self, layout: Layout) -> Configuration:
        configuration = Configuration(
            state=self.box,
            password=PASSWORD,
            barbican_key="key",
            certificates="x509keypair",
            kubeconfig=self.box.path("management", "driver.kubeconfig"),
            layout=layout,
        )
        configuration.write()
        return configuration

    def read(self, name: str) -> configparser.RawConfigParser:
        parser = configparser.RawConfigParser(strict=True)
        parser.read(Paths.of(self.box).conf(name))
        return parser

    def test_every_service_has_a_file_that_only_its_owner_reads(self) -> None:
        for name in SERVICES:
            mode = Paths.of(self.box).conf(name).stat().st_mode
            self.assertEqual(0o600, stat.S_IMODE(mode), name)

    def test_every_service_has_a_database_of_its_own(self) -> None:
        section = {"placement": "placement_database"}
        urls = {self.read(name)[section.get(name, "database")]["connection"] for name in SERVICES}
        self.assertEqual(len(SERVICES), len(urls))
        self.assertTrue(all(str(self.box.root) in url for url in urls))

    def test_every_service_asks_this_sandboxs_keystone(self) -> None:
        wanted = f"http://127.0.0.1:{self.box.port('keystone')}/v3"
        for name in SERVICES:
            if name != "keystone":
                self.assertEqual(wanted, self.read(name)["keystone_authtoken"]["auth_url"])

    def test_a_dollar_in_a_password_is_not_expanded(self) -> None:
        self.assertEqual("a$$b", self.read("nova")["keystone_authtoken"]["password"])

    def test_without_a_broker_all_stays_in_the_process(self) -> None:
        transports = {self.read(name)["DEFAULT"]["transport_url"] for name in SERVICES}
        self.assertEqual({"fake://"}, transports)

    def test_behind_a_broker_each_worker_has_a_name_of_its_own(self) -> None:
        layout = Layout("rabbit", conductors=2, workers=3)
        self.configure(layout)
        magnum = self.read("magnum")
        self.assertEqual(
            f"rabbit://sandbox:a%24b@127.0.0.1:{self.box.port('rabbitmq')}/",
            magnum["DEFAULT"]["transport_url"],
        )
        self.assertEqual("fake://", self.read("nova")["DEFAULT"]["transport_url"])
        drivers = [
            self.read(name)["oslo_messaging_notifications"]["driver"] for name in ("magnum", "nova")
        ]
        self.assertEqual(["messagingv2", "noop"], drivers)
        workers = [worker for name in layout.names for worker in layout.workers_of(name)]
        own = [self.read(worker)["DEFAULT"] for worker in workers]
        self.assertEqual(6, len({options["host"] for options in own}))
        periodic = [options["host"] for options in own if options["periodic_enable"] == "True"]
        self.assertEqual(["magnum-conductor-1", "magnum-conductor-2"], periodic)

    def test_magnum_gets_its_options(self) -> None:
        magnum = self.read("magnum")
        self.assertEqual("x509keypair", magnum["certificates"]["cert_manager_type"])
        self.assertEqual(
            str(self.box.root / "management" / "driver.kubeconfig"),
            magnum["capi_helm"]["kubeconfig_file"],
        )

    def test_the_first_compute_host_finds_its_node(self) -> None:
        host = self.read("nova")["DEFAULT"]["host"]
        node = Paths.of(self.box).scratch / "nova" / "compute_id"
        self.assertEqual(compute_node_id(host), node.read_text())
        self.assertEqual(3, len({compute_node_id(host) for host in COMPUTE_HOSTS.values()}))

    def test_secrets_do_not_show_in_its_text(self) -> None:
        self.assertNotIn(PASSWORD, repr(self.configuration))


class TestText(StateCase):
    def test_the_second_wins_option_by_option(self) -> None:
        self.assertEqual(
            {"a": {"x": 2, "y": 1}, "b": {"z": 3}},
            merged({"a": {"x": 1, "y": 1}}, {"a": {"x": 2}, "b": {"z": 3}}),
        )

    def test_sections_and_options(self) -> None:
        self.assertEqual("[a]\nx = 1\n\n[b]\n", ini({"a": {"x": 1}, "b": {}}))

    def test_a_file_that_was_open_to_all_is_closed(self) -> None:
        path = self.sandbox().path("file")
        path.write_text("old")
        path.chmod(0o644)
        write_private(path, "new")
        self.assertEqual((0o600, "new"), (stat.S_IMODE(path.stat().st_mode), path.read_text()))
