# SPDX-License-Identifier: Apache-2.0
"""One cloud, real services, four regions, and what clusters and the driver itself use of them.

The services are the sandbox's; the catalogue of its Keystone has three more regions: one in which
no name resolves, one whose public endpoints are behind TLS of the cloud's own authority, and one
that can be reached from inside alone. No management cluster is needed.
"""

from __future__ import annotations

import base64
import contextlib
import os
from pathlib import Path
import shutil
import tempfile
from typing import Any
import unittest

import openstack
import yaml

from magnum.common import context as magnum_context
import magnum.conf
from magnum.drivers.k8s_capi_helm import conf, errors, labels
from magnum.drivers.k8s_capi_helm.model import (
    clock,
    ClusterRequest,
    CredentialRoles,
    names,
    NodeGroupRequest,
    secrets,
)
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.process import clients
from magnum.drivers.k8s_capi_helm.reconcile.release import prerequisites
from magnum.tests.functional.k8s_capi_helm.regions import tls
from magnum.tests.unit.drivers.k8s_capi_helm import fakes
from sandbox import cloud, processes
from sandbox.cloud import seed
from sandbox.cloud.config import Paths
from sandbox.cloud.services import REGION, SERVICES
from sandbox.state import State

CONF = magnum.conf.CONF
ABROAD, GUARDED, INSIDE = "abroad", "Région-TLS", "inside"
CLIENTS = ("nova", "neutron", "cinder", "octavia")
_ROLES = ("member", "reader")


class Site:
    """The cloud, once for all tests of this process."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.box = State(Path(os.environ.get("SANDBOX_DIR") or self.folder / "box"))
        # What an earlier run has left in the catalogue is no part of this one.
        cloud.erase(self.box)
        cloud.up(self.box, "x509keypair")
        self.authority, served = tls.authority(self.folder)
        self.fronts = {
            name: tls.Front(served, self.box.port(name))
            for name in SERVICES
            if name not in ("magnum", "barbican")
        }
        self._open()
        conf.register_opts(CONF)
        CONF(["--config-file", str(Paths.of(self.box).conf("magnum"))], project="magnum")

    def close(self) -> None:
        for front in self.fronts.values():
            front.close()
        cloud.down(self.box)
        processes.stop_all(self.box)
        shutil.rmtree(self.folder)

    def _open(self) -> None:
        identity = seed.connect(self.box, "admin").identity
        known = {one.name: one.id for one in identity.services()}
        for region in (ABROAD, GUARDED, INSIDE):
            identity.create_region(id=region)
            for name in self.fronts:
                for interface in ("public", "internal", "admin"):
                    identity.create_endpoint(
                        service_id=known[name],
                        interface=interface,
                        url=self._url(name, region, interface),
                        region_id=region,
                    )

    def _url(self, name: str, region: str, interface: str) -> str:
        path = SERVICES[name].path
        if (region, interface) == (GUARDED, "public"):
            return f"https://127.0.0.1:{self.fronts[name].port}{path}"
        if (region, interface) == (INSIDE, "internal"):
            return SERVICES[name].endpoint(self.box)
        return f"http://{interface}.{name}.invalid{path}"


_site: list[Site] = []


def setUpModule() -> None:
    _site.append(Site())


def tearDownModule() -> None:
    _site.pop().close()


class RegionCase(unittest.TestCase):
    def setUp(self) -> None:
        self.site = _site[0]
        self.tenant = seed.connect(self.site.box, seed.TENANT)
        self.addCleanup(CONF.clear_override, "cafile", "keystone_auth")
        self.choose(None)

    def choose(self, region: str | None, interface: str = "public", **drivers: Any) -> None:
        """Configure Magnum for a region."""
        for client in (*CLIENTS, "glance"):
            self.option(f"{client}_client", "region_name", None)
            self.option(f"{client}_client", "endpoint_type", f"{interface}URL")
        self.option("nova_client", "region_name", region)
        self.option("capi_helm", "app_cred_interface_type", interface)
        for key, value in drivers.items():
            self.option("drivers", key, value)

    def option(self, group: str, name: str, value: Any) -> None:
        CONF.set_override(name, value, group)
        self.addCleanup(CONF.clear_override, name, group)

    def cloud(self) -> Any:
        """The port of the driver, as the tenant who asks."""
        access = self.tenant.session.auth.get_access(self.tenant.session)
        context = magnum_context.RequestContext(
            auth_token=access.auth_token,
            auth_token_info=access._data,
            user_id=access.user_id,
            project_id=access.project_id,
            is_admin=False,
        )
        return clients.openstack(context)

    def request(self) -> ClusterRequest:
        project = self.tenant.current_project_id
        group = NodeGroupRequest("default-worker", next(iter(seed.FLAVORS)), 1)
        return ClusterRequest(
            uuid="c1",
            name="demo",
            release="demo-abcdefghijkl",
            namespace=f"magnum-{project}",
            project_id=project,
            user_id=self.tenant.current_user_id,
            labels=labels.parse({"boot_volume_size": "20"}, {}),
            control_plane=NodeGroupRequest("default-master", next(iter(seed.FLAVORS)), 1),
            node_groups=(group,),
            image=next(iter(seed.IMAGES)),
            external_network="public",
        )

    def asks_all(self) -> Any:
        """All that a create asks of the services."""
        facts = self.cloud().facts(self.request(), interface=CONF.capi_helm.app_cred_interface_type)
        self.assertEqual((), facts.refusals)
        self.assertTrue(facts.image_id and facts.flavors and facts.volume_types, facts)
        return facts

    def saved(self) -> dict[str, str]:
        """The texts of the Secret that a create writes, with a real application credential."""
        kube, request = fakes.FakeKube(), self.request()
        kube.put(names.NAMESPACE, {"metadata": {"name": request.namespace}})
        clients: Any = _Ports(kube)
        hold: Any = _Hold()
        interface = CONF.capi_helm.app_cred_interface_type
        port = self.cloud()
        run = Reconciliation(clients, CONF, lambda: port, clock.utc_now())
        new = prerequisites.NewCredential(
            f"magnum-{self.id()[-40:]}", port.auth_url(interface), CredentialRoles(_ROLES, None)
        )
        prerequisites.save_credentials(run, hold, secrets.Owner.of(request), new)
        name = names.credential_secret(request.release)
        secret = kube.get(names.SECRET, request.namespace, name)
        assert secret is not None
        for credential in secrets.credentials_of(secret):
            self.addCleanup(
                self.tenant.identity.delete_application_credential,
                self.tenant.current_user_id,
                credential.id,
            )
        return {key: base64.b64decode(text).decode() for key, text in secret["data"].items()}

    def connected(self, texts: dict[str, str], **more: Any) -> Any:
        """Who has the Secret and nothing else, as a client of OpenStack."""
        document = yaml.safe_load(texts["clouds.yaml"])
        bundle = self.site.folder / "cacert"
        bundle.write_text(texts["cacert"])
        document["clouds"]["openstack"].update(more or {"cacert": str(bundle)})
        place = self.site.folder / "clouds.yaml"
        place.write_text(yaml.safe_dump(document))
        config = openstack.config.OpenStackConfig(config_files=[str(place)], load_envvars=False)
        return openstack.connection.Connection(config=config.get_one("openstack"))

    def uses_all(self, connection: Any) -> None:
        """What Cluster API's provider, the cloud controller and the volume driver ask."""
        list(connection.compute.servers())
        list(connection.network.networks())
        list(connection.block_storage.volumes())
        list(connection.load_balancer.load_balancers())
        list(connection.image.images())


