# SPDX-License-Identifier: Apache-2.0
"""Magnum's OpenStack clients, sent where the APIs are by definition instead of asking for it.

openstacksdk asks a service for its versions before the first request, as often as three times. Of
the APIs below the driver uses one version, whose path is part of the API's reference; so whether
the catalogue has it in its address or not, the address is known. Where the catalogue has something
else there, the service is asked as ever. Nova is asked once all the same: server groups look
different in its newer microversions.
"""

from __future__ import annotations

import re
from typing import Any
import urllib.parse

from keystoneauth1 import exceptions as ka_exceptions
from openstack import connection as sdk_connection
from openstack import service_description

from magnum.common import clients, keystone

#: Type of the service -> major version and path (https://docs.openstack.org/api-quick-start).
_APIS = {
    "identity": ("3", "v3"),
    "image": ("2", "v2"),
    "compute": ("2", "v2.1"),
    "network": ("2", "v2.0"),
    "block-storage": ("3", "v3"),
    "load-balancer": ("2", "v2"),
}
_VERSION = re.compile(r"v(\d+)(\.\d+)?")


class Clients(clients.OpenStackClients):  # type: ignore[misc]
    """Magnum's clients of one person; the proxies are those of openstacksdk."""

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self._keystone: Any = None

    def keystone(self) -> Any:
        """Magnum's Keystone client."""
        self._keystone = self._keystone or Keystone(self.context)
        return self._keystone

    def glance(self) -> Any:
        """Images."""
        return self._at("glance", "image") or super().glance()

    def nova(self) -> Any:
        """Servers, flavors, server groups."""
        return self._at("nova", "compute") or super().nova()

    def neutron(self) -> Any:
        """Networks, floating IPs."""
        return self._at("neutron", "network") or super().neutron()

    def octavia(self) -> Any:
        """Load balancers."""
        return self._at("octavia", "load-balancer") or super().octavia()

    def cinder(self) -> Any:
        """Volumes."""
        return self._at("cinder", "block-storage") or super().cinder()

    def _at(self, client: str, service_type: str) -> Any:
        """A proxy, None where it is not known where the service is.

        :param client: how Magnum calls the service in its options.
        """
        url = self.url_for(
            service_type=service_type,
            interface=self._get_client_option(client, "endpoint_type"),
            region_name=self._get_client_option(client, "region_name"),
        )
        if url is None:
            raise ka_exceptions.EndpointNotFound(f"the catalogue has no '{service_type}'")
        return _proxy(self.keystone().session, service_type, url)


class Keystone(keystone.KeystoneClientV3):  # type: ignore[misc]
    """Magnum's Keystone client."""

    def __init__(self, context: Any) -> None:
        super().__init__(context)
        self._client: Any = None

    @property
    def client(self) -> Any:
        """The proxy to Keystone."""
        if self._client is None:
            url = self.session.get_endpoint(service_type="identity", interface="public")
            self._client = _proxy(self.session, "identity", url) if url else None
        return self._client or super().client


def address(url: str, service_type: str, project_id: str | None) -> str | None:
    """Where the API of a service is that has this address in the catalogue; None if that is open.

    Some catalogues have the project behind the version.
    """
    major, path = _APIS[service_type]
    parts = urllib.parse.urlsplit(url)
    steps = [step for step in parts.path.split("/") if step]
    last = steps[:-1] if steps and steps[-1] == project_id else steps
    found = _VERSION.fullmatch(last[-1]) if last else None
    if found is None:
        # A project without a version before it, or anything behind a question mark, is nobody's.
        plain = last == steps and not (parts.query or parts.fragment)
        return f"{url.rstrip('/')}/{path}" if plain else None
    return url.rstrip("/") if found[1] == major else None


def _proxy(session: Any, service_type: str, url: str) -> Any:
    where = address(url, service_type, session.get_project_id())
    if where is None:
        return None
    major, option = _APIS[service_type][0], service_type.replace("-", "_")
    options: dict[str, Any] = {
        f"{option}_endpoint_override": where,
        f"{option}_api_version": major,
    }
    connection = sdk_connection.Connection(session=session, **options)
    usual = getattr(sdk_connection.Connection, option).supported_versions[major]
    trusting = type(usual.__name__, (usual,), {"skip_discovery": True})
    described: Any = service_description.ServiceDescription(service_type, {major: trusting})
    return described.__get__(connection, type(connection))
