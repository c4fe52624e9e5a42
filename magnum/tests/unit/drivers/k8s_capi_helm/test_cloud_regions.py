# SPDX-License-Identifier: Apache-2.0
"""One region and one interface for a cluster, as the operator's options say, and never a guess.

The catalogue has a second region, in which nobody answers, before the cloud's own.
"""

from __future__ import annotations

import itertools
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.tests.unit.drivers.k8s_capi_helm import test_cloud

ABROAD, HOME = "abroad", "Région-Zürich"
CLIENTS = ("nova", "neutron", "cinder", "octavia")


class RegionCase(test_cloud.CloudCase):
    def setUp(self) -> None:
        super().setUp()
        self.openstack.home = HOME
        self.openstack.regions = (ABROAD, HOME)
        self.again()

    def again(self) -> None:
        """The next request, which has a token and a catalogue of its own."""
        self.cloud = test_cloud.cloud.Cloud(
            test_cloud.cloud.Services(self.openstack.clients(self.context))
        )

    def choose(self, **regions: str | None) -> None:
        for client, region in regions.items():
            self.config(group=f"{client}_client", region_name=region)

    def asks_all(self) -> Any:
        """Everything that a create asks for, and its credential."""
        facts = self.cloud.facts(test_cloud.request(keypair="mine"), new=True)
        self.assertEqual((), facts.refusals)
        self.cloud.create_credential("u1", "magnum-x", "for x", ["member"])
        return facts

    def refusal(self) -> errors.InvalidConfiguration:
        error: errors.InvalidConfiguration = self.assertRaises(
            errors.InvalidConfiguration, self.cloud.facts, test_cloud.request()
        )
        self.assertIn("Ask its operator", str(error))
        self.assertEqual([], self.openstack.asked)
        return error


class TestRegion(RegionCase):
    def test_whichever_option_names_it(self) -> None:
        """One is enough, and services whose own option says nothing are asked there, too."""
        for number in (1, 4):
            for chosen in itertools.combinations(CLIENTS, number):
                self.choose(**dict.fromkeys(CLIENTS, None))
                self.choose(**dict.fromkeys(chosen, HOME))
                self.again()
                facts = self.asks_all()
                self.assertEqual("http://cloud.example/identity/v3", facts.auth_url)
                self.assertEqual(HOME, self.cloud.region())

    def test_the_only_one_of_the_catalogue_needs_no_option(self) -> None:
        self.openstack.regions = (HOME,)
        self.again()
        self.asks_all()
        self.assertEqual(HOME, self.cloud.region())

    def test_several_without_an_option_are_refused(self) -> None:
        detail = self.refusal().detail
        for word in (ABROAD, HOME, "[nova_client] region_name"):
            self.assertIn(word, detail)

    def test_options_that_contradict_each_other_are_refused(self) -> None:
        for one, other in itertools.permutations(CLIENTS, 2):
            self.choose(**dict.fromkeys(CLIENTS, None))
            self.choose(**{one: HOME, other: ABROAD})
            self.again()
            detail = self.refusal().detail
            for word in (f"[{one}_client] region_name is {HOME}", f"[{other}_client]", ABROAD):
                self.assertIn(word, detail)

    def test_one_that_the_catalogue_does_not_have_is_refused(self) -> None:
        self.choose(nova="Atlantis")
        detail = self.refusal().detail
        for word in ("[nova_client] region_name is Atlantis", ABROAD, HOME):
            self.assertIn(word, detail)

    def test_images_may_be_in_another_one(self) -> None:
        """Machines name them by id, so Magnum alone asks for them."""
        self.openstack.only_in = {"image": ("shared",)}
        self.openstack.regions = ("shared", HOME)
        self.choose(nova=HOME, glance="shared")
        self.again()
        error = self.assertRaises(errors.CloudUnreachable, self.cloud.facts, test_cloud.request())
        self.assertIn("Glance", str(error))

    def test_images_of_one_region_for_all_need_no_option(self) -> None:
        """A cloud with one Glance worked before there was one region for a cluster."""
        self.openstack.only_in = {"image": ("shared",)}
        self.openstack.regions = ("shared", HOME)
        self.choose(nova=HOME)
        self.again()
        error = self.assertRaises(errors.CloudUnreachable, self.cloud.facts, test_cloud.request())
        self.assertIn("Glance", str(error))  # which was asked, where nobody answers

    def test_load_balancers_of_another_one_alone_are_not_none(self) -> None:
        """What they have of a cluster cannot be told: it is not that there are none."""
        self.openstack.only_in = {"load-balancer": (ABROAD,)}
        self.choose(nova=HOME)
        self.again()
        error = self.assertRaises(
            errors.CloudRefused, self.cloud.is_balancer_failed, "lb", "project-1"
        )
        self.assertNotIsInstance(error, errors.EndpointNotFound)
        self.assertIn(ABROAD, error.detail)

    def test_keystone_may_be_in_another_one(self) -> None:
        """It is often one for all regions."""
        self.openstack.only_in = {"identity": (ABROAD,)}
        self.choose(nova=HOME)
        self.again()
        self.assertEqual("http://public.abroad.invalid/identity/v3", self.cloud.auth_url("public"))

    def test_two_other_keystones_are_refused(self) -> None:
        self.openstack.regions = (ABROAD, "shared", HOME)
        self.openstack.only_in = {"identity": (ABROAD, "shared")}
        self.choose(nova=HOME)
        self.again()
        error = self.assertRaises(
            errors.InvalidConfiguration, self.cloud.facts, test_cloud.request()
        )
        for word in (ABROAD, "shared", HOME, "identity"):
            self.assertIn(word, error.detail)


class TestInterface(RegionCase):
    def setUp(self) -> None:
        super().setUp()
        self.choose(nova=HOME)

    def test_endpoints_that_resolve_inside_alone(self) -> None:
        """Magnum asks a service on the interface of its option, Keystone where it logs in."""
        self.openstack.closed = {"public", "admin"}
        for client in (*CLIENTS, "glance"):
            self.config(group=f"{client}_client", endpoint_type="internalURL")
        self.again()
        self.asks_all()

    def test_one_service_on_another_interface(self) -> None:
        self.openstack.closed = {"internal"}
        self.config(group="cinder_client", endpoint_type="internalURL")
        self.again()
        error = self.assertRaises(errors.CloudUnreachable, self.cloud.facts, test_cloud.request())
        self.assertIn("Cinder", str(error))

    def test_clusters_use_another_interface_than_magnum(self) -> None:
        """What they use need not resolve here."""
        self.openstack.closed = {"internal"}
        self.again()
        wanted = f"http://internal.{HOME}.invalid/identity/v3"
        self.assertEqual(wanted, self.cloud.auth_url("internal"))

    def test_an_interface_that_the_catalogue_does_not_have(self) -> None:
        self.openstack.absent = {"identity"}
        self.again()
        error = self.assertRaises(errors.InvalidConfiguration, self.cloud.auth_url, "internal")
        self.assertEqual(
            "[capi_helm] app_cred_interface_type is internal, and the catalogue has no identity "
            "endpoint on that interface",
            error.detail,
        )