class _Hold:
    def check(self) -> None:
        """Nobody else wants the lock."""


class _Ports:
    def __init__(self, kube: Any) -> None:
        self.kube = kube


class TestRegions(RegionCase):
    def test_without_an_option_it_is_refused(self) -> None:
        with self.assertRaises(errors.InvalidConfiguration) as caught:
            self.asks_all()
        for word in (REGION, ABROAD, GUARDED, INSIDE, "[nova_client] region_name"):
            self.assertIn(word, caught.exception.detail)

    def test_the_usual_one(self) -> None:
        self.choose(REGION)
        self.asks_all()
        texts = self.saved()
        self.assertEqual(REGION, _cloud(texts)["region_name"])
        self.uses_all(self.connected(texts))

    def test_one_in_which_nothing_resolves(self) -> None:
        self.choose(ABROAD)
        with self.assertRaises(errors.CloudUnreachable):
            self.asks_all()

    def test_endpoints_behind_an_authority_of_the_clouds_own(self) -> None:
        self.choose(GUARDED, openstack_ca_file=str(self.site.authority))
        self.option("keystone_auth", "cafile", str(self.site.authority))
        facts = self.asks_all()
        texts = self.saved()
        known = _cloud(texts)
        self.assertEqual((GUARDED, True), (known["region_name"], known["verify"]))
        self.assertEqual(facts.auth_url, known["auth"]["auth_url"])
        self.assertTrue(facts.auth_url.startswith("https://127.0.0.1:"), facts.auth_url)
        self.uses_all(self.connected(texts))

    def test_an_authority_that_nobody_knows(self) -> None:
        self.choose(GUARDED)
        with self.assertRaises(errors.CloudUnreachable) as caught:
            self.asks_all()
        self.assertIn("certificate", str(caught.exception))
        self.assertNotIn("https://", str(caught.exception))

    def test_clusters_that_are_not_to_verify(self) -> None:
        self.choose(GUARDED, verify_ca=False)
        self.option("keystone_auth", "cafile", str(self.site.authority))
        texts = self.saved()
        self.assertIs(False, _cloud(texts)["verify"])
        self.uses_all(self.connected(texts, verify=False))

    def test_endpoints_that_resolve_inside_alone(self) -> None:
        self.choose(INSIDE, interface="internal")
        self.asks_all()
        texts = self.saved()
        known = _cloud(texts)
        self.assertEqual(
            (INSIDE, "internal", "internal"),
            (known["region_name"], known["interface"], known["endpoint_type"]),
        )
        self.uses_all(self.connected(texts))

    def test_clusters_on_another_interface_than_magnum(self) -> None:
        """What they use does not resolve where Magnum is, and Magnum does not ask it."""
        self.choose(REGION)
        self.option("nova_client", "region_name", GUARDED)
        self.option("keystone_auth", "cafile", str(self.site.authority))
        self.option("capi_helm", "app_cred_interface_type", "internal")
        facts = self.asks_all()
        self.assertEqual("http://internal.keystone.invalid/v3", facts.auth_url)

    def test_a_pass_of_magnum_itself(self) -> None:
        """The service user of the periodic tasks asks in the same region."""
        self.choose(GUARDED)
        self.option("keystone_auth", "cafile", str(self.site.authority))
        admin = clients.openstack(magnum_context.make_admin_context(all_tenants=True))
        self.assertEqual({}, dict(admin.server_faults(["00000000-0000-4000-8000-000000000000"])))
        self.assertFalse(admin.is_balancer_failed("none", self.tenant.current_project_id))
        with contextlib.suppress(errors.CloudRefused):
            admin.credential_names(self.tenant.current_user_id, self.tenant.current_project_id)


def _cloud(texts: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(texts["clouds.yaml"])["clouds"]["openstack"]
    return found
