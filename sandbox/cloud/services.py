# SPDX-License-Identifier: Apache-2.0
"""The OpenStack services of the sandbox: catalogue entries and processes."""

import dataclasses

from sandbox.state import State

HOST = "127.0.0.1"
REGION = "RegionOne"
#: Of the users that Magnum may make for clusters, and who manages them.
TRUSTEE_DOMAIN, TRUSTEE_ADMIN = "magnum", "magnum_domain_admin"


@dataclasses.dataclass(frozen=True)
class Service:
    """One service, one process.

    :ivar kind: its type in the service catalog.
    :ivar path: what follows host and port in its endpoint.
    :ivar wsgi: module whose ``application`` is the service's API.
    """

    name: str
    kind: str
    path: str
    wsgi: str

    def url(self, state: State) -> str:
        """Its root, without the path of the catalog."""
        return f"http://{HOST}:{state.port(self.name)}"

    def endpoint(self, state: State) -> str:
        """Its URL in the catalog; ``%(project_id)s`` is filled in by Keystone."""
        return self.url(state) + self.path


KEYSTONE = Service("keystone", "identity", "/v3", "keystone.wsgi.api")

# In the order in which they are shown; all but Magnum start together.
SERVICES = {
    service.name: service
    for service in (
        KEYSTONE,
        Service("glance", "image", "", "glance.wsgi.api"),
        Service("placement", "placement", "", "placement.wsgi.api"),
        Service("nova", "compute", "/v2.1", "nova.wsgi.osapi_compute"),
        Service("neutron", "network", "", "neutron.wsgi.api"),
        Service("cinder", "volumev3", "/v3/%(project_id)s", "cinder.wsgi.api"),
        Service("octavia", "load-balancer", "", "octavia.wsgi.api"),
        Service("barbican", "key-manager", "", "barbican.wsgi.api"),
        Service("magnum", "container-infra", "/v1", "magnum.wsgi.api"),
    )
}

# Nova's compute hosts by availability zone: one host in each.
COMPUTE_HOSTS = {"zone-1": "compute-1", "zone-2": "compute-2", "zone-3": "compute-3"}


def auth_url(state: State) -> str:
    """Where Keystone answers, with its version."""
    return KEYSTONE.endpoint(state)
