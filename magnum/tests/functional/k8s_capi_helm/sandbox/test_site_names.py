# SPDX-License-Identifier: Apache-2.0
"""A site of its own kind: odd names everywhere, overlays, a credential of the addons' own."""

from __future__ import annotations

import base64
from typing import Any

import openstack
import yaml

from magnum.tests.functional.k8s_capi_helm.sandbox import provider
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import Customer
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import MagnumApi, Refused
from magnum.tests.functional.k8s_capi_helm.sandbox.management import Json, management
from magnum.tests.functional.k8s_capi_helm.sandbox.own_network import OwnNetwork
from magnum.tests.functional.k8s_capi_helm.sandbox.tenant import Tenant
from sandbox.addons import templates

_REGION = "Région-Zürich (test)"
_VOLUME_TYPE = "高速"
_FLAVOR = "m1 klein, für Tests"
_NETWORK = "Netz für 北京"
#: As odd as Magnum takes it, and as long: it is the name of certificate authorities, which has 64.
_CLUSTER = f"Der_Cluster.des--BUEROS_{'x' * 38}-."
_MACHINES, _ADDONS = "clouds.yaml", "addon-clouds.yaml"

_SITE = """
apiServer:
  logLevel: 4
machineMetadata:
  made-for: "Büro 北京: {{ cluster.project_id }}"
"""
_LARGE = """
apiServer:
  logLevel: 6
etcd:
  extraArgs:
    quota-backend-bytes: "8589934592"
"""
#: Overlays that cannot be used, and where the log says it is wrong.
_WRONG = {
    "misspelt": ("etcd:\n  dataDri: /x\n", "line 2, key etcd.dataDri"),
    "owned": ("etcd:\n  dataDir: /x\nosDistro: flatcar\n", "line 3, key osDistro"),
    "curious": ("machineMetadata:\n  x: '{{ secret }}'\n", "line 2, key machineMetadata.x"),
}


