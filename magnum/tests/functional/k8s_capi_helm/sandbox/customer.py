# SPDX-License-Identifier: Apache-2.0
"""A tenant who asks Magnum for a cluster: template, creation, resize, and leaving for good."""

from __future__ import annotations

import dataclasses
import secrets
from typing import Any

from magnum.tests.functional.k8s_capi_helm.sandbox.cluster import Cluster, DEFAULT_GROUP
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import MagnumApi
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management
from magnum.tests.functional.k8s_capi_helm.sandbox.tenant import Tenant
from magnum.tests.functional.k8s_capi_helm.sandbox.truth import Intent

VERSION = "v1.34.4"


class Customer:
    """One tenant, one cluster at a time.

    :ivar cluster: the cluster that was asked for last.
    """

    cluster: Cluster

    def __init__(self, tenant: Tenant, name: str) -> None:
        self.tenant = tenant
        self.magnum = MagnumApi(tenant.connection)
        self._name = name
        self._templates: list[str] = []

    @classmethod
    def new(cls, name: str) -> Customer:
        """With a project of its own."""
        return cls(Tenant.new(name), name)

    def template(self, version: str = VERSION, **fields: Any) -> str:
        """A template of a sandbox's image; *fields* replace the usual ones or add to them."""
        usual: dict[str, Any] = {
            "name": f"{self._name}-{len(self._templates)}",
            "coe": "kubernetes",
            "image_id": f"ubuntu-kube-{version}",
            "external_network_id": "public",
            "keypair_id": self.tenant.keypair,
            "master_flavor_id": "m1.small",
            "flavor_id": "m1.medium",
            "network_driver": "calico",
            "master_lb_enabled": True,
            "floating_ip_enabled": True,
        }
        self._templates.append(self.magnum.template(**{**usual, **fields}))
        return self._templates[-1]

    def create(
        self,
        *,
        workers: int = 1,
        masters: int = 1,
        template: str | None = None,
        version: str = VERSION,
        **fields: Any,
    ) -> Cluster:
        """Ask for a cluster; nobody waits for more than its row here.

        :param fields: of the cluster; they replace the usual ones or add to them.
        """
        usual: dict[str, Any] = {
            "name": f"{self._name}-{secrets.token_hex(3)}",
            "cluster_template_id": template or self.template(version),
            "master_count": masters,
            "node_count": workers,
        }
        uuid = self.magnum.create(**{**usual, **fields})
        intent = Intent(version, masters, {DEFAULT_GROUP: workers})
        self.cluster = Cluster(self.tenant, self.magnum, uuid, intent)
        self.cluster.appear()
        return self.cluster

    def resize(self, count: int, **fields: Any) -> None:
        """Ask for another number of workers; nobody waits for it here."""
        self.cluster.intent = self.cluster.intent.with_groups(default_worker=count)
        self.magnum.resize(self.cluster.uuid, count, **fields)

    def upgrade(self, version: str = VERSION, **fields: Any) -> None:
        """Ask for what another template has; nobody waits for it here.

        :param fields: as of :meth:`template`.
        """
        intent = self.cluster.intent
        self.magnum.upgrade(self.cluster.uuid, self.template(version, **fields))
        self.cluster.intent = dataclasses.replace(intent, version=version)

    def create_group(self, name: str, count: int, **fields: Any) -> None:
        """Ask for a nodegroup; nobody waits for it here."""
        self.cluster.intent = self.cluster.intent.with_groups(**{name: count})
        self.magnum.create_group(self.cluster.uuid, name, count, **fields)

    def delete_group(self, name: str) -> None:
        """Ask for a nodegroup to go; nobody waits for it here."""
        self.cluster.intent = self.cluster.intent.with_groups(**{name: None})
        self.cluster.failed.discard(name)
        self.magnum.delete_group(self.cluster.uuid, name)

    def delete(self) -> None:
        """Delete the cluster; when Magnum forgets it nothing of it may be left."""
        self.magnum.delete(self.cluster.uuid)
        self.cluster.gone()

    def leave(self) -> None:
        """See the cluster's last trace go; remove templates, user and project.

        Its namespace goes with the last cluster: the driver has the right to, and made it.
        """
        self.cluster.swept()
        management().gone(self.tenant.namespace)
        for template in self._templates:
            self.magnum.delete_template(template)
        self.tenant.leave()
