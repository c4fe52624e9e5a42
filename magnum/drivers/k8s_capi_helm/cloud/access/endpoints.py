# SPDX-License-Identifier: Apache-2.0
"""Magnum's OpenStack clients with endpoints from the catalogue, without version discovery.

openstacksdk asks a service for its versions before the first request, as often as three times. Of
the APIs below the driver uses one version, whose path is part of the API's reference; so whether
the catalogue has it in its address or not, the address is known. Where the catalogue has something
else there, the service is asked as ever. Nova is asked once all the same: server groups look
different in its newer microversions.

All of a cluster is in one region: its ``clouds.yaml`` names one for all services. Which one that is
and where each service is asked is decided here, from Magnum's own options and the catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
import contextlib
import re
from typing import Any
import urllib.parse

from keystoneauth1 import exceptions as ka_exceptions
from keystoneauth1 import loading as ka_loading
from openstack import connection as sdk_connection
from openstack import service_description

from magnum.common import clients, keystone
import magnum.conf
from magnum.conf import keystone as ksconf
from magnum.drivers.k8s_capi_helm import errors

CONF = magnum.conf.CONF

#: Type of the service -> major version and path (https://docs.openstack.org/api-quick-start).
_APIS = {
    "identity": ("3", "v3"),
    "image": ("2", "v2"),
    "compute": ("2", "v2.1"),
    "network": ("2", "v2.0"),
    "block-storage": ("3", "v3"),
    "load-balancer": ("2", "v2"),
}
#: Services that machines, load balancers and volumes of clusters come from, by their names in
#: Magnum's options. No images: machines name them by id, and Magnum alone looks for them.
_OF_CLUSTERS = ("nova", "neutron", "cinder", "octavia")
_VERSION = re.compile(r"v(\d+)(\.\d+)?")


def login_url() -> str | None:
    """Where Magnum itself logs in ([keystone_auth] auth_url), None where that is not set."""
    try:
        login = ka_loading.load_auth_from_conf_options(CONF, ksconf.CFG_GROUP)
    except ka_exceptions.ClientException:
        return None
    return getattr(login, "auth_url", None)


class MagnumClients(clients.OpenStackClients):  # type: ignore[misc]
    """Magnum's clients of one person; the proxies are those of openstacksdk.

    :param login: tells where Magnum logs in.
    """

    def __init__(self, context: Any, login: Callable[[], str | None] = login_url) -> None:
        super().__init__(context)
        self._keystone: Any = None
        self._login = login

    def keystone(self) -> Any:
        """Magnum's Keystone client."""
        self._keystone = self._keystone or KeystoneClient(self.context, self._login)
        return self._keystone

    def glance(self) -> Any:
        """Images."""
        return self._service_proxy("glance", "image") or super().glance()

    def nova(self) -> Any:
        """Servers, flavors, server groups."""
        return self._service_proxy("nova", "compute") or super().nova()

    def neutron(self) -> Any:
        """Networks, floating IPs."""
        return self._service_proxy("neutron", "network") or super().neutron()

    def octavia(self) -> Any:
        """Load balancers."""
        return self._service_proxy("octavia", "load-balancer") or super().octavia()

    def cinder(self) -> Any:
        """Volumes."""
        return self._service_proxy("cinder", "block-storage") or super().cinder()

    def region(self) -> str | None:
        """The region of clusters: what the options of their services say, else the only one.

        None where the catalogue names none.

        :raises errors.InvalidConfiguration: the options contradict each other or the catalogue, or
            there are several and no option says which.
        """
        configured = {
            f"[{client}_client] region_name": name
            for client in _OF_CLUSTERS
            if (name := self._get_client_option(client, "region_name"))
        }
        regions = {region for region, _ in self._endpoints("compute", None) if region}
        settings = ", ".join(f"{option} is {name}" for option, name in configured.items())
        if len(set(configured.values())) > 1:
            raise _misconfigured(
                f"{settings}: a cluster is in one region, so they have to be the same"
            )
        if not configured and len(regions) > 1:
            raise _misconfigured(
                f"the catalogue has compute endpoints in several regions ({_joined(regions)}): set "
                "[nova_client] region_name to the one that clusters are in"
            )
        chosen_region = next(iter(configured.values()), None) or next(iter(regions), None)
        if regions and chosen_region not in regions:
            raise _misconfigured(
                f"{settings}, and the catalogue has compute endpoints in {_joined(regions)} alone"
            )
        return chosen_region

    def identity_url(self, interface: str) -> str:
        """Keystone's v3 address for clusters on an interface: in their region if it is there.

        :raises errors.InvalidConfiguration: it has none there, or the region is not clear.
        """
        region, endpoints = self.region(), self._endpoints("identity", interface)
        urls = [url for name, url in endpoints if name == region] or [url for _, url in endpoints]
        if not urls:
            raise _misconfigured(
                f"[capi_helm] app_cred_interface_type is {interface}, and the catalogue has no "
                "identity endpoint on that interface"
            )
        if len(set(urls)) > 1:
            raise _misconfigured(
                f"the catalogue has several {interface} endpoints for identity (in "
                f"{_joined(endpoint_region or 'no region' for endpoint_region, _ in endpoints)}) "
                f"and not one for region {region}, in which clusters are: give Keystone one "
                "endpoint there"
            )
        return urls[0]

    def _endpoints(self, service_type: str, interface: str | None) -> list[tuple[str | None, str]]:
        """Region and address of each endpoint of a service in the catalogue, in its order."""
        session = self.keystone().session
        catalogue = session.auth.get_access(session).service_catalog
        endpoints_by_service = catalogue.get_endpoints(
            service_type=service_type, interface=interface
        )
        # Cinder is in the catalogue under several types; for others there is one.
        all_endpoints = [
            endpoint for endpoints in endpoints_by_service.values() for endpoint in endpoints
        ]
        return [
            (endpoint.get("region_id") or endpoint.get("region"), endpoint["url"])
            for endpoint in all_endpoints
        ]

    def _nearest_region(self, service_type: str, region: str | None) -> str | None:
        """The region of a service that clusters do not use: theirs, or the only one that has it."""
        regions = {
            endpoint_region
            for endpoint_region, _ in self._endpoints(service_type, None)
            if endpoint_region
        }
        return next(iter(regions)) if len(regions) == 1 else region

    def _service_proxy(self, client: str, service_type: str) -> Any:
        """A proxy, None where it is not known where the service is.

        :param client: how Magnum calls the service in its options.
        :raises errors.CloudRefused: the service is there, but not in that region or not on that
            interface: what it has of a cluster cannot be told then.
        """
        region = self.region()
        if client not in _OF_CLUSTERS:
            region = self._get_client_option(client, "region_name") or self._nearest_region(
                service_type, region
            )
        url = None
        with contextlib.suppress(ka_exceptions.EndpointNotFound):
            url = self.url_for(
                service_type=service_type,
                interface=self._get_client_option(client, "endpoint_type"),
                region_name=region,
            )
        if url is None and (endpoints := self._endpoints(service_type, None)):
            raise errors.CloudRefused(
                f"This cloud has no {service_type} service in the region of clusters. Ask the "
                "operator to look into the log.",
                f"region {region}: the catalogue has '{service_type}' in "
                f"{_joined(endpoint_region or 'no region' for endpoint_region, _ in endpoints)}, "
                f"perhaps on other interfaces; see [{client}_client] region_name and endpoint_type",
            )
        if url is None:
            raise ka_exceptions.EndpointNotFound(f"the catalogue has no '{service_type}'")
        return _proxy(self.keystone().session, service_type, url)


