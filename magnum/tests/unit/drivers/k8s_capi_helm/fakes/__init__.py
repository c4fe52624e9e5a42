# SPDX-License-Identifier: Apache-2.0
"""The ports in memory: a management cluster and a Helm that tests can look into and trip up.

Each has the signatures of its port and passes the same suite as the real one (``suites``, run in
the unit tests on these and in the ``envtest`` tests on a real kube-apiserver and a real Helm).
OpenStack is in memory one step further down, below the real openstacksdk.
"""

from magnum.tests.unit.drivers.k8s_capi_helm.fakes.apis import FakeApis
from magnum.tests.unit.drivers.k8s_capi_helm.fakes.catalogue import FakeCatalogue
from magnum.tests.unit.drivers.k8s_capi_helm.fakes.helm import FakeHelm
from magnum.tests.unit.drivers.k8s_capi_helm.fakes.kube import FakeKube
from magnum.tests.unit.drivers.k8s_capi_helm.fakes.openstack import FakeOpenStack
from magnum.tests.unit.drivers.k8s_capi_helm.fakes.tenant_api import FakeWorkload

__all__ = ["FakeApis", "FakeCatalogue", "FakeHelm", "FakeKube", "FakeOpenStack", "FakeWorkload"]
