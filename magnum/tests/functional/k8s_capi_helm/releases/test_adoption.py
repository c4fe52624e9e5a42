# SPDX-License-Identifier: Apache-2.0
"""A cluster that magnum-capi-helm has made on Magnum 20 is this driver's on 20, 22 and 23.

The earlier driver is the one of PyPI, in an environment without this one; it has this project's
chart by its path, as it brings none, and an administrator's rights. No node rolls when the drivers
change.
"""

from __future__ import annotations

import os
import re
import subprocess

from magnum.tests.functional.k8s_capi_helm.releases.moving import Moving, OLD
from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import VERSION
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Rows
from sandbox import stack
from sandbox.cloud.magnum_release import PREDECESSOR, ROOT

_PAGE = ROOT / "doc" / "source" / "install" / "moving.rst"


def _bind_roles() -> None:
    """What the page about the migration has an administrator do, word for word."""
    text = _PAGE.read_text(encoding="utf-8")
    found = re.search(r"^ +\$ (kubectl get namespaces .+\n.+\n.+--namespace=\{\})$", text, re.M)
    assert found, f"{_PAGE.name} binds no role"
    env = {**os.environ, **stack.environment(setting.state())}
    subprocess.run(["sh", "-ec", found[1]], env=env, check=True, timeout=60)


class Adoption(Moving):
    """One control plane machine and one worker, made by another driver."""

    name = "adopted"
    driver = PREDECESSOR

    @step
    def create(self) -> None:
        """The other driver may call it complete before it is: it is waited for until it is."""
        self.customer.create(version=OLD)

        def is_complete(rows: Rows) -> bool:
            return rows.status == "CREATE_COMPLETE" and len(self.customer.tenant.servers()) == 2

        self.cluster.until(is_complete, "CREATE_COMPLETE")

    @step
    def under_20(self) -> None:
        """This driver takes it over, and it can be resized."""
        before = self.move_to("20", _bind_roles)
        self.customer.resize(2)
        self.cluster.complete()
        assert before < set(self.customer.tenant.servers())

    @step
    def under_22(self) -> None:
        """The next minor release of Kubernetes."""
        self.move_to("22")
        self.customer.upgrade(VERSION)
        self.cluster.complete()
        assert self.cluster.rows().cluster["coe_version"] == VERSION

    @step
    def under_23(self) -> None:
        """Another credential, and a nodegroup."""
        self.move_to("23")
        known = self.customer.tenant.credentials()
        self.customer.magnum.rotate_credential(self.cluster.uuid)
        assert known < self.customer.tenant.credentials()
        self.customer.create_group("second", 1)
        self.cluster.complete()
        self.cluster.check_release()

    @ending
    def delete(self) -> None:
        self.customer.delete()
        self.customer.leave()


class TestAdoption(LifeCase, life=Adoption):
    """Create under Magnum 20 with the other driver; this one on 20, 22, 23; delete."""
