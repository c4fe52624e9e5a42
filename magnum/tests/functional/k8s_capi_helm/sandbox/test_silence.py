# SPDX-License-Identifier: Apache-2.0
"""What no object on the management cluster tells: addons taken away, controllers that stop."""

from __future__ import annotations

from collections.abc import Callable
import re

from magnum.tests.functional.k8s_capi_helm.sandbox import provider
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Rows

_FAULT = "controllers-stopped"
_IMAGES = "registry.example.org:5000/mirror"
#: Magnum's health poll comes once a minute.
_HEALTH = 150.0
_PLACE = "openstack-system"
_CONTROLLER = f"/apis/apps/v1/namespaces/{_PLACE}/daemonsets/openstack-cloud-controller-manager"
_CONFIG = f"/api/v1/namespaces/{_PLACE}/secrets/cloud-config"
_TAKEN = (
    f"ccm-openstack: DaemonSet {_PLACE}/openstack-cloud-controller-manager not found in the "
    f"cluster; "
    f"cloud-config: Secret {_PLACE}/cloud-config not found in the cluster"
)
_CAPO = r"controller capo has not reported since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
_ALL = (
    r"management: controllers capi, capi-kubeadm-bootstrap, capi-kubeadm-control-plane, capo have "
    r"not reported since \d{4}-\d\d-\d\d \d\d:\d\d UTC; .+"
)


class Silence(Life):
    """A tenant tries what it can do; then CAPO stops, then all do, and the cluster is to grow."""

    name = "silence"

    @step
    def create(self) -> None:
        """It is there, with kubeadm's images from a registry of its own, and healthy."""
        provider.reconfigure({"capi_helm": {"controller_silence": 30, "addon_check_interval": 5}})
        template = self.customer.template(labels={"container_infra_prefix": _IMAGES})
        self.customer.create(template=template)
        self.cluster.complete("CREATE")
        self.cluster.until(_is("HEALTHY"), "health", _HEALTH)

    @step
    def take_away(self) -> None:
        """The tenant deletes what two core addons consist of; their objects still say Deployed."""
        ready = self.cluster.until(_inside("Ready"), "a look into the cluster", _HEALTH)
        assert _is("HEALTHY")(ready), ready.cluster
        workload = self.cluster.workload()
        taken = {path: workload.take_away(path) for path in (_CONTROLLER, _CONFIG)}
        rows = self.cluster.until(_inside(_TAKEN), "what is missing", _HEALTH)
        assert _is("UNHEALTHY")(rows), rows.cluster
        assert rows.status == "CREATE_COMPLETE", rows
        for path, found in taken.items():
            workload.put_back(path, found)
        rows = self.cluster.until(_inside("Ready"), "that all is back", _HEALTH)
        assert _is("HEALTHY")(rows), rows.cluster

    @step
    def one_stops(self) -> None:
        """Nothing in the cluster's objects tells; the health does."""
        self.fault(_FAULT, True, "capo")
        rows = self.cluster.until(_is("UNKNOWN"), "UNKNOWN", _HEALTH)
        said = rows.cluster["health_status_reason"]
        assert re.fullmatch(_CAPO, said["management"]), said
        parts = {"cluster", "infrastructure", "controlplane", "nodegroup", "api"}
        assert not parts & said.keys(), said
        assert rows.status == "CREATE_COMPLETE", rows
        self.explained(_FAULT, "controller capo has not reported since")

    @step
    def it_comes_back(self) -> None:
        """And so does the health."""
        self.fault(_FAULT, False)
        rows = self.cluster.until(_is("HEALTHY"), "health", _HEALTH)
        assert "management" not in rows.cluster["health_status_reason"], rows.cluster

    @step
    def all_stop(self) -> None:
        """What is asked for then says whom it waits for."""
        self.fault(_FAULT, True)
        self.cluster.until(_is("UNKNOWN"), "UNKNOWN", _HEALTH)
        self.customer.resize(2)

        def names_them(rows: Rows) -> bool:
            return bool(re.fullmatch(_ALL, rows.reason or ""))

        rows = self.cluster.until(names_them, "a reason that names the controllers", _HEALTH)
        self.say(str(rows.reason))
        assert rows.status == "UPDATE_IN_PROGRESS", rows
        self.explained(_FAULT, "have not reported since")

    @step
    def go_on(self) -> None:
        """Once they run the resize goes through."""
        self.fault(_FAULT, False)
        self.cluster.complete()
        self.cluster.until(_is("HEALTHY"), "health", _HEALTH)

    @ending
    def delete(self) -> None:
        """As any other."""
        self.fault(_FAULT, False)
        self.customer.magnum.delete(self.cluster.uuid)
        self.cluster.gone()
        self.customer.leave()
        provider.reconfigure({})


def _inside(said: str) -> Callable[[Rows], bool]:
    return lambda rows: (rows.cluster.get("health_status_reason") or {}).get("inside") == said


def _is(health: str) -> Callable[[Rows], bool]:
    return lambda rows: rows.cluster.get("health_status") == health


class TestSilence(LifeCase, life=Silence):
    """Addons are taken away, one controller stops, it comes back, all stop, they go on."""
