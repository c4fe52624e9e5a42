# SPDX-License-Identifier: Apache-2.0
"""All requests to Keystone, Glance, Nova, Neutron, Cinder and Octavia.

Works on openstacksdk proxies that the shell hands in (Magnum makes them from its configuration), so
nothing here knows Magnum. Every call has a timeout and a bounded number of retries; library errors
become :class:`errors.CloudUnreachable` (try again) or :class:`errors.CloudRefused` (somebody must
act).
"""

from magnum.drivers.k8s_capi_helm.cloud.access.services import ServiceClients, Services
from magnum.drivers.k8s_capi_helm.cloud.client import Cloud

__all__ = ["Cloud", "ServiceClients", "Services"]