class Names(Life):
    """A tenant in a region, with a flavor and a volume type, that no ASCII has."""

    name = "names"
    release = ""
    network: OwnNetwork

    def new_customer(self) -> Customer:
        provider.withdraw(volume_type=_VOLUME_TYPE, flavor=_FLAVOR)
        provider.offer(volume_type=_VOLUME_TYPE, flavor=_FLAVOR)
        provider.close_region(_REGION)
        provider.open_region(_REGION)
        wrong = {name: text for name, (text, _) in _WRONG.items()}
        directory = provider.overlays(site=_SITE, large=_LARGE, **wrong)
        own = {"separate_addon_credential": True, "overlay_directory": directory}
        provider.reconfigure({**provider.in_region(_REGION), "capi_helm": own})
        tenant = Tenant.new("Büro 北京 (test)")
        self.network = OwnNetwork(tenant.connection, _NETWORK)
        return Customer(Tenant(tenant.connection, tenant.keypair), "Vorlage für 北京")

    @step
    def create(self) -> None:
        """Complete, with a release that has a plain name."""
        template = self.customer.template(
            labels={"capi_helm_overlay": "large"},
            master_flavor_id=_FLAVOR,
            network_driver="cilium",
            fixed_network=_NETWORK,
            fixed_subnet=_NETWORK,
        )
        self.customer.create(template=template, name=_CLUSTER, flavor_id=_FLAVOR)
        self.cluster.complete("CREATE")
        assert self.cluster.rows().cluster["name"] == _CLUSTER, self.cluster.name
        self.release = self.cluster.release
        assert self.release.isascii() and len(self.release) <= 43, self.release
        values = self.cluster.check_release()
        assert values["addons"]["cni"]["type"] == "cilium", values["addons"]["cni"]

    @step
    def own_network(self) -> None:
        """The machines are in the tenant's network, and no other one was made."""
        own = self.customer.tenant
        assert own.networks() == {_NETWORK}, own.networks()
        for server in own.connection.compute.servers():
            assert set(server.addresses) == {_NETWORK}, server.addresses

    @step
    def overlaid(self) -> None:
        """The named overlay wins over the site's, and what neither has stays."""
        namespace = self.customer.tenant.namespace
        (plane,) = management().objects("KubeadmControlPlane", namespace)
        parts = plane["spec"]["kubeadmConfigSpec"]["clusterConfiguration"]
        api, etcd = _flags(parts["apiServer"]), _flags(parts["etcd"]["local"])
        assert api["v"] == "6", api
        assert etcd["quota-backend-bytes"] == "8589934592", etcd
        assert etcd["election-timeout"] == "5000", etcd
        project = self.customer.tenant.project_id
        for server in self.customer.tenant.connection.compute.servers():
            assert server.metadata["made-for"] == f"Büro 北京: {project}", server.metadata

    @step
    def two_credentials(self) -> None:
        """The addons log in with the second one, in this region; the first is not theirs."""
        assert self.customer.tenant.credentials() == {
            f"magnum-{self.release}",
            f"magnum-{self.release}-addons",
        }, self.customer.tenant.credentials()
        self._check_credentials()

    @step
    def rotate(self) -> None:
        """Two new ones; who came with an application credential gets none, and keeps the old."""
        tenant = self.customer.tenant
        before, names = self._ids(), tenant.credentials()
        self._refused_without_password()
        assert (self._ids(), tenant.credentials()) == (before, names), tenant.credentials()
        self.customer.magnum.rotate_credential(self.cluster.uuid)
        assert len(tenant.credentials() - names) == 2, tenant.credentials()
        assert not set(before) & set(self._ids()), before
        self._check_credentials()

    @step
    def boot_volume(self) -> None:
        """A nodegroup that boots from volumes of the odd type."""
        self.customer.create_group(
            "schnell",
            1,
            flavor_id=_FLAVOR,
            labels={"boot_volume_size": "20", "boot_volume_type": _VOLUME_TYPE},
        )
        self.cluster.complete()
        assert self.customer.tenant.volumes() == [(_VOLUME_TYPE, 20)]
        values = self.cluster.check_release()
        cinder = values["addons"]["openstack"]["csiCinder"]
        offered = [cinder["defaultStorageClass"], *cinder["additionalStorageClasses"]]
        classes = {one["volumeType"]: one["name"] for one in offered}
        assert classes[_VOLUME_TYPE].isascii(), classes

    @ending
    def delete(self) -> None:
        """All four credentials go."""
        self.customer.delete()
        self.cluster.swept()

    @step
    def wrong_overlays(self) -> None:
        """The tenant reads which overlay, the operator file, line and key."""
        for name, (_, place) in _WRONG.items():
            template = self.customer.template(labels={"capi_helm_overlay": name})
            cluster = self.customer.create(template=template, name=name)
            rows = cluster.until(
                lambda rows: not rows.status.endswith("_IN_PROGRESS"), name, fail=False
            )
            assert rows.status == "CREATE_FAILED", rows
            assert f"overlay '{name}'" in rows.reason, rows
            assert "yaml" not in rows.reason, rows
            assert f"{name}.yaml, {place}" in provider.magnum_log(), f"{name}: {place}"
            assert not management().objects("Cluster", self.customer.tenant.namespace)
            self.customer.delete()
            self.say(rows.reason)

    @ending
    def leave(self) -> None:
        """The site is as it was."""
        self.network.remove()
        self.customer.leave()
        provider.withdraw(volume_type=_VOLUME_TYPE, flavor=_FLAVOR)
        provider.reconfigure({})
        provider.close_region(_REGION)

    def _secret(self) -> Json:
        name = f"{self.release}-cloud-credentials"
        return management().named("Secret", self.customer.tenant.namespace, name)

    def _ids(self) -> tuple[str, str]:
        """Ids of the credentials of the machines and of the addons."""
        data = self._secret()["data"]
        one, other = (_login(data[key])["auth"] for key in (_MACHINES, _ADDONS))
        return one["application_credential_id"], other["application_credential_id"]

    def _check_credentials(self) -> None:
        """What the addon provider puts into the cluster has the second credential alone."""
        namespace, release = self.customer.tenant.namespace, self.release
        secret = self._secret()
        addon = management().named("Manifests", namespace, f"{release}-cloud-config")
        context = {
            "cloud_identity": secret,
            "infra_cluster": management().named("OpenStackCluster", namespace, release),
        }
        (inside,) = templates.render(addon, {}, context)
        assert inside["data"][_MACHINES] == secret["data"][_ADDONS], sorted(inside["data"])
        assert secret["data"][_MACHINES] not in inside["data"].values(), sorted(inside["data"])
        for key in (_MACHINES, _ADDONS):
            assert _login(secret["data"][key])["region_name"] == _REGION, key
        machines, addons = self._ids()
        found = self.customer.tenant.connection.identity.application_credentials(
            self.customer.tenant.user_id
        )
        assert machines != addons and {machines, addons} <= {one.id for one in found}, machines

    def _refused_without_password(self) -> None:
        tenant = self.customer.tenant
        identity, config = tenant.connection.identity, tenant.connection.config
        mine = identity.create_application_credential(tenant.user_id, name="mine")
        try:
            stranger = openstack.connection.Connection(
                auth_type="v3applicationcredential",
                auth={
                    "auth_url": config.get_auth_args()["auth_url"],
                    "application_credential_id": mine.id,
                    "application_credential_secret": mine.secret,
                },
                region_name=config.get_region_name(),
            )
            MagnumApi(stranger).rotate_credential(self.cluster.uuid)
        except Refused as refusal:
            assert "log in with your password" in str(refusal), refusal
        else:
            raise AssertionError("an application credential has made others")
        finally:
            identity.delete_application_credential(tenant.user_id, mine.id)


def _login(packed: str) -> Json:
    document: Any = yaml.safe_load(base64.b64decode(packed))
    cloud: Json = document["clouds"]["openstack"]
    return cloud


def _flags(program: Json) -> dict[str, str]:
    return {one["name"]: one["value"] for one in program["extraArgs"]}


class TestNames(LifeCase, life=Names):
    """Create, overlays, two credentials, rotation, an odd volume type, delete, wrong overlays."""
