# SPDX-License-Identifier: Apache-2.0
"""A Magnum with two management clusters: the default one, and ``az2``."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import dataclasses
import pathlib
from typing import Any

import fixtures

from magnum.drivers import k8s_capi_helm
from magnum.drivers.k8s_capi_helm import chart_store, lease
from magnum.drivers.k8s_capi_helm.conf import management_clusters
from magnum.drivers.k8s_capi_helm.model import names
from magnum.drivers.k8s_capi_helm.reconcile.process import clients
from magnum.tests.unit.drivers.k8s_capi_helm import fakes
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import CONF, DriverCase, NAMESPACE

OTHER = "az2"
GROUP = f"{management_clusters.MANAGEMENT_GROUP}{OTHER}"


class TwoManagementClusters(DriverCase):
    """Base of tests with two management clusters.

    :ivar kube: of the default one, ``helm`` as well; inside of :meth:`at_other` those of the other.
    :ivar other: the clients of the other one.
    """

    def setUp(self) -> None:
        super().setUp()
        self.config(group="capi_helm", management_clusters=["default", OTHER])
        management_clusters.register_management_groups(CONF)
        self.config(group=GROUP, kubeconfig_file="/etc/az2", availability_zones=["z2"])
        self.other_kube, self.other_helm = fakes.FakeKube(), fakes.FakeHelm()
        self.other_kube.place = "there"
        self.peers: dict[str, clients.Clients] = {}
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.other = self.clients_of(
            kube=self.other_kube,
            leases=lease.ReleaseLeases(self.other_kube, holder="test", lease_duration=60),
            helm=self.other_helm,
            charts=chart_store.ChartStore(
                bundled_charts=pathlib.Path(k8s_capi_helm.__file__).parent / "charts",
                directory=directory,
                copies=chart_store.ChartConfigMaps(self.other_kube),
            ),
            management=OTHER,
            peers=self.peers,
        )
        self.ports = dataclasses.replace(self.ports, peers=self.peers)
        self.peers |= {"default": self.ports, OTHER: self.other}

    @contextlib.contextmanager
    def at_other(self) -> Iterator[None]:
        """What Cluster API does, and what is looked at, is on the other management cluster."""
        own = self.kube, self.helm
        self.kube, self.helm = self.other_kube, self.other_helm
        try:
            yield
        finally:
            self.kube, self.helm = own

    def open_lease_there(self, release: str, uuid: str) -> None:
        """The Lease of a release on the other management cluster."""
        self.other_kube.put(names.NAMESPACE, {"metadata": {"name": NAMESPACE}})
        self.other.leases.open(NAMESPACE, release, cluster_uuid=uuid, project_id="p1")

    def made_there(self, **more: Any) -> Any:
        """A cluster on the other management cluster that is CREATE_COMPLETE."""
        with self.at_other():
            return self.made(labels={"availability_zone": "z2"}, **more)