class KeystoneClient(keystone.KeystoneClientV3):  # type: ignore[misc]
    """Magnum's Keystone client."""

    def __init__(self, context: Any, login: Callable[[], str | None]) -> None:
        super().__init__(context)
        self._client: Any = None
        self._login = login

    @property
    def auth_url(self) -> str | None:
        """Where Magnum itself logs in.

        Magnum's own property does not know ``[keystone_auth] auth_section``, and has the public
        address of ``[keystone_authtoken] www_authenticate_uri`` then.
        """
        url: str | None = self._login() or super().auth_url
        return url

    @property
    def client(self) -> Any:
        """The proxy to Keystone: where Magnum logs in itself, whatever the catalogue has first."""
        if self._client is None:
            url = self._login() or self.session.get_endpoint(
                service_type="identity", interface="public"
            )
            self._client = _proxy(self.session, "identity", url) if url else None
        return self._client or super().client


def address(url: str, service_type: str, project_id: str | None) -> str | None:
    """Where the API of a service is that has this address in the catalogue; None if that is open.

    Some catalogues have the project behind the version.
    """
    major, path = _APIS[service_type]
    parts = urllib.parse.urlsplit(url)
    steps = [step for step in parts.path.split("/") if step]
    path_steps = steps[:-1] if steps and steps[-1] == project_id else steps
    match = _VERSION.fullmatch(path_steps[-1]) if path_steps else None
    if match is None:
        # A project without a version before it, or anything behind a question mark, is nobody's.
        is_plain = path_steps == steps and not (parts.query or parts.fragment)
        return f"{url.rstrip('/')}/{path}" if is_plain else None
    return url.rstrip("/") if match[1] == major else None


def _misconfigured(detail: str) -> errors.InvalidConfiguration:
    return errors.InvalidConfiguration(
        "This Magnum service cannot manage clusters because of its configuration. Ask its "
        "operator to look into the log.",
        detail,
    )


def _joined(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names)))


def _proxy(session: Any, service_type: str, url: str) -> Any:
    endpoint = address(url, service_type, session.get_project_id())
    if endpoint is None:
        return None
    major, option = _APIS[service_type][0], service_type.replace("-", "_")
    options: dict[str, Any] = {
        f"{option}_endpoint_override": endpoint,
        f"{option}_api_version": major,
    }
    connection = sdk_connection.Connection(session=session, **options)
    proxy_class = getattr(sdk_connection.Connection, option).supported_versions[major]
    without_discovery = type(proxy_class.__name__, (proxy_class,), {"skip_discovery": True})
    description: Any = service_description.ServiceDescription(
        service_type, {major: without_discovery}
    )
    return description.__get__(connection, type(connection))
