# SPDX-License-Identifier: Apache-2.0
"""Fields of templates and labels of programs: what arrives in the objects, and in OpenStack."""

from __future__ import annotations

import dataclasses
from pathlib import Path
import tempfile
from typing import Any

import kubernetes
import yaml

from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.management import Json, management

_PORT = 8443
_SIGN_IN = {
    "oidc_issuer_url": "https://sso.example.org/realms/k8s",
    "oidc_client_id": "kubernetes",
    "oidc_username_claim": "email",
    "oidc_username_prefix": "-",
    "oidc_groups_claim": "roles",
    "oidc_groups_prefix": "sso:",
}
_LABELS = {
    **_SIGN_IN,
    "keystone_auth_enabled": "true",
    "kubeapi_options": "--goaway-chance=0.001 --v=3",
    "kubecontroller_options": "--node-monitor-grace-period=60s",
    "kubescheduler_options": "--v=4",
    "kubelet_options": "--max-pods=64",
    "admission_control_list": "AlwaysPullImages",
    "api_server_cert_sans": "k8s.example.org,2001:db8::10",
    "audit_log_enabled": "true",
    "audit_log_max_age": "7",
    "calico_ipv4pool": "10.100.0.0/16",
    "service_cluster_ip_range": "10.254.0.0/16",
    "dns_cluster_domain": "k8s.example.org",
    "fixed_subnet_cidr": "10.20.0.0/24",
    "boot_volume_size": "30",
    "boot_volume_type": "fast",
    "docker_volume_type": "standard",
    "etcd_blockdevice_size": "10",
    "etcd_blockdevice_volume_type": "fast",
}
_FIELDS: dict[str, Any] = {
    "http_proxy": "http://proxy.example.org:3128",
    "https_proxy": "http://[2001:db8::1]:3129",
    "no_proxy": ".corp.example.org,192.0.2.0/24",
    "insecure_registry": "registry.example.org:5000",
    "dns_nameserver": "192.0.2.53,192.0.2.54",
    "apiserver_port": _PORT,
    "docker_volume_size": 25,
}


