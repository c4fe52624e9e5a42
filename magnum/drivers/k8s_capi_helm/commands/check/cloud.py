# SPDX-License-Identifier: Apache-2.0
"""Checks of the cloud: Keystone, region, and each service that clusters need."""

from __future__ import annotations

from collections.abc import Iterator

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.check.result import (
    CheckResult,
    error_result,
    good_result,
    warning_result,
)
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import ca_bundle


def check_cloud(run: Reconciliation) -> Iterator[CheckResult]:
    """Magnum's service user can log in, and each service answers in the region of clusters."""
    interface = run.settings.capi_helm.app_cred_interface_type
    try:
        cloud = run.cloud()
        region, url = cloud.region(), cloud.auth_url(interface)
    except errors.DriverError as error:
        yield error_result(
            error, "Check [keystone_auth], [keystone_authtoken] and the region options."
        )
        return
    yield good_result(f"Clusters are in region {region or '(none)'}, and log in at {url}.")
    for service, problem in cloud.service_errors():
        if problem is None:
            yield good_result(f"{service} answers.")
        elif isinstance(problem, errors.EndpointNotFound):
            yield warning_result(
                f"The catalogue has no {service}: clusters that need it are refused. Add its "
                "endpoint if the cloud has it."
            )
        else:
            yield error_result(problem, f"Check the endpoint and the log of {service}.")


def check_authority(run: Reconciliation) -> Iterator[CheckResult]:
    """The certificates with which clusters verify the cloud can be read."""
    try:
        ca_bundle(run.settings)
    except errors.DriverError as error:
        yield error_result(error, "Correct the option, or that file.")
    else:
        own = run.settings.drivers.openstack_ca_file
        yield good_result(f"Clusters verify the cloud by {own or 'the certificates of certifi'}.")
