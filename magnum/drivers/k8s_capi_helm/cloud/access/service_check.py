# SPDX-License-Identifier: Apache-2.0
"""Check each OpenStack service with one small request, as the operator's command does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import functools
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud.access.services import list_all, Services

#: A name that nothing has: the answer is short, however much a cloud has.
_NOTHING = "k8s-capi-helm check"
#: Service, what it is asked for, and how.
_QUESTIONS: tuple[tuple[str, str, Callable[[Services], Any]], ...] = (
    ("Glance", "images", lambda services: services.glance().images(name=_NOTHING)),
    ("Nova", "availability zones", lambda services: services.nova().availability_zones()),
    ("Neutron", "networks", lambda services: services.neutron().networks(name=_NOTHING)),
    ("Cinder", "availability zones", lambda services: services.cinder().availability_zones()),
    ("Octavia", "providers", lambda services: services.octavia().providers()),
)


def service_errors(services: Services) -> Iterator[tuple[str, errors.DriverError | None]]:
    """What keeps each service from an answer, None where it gives one.

    Keystone has answered before: nothing is asked without a token.
    """
    for service, subject, question in _QUESTIONS:
        try:
            list_all(service, subject, functools.partial(question, services))
        except errors.DriverError as error:
            yield service, error
        else:
            yield service, None