class Fields(Life):
    """A cluster of a template in which nearly everything is set."""

    name = "fields"

    @step
    def create(self) -> None:
        template = self.customer.template(labels=_LABELS, **_FIELDS)
        cluster = self.customer.create(template=template)
        cluster.port = _PORT
        cluster.complete("CREATE")
        cluster.check_release()
        cluster.check_openstack()

    @step
    def api_server(self) -> None:
        """Sign-in, audit, webhook and flags stand in the KubeadmControlPlane."""
        parts = self._control_plane()["clusterConfiguration"]
        flags = _flags(parts["apiServer"])
        for label, text in _SIGN_IN.items():
            assert flags[label.replace("_", "-")] == text, (label, flags)
        expected = {
            "goaway-chance": "0.001",
            "v": "3",
            "enable-admission-plugins": "NodeRestriction,AlwaysPullImages",
            "audit-log-maxage": "7",
        }
        assert expected.items() <= flags.items(), flags
        assert flags["authentication-token-webhook-config-file"], flags
        assert flags["authorization-config"], flags
        assert {"k8s.example.org", "2001:db8::10"} <= set(parts["apiServer"]["certSANs"]), parts
        controller = _flags(parts["controllerManager"])
        assert controller["node-monitor-grace-period"] == "60s", controller
        assert _flags(parts["scheduler"])["v"] == "4", parts["scheduler"]

    @step
    def machines(self) -> None:
        """Proxy, registry and the kubelet's flags stand in the set-up of masters and workers."""
        for setup in (self._control_plane(), self._workers()):
            files = {one["path"]: one.get("content", "") for one in setup["files"]}
            proxy = dict(
                line.split("=", 1) for line in files["/etc/kubernetes/proxy.env"].splitlines()
            )
            assert proxy["HTTP_PROXY"] == _FIELDS["http_proxy"], proxy
            assert proxy["https_proxy"] == _FIELDS["https_proxy"], proxy
            spared = set(proxy["NO_PROXY"].split(","))
            wanted = {".corp.example.org", "192.0.2.0/24", "10.100.0.0/16", "10.20.0.0/24"}
            assert wanted <= spared, spared
            hosts = files["/etc/containerd/certs.d/registry.example.org:5000/hosts.toml"]
            assert '[host."http://registry.example.org:5000"]' in hosts, hosts
            assert "skip_verify = true" in hosts, hosts
            kubelet = _arguments(setup["joinConfiguration"]["nodeRegistration"]["kubeletExtraArgs"])
            assert kubelet["max-pods"] == "64", kubelet

    @step
    def networks(self) -> None:
        """Those of pods, services and machines, and the name servers that Neutron hands out."""
        namespace, release = self.customer.tenant.namespace, self.cluster.release
        network = management().named("Cluster", namespace, release)["spec"]["clusterNetwork"]
        assert network == {
            "pods": {"cidrBlocks": ["10.100.0.0/16"]},
            "services": {"cidrBlocks": ["10.254.0.0/16"]},
            "serviceDomain": "k8s.example.org",
        }, network
        tenant = self.customer.tenant
        (subnet,) = tenant.connection.network.subnets(project_id=tenant.project_id)
        servers = sorted(subnet.dns_nameservers)
        assert (subnet.cidr, servers) == ("10.20.0.0/24", ["192.0.2.53", "192.0.2.54"]), subnet

    @step
    def disks(self) -> None:
        """Two volumes of each machine, one more for etcd, of the types and sizes of the labels."""
        found = self.customer.tenant.volumes()
        each = [("fast", 30), ("standard", 25)]
        assert found == sorted([*each, *each, ("fast", 10)]), found

    @step
    def kubeconfig(self) -> None:
        """``coe cluster config`` opens the cluster; with ``--use-keystone`` it asks for a token."""
        mine = self._config()
        (user,) = (one["user"] for one in mine["users"])
        assert {"client-certificate-data", "client-key-data"} == set(user), set(user)
        client: Any = kubernetes.config.new_client_from_config_dict(mine)  # type: ignore[no-untyped-call]
        nodes = kubernetes.client.CoreV1Api(client).list_node(_request_timeout=(5, 20)).items
        # Auto healing may have replaced a slow machine, whose Node nobody removes here.
        servers = self.customer.tenant.servers()
        assert len(nodes) >= len(servers) == 2, (len(nodes), servers)
        theirs = self._config("--use-keystone")
        assert theirs["clusters"] == mine["clusters"], theirs["clusters"]
        address = theirs["clusters"][0]["cluster"]["server"]
        assert address == self.cluster.rows().cluster["api_address"], address
        (user,) = (one["user"] for one in theirs["users"])
        assert list(user) == ["exec"], list(user)
        assert "OS_TOKEN" in user["exec"]["args"][-1], user

    @step
    def keystone_webhook(self) -> None:
        """What checks these tokens is among the addons, for this project."""
        namespace, release = self.customer.tenant.namespace, self.cluster.release
        addons = [one["metadata"]["name"] for one in management().objects("HelmRelease", namespace)]
        assert any("keystone-auth" in name for name in addons), addons
        values = management().release(namespace, release)
        assert values is not None, "there is no Helm release"
        given = values["config"]["addons"]["openstack"]["k8sKeystoneAuth"]["values"]
        assert given["projectId"] == self.customer.tenant.project_id, given

    @step
    def marked_nodes(self) -> None:
        """Taints and annotations of a nodegroup stand on its node, and on no other."""
        taint = {"key": "example.org/batch", "value": "yes", "effect": "NoSchedule"}
        note = {"node.cluster.x-k8s.io/team": "blue"}
        (pair,) = note.items()
        self.customer.create_group(
            "marked", 1, node_taints=[taint], labels={"node_annotations": "=".join(pair)}
        )
        self.cluster.complete()
        marked = [
            one["metadata"]["labels"].get("capi.stackhpc.com/node-group")
            for one in self.cluster.workload().nodes()
            if taint in (one["spec"].get("taints") or ())
            and note.items() <= (one["metadata"].get("annotations") or {}).items()
        ]
        assert marked == ["marked"], marked

    @step
    def more_masters(self) -> None:
        """1 -> 3 machines of the control plane."""
        before = set(self.customer.tenant.servers())
        self.cluster.intent = dataclasses.replace(self.cluster.intent, control_plane=3)
        self.customer.magnum.resize(self.cluster.uuid, 3, nodegroup="default-master")
        self.cluster.complete()
        self.cluster.check_release()
        assert before < set(self.customer.tenant.servers()), "a machine was replaced"

    @ending
    def delete(self) -> None:
        """The volumes go as well."""
        self.customer.delete()
        self.customer.leave()

    def _control_plane(self) -> Json:
        (found,) = management().objects("KubeadmControlPlane", self.customer.tenant.namespace)
        setup: Json = found["spec"]["kubeadmConfigSpec"]
        return setup

    def _workers(self) -> Json:
        (found,) = management().objects("KubeadmConfigTemplate", self.customer.tenant.namespace)
        setup: Json = found["spec"]["template"]["spec"]
        return setup

    def _config(self, *options: str) -> Json:
        with tempfile.TemporaryDirectory() as folder:
            self.customer.tenant.openstack(
                "coe", "cluster", "config", self.cluster.uuid, "--dir", folder, *options
            )
            found: Json = yaml.safe_load((Path(folder) / "config").read_text())
            return found


def _flags(program: Json) -> dict[str, str]:
    return _arguments(program["extraArgs"])


def _arguments(listed: list[Json]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in listed}


class TestFields(LifeCase, life=Fields):
    """Create; what arrived where; a tainted group, three masters; delete."""
