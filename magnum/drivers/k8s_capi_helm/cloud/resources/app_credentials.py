# SPDX-License-Identifier: Apache-2.0
"""Application credentials of clusters: check whether Keystone accepts one, list a user's."""

from __future__ import annotations

from collections.abc import Mapping
import datetime
from typing import Any

from keystoneauth1 import exceptions as ka_exceptions
from keystoneauth1 import session as ka_session
from keystoneauth1.identity import v3
from openstack import exceptions as sdk_exceptions

from magnum.drivers.k8s_capi_helm.cloud.access.services import (
    is_object_missing,
    list_all,
    Services,
    translate_errors,
)
from magnum.drivers.k8s_capi_helm.model import ApplicationCredential, conditions

_TIMEOUT = 10.0


def credential_names(services: Services, user_id: str, project_id: str) -> Mapping[str, str]:
    """Names of a user's credentials for a project, by id; none of a user who is gone.

    :raises errors.CloudRefused: Keystone does not tell this person.
    :raises errors.CloudUnreachable: Keystone does not answer.
    """
    credentials, subject = _credentials(services, user_id, project_id)
    with translate_errors("Keystone", subject):
        return {credential.id: str(credential.name or "") for credential in credentials}


def credential_expiries(
    services: Services, user_id: str, project_id: str
) -> Mapping[str, datetime.datetime | None]:
    """When a user's credentials for a project end (aware), None for never, by id.

    :raises errors.DriverError: as of :func:`credential_names`.
    """
    credentials, subject = _credentials(services, user_id, project_id)
    with translate_errors("Keystone", subject):
        ends = ((credential.id, credential.expires_at) for credential in credentials)
        return {credential_id: conditions.instant(end) for credential_id, end in ends}


def _credentials(services: Services, user_id: str, project_id: str) -> tuple[list[Any], str]:
    """A user's credentials for a project, and what was asked for, for people."""
    keystone, subject = services.keystone(), f"the application credentials of user '{user_id}'"

    def question() -> list[Any]:
        try:
            return list(keystone.client.application_credentials(user_id))
        except sdk_exceptions.NotFoundException as error:
            if is_object_missing(error, user_id):
                return []
            raise

    credentials = list_all("Keystone", subject, question)
    of_project = [
        credential for credential in credentials if credential.project_id in (None, project_id)
    ]
    return of_project, subject


def is_valid(services: Services, credential: ApplicationCredential) -> bool:
    """Whether Keystone gives a token for *credential*.

    :raises errors.CloudUnreachable: Keystone does not answer.
    """
    keystone = services.keystone()
    # Where Magnum itself logs in: a conductor need not have a way to what clusters use.
    base = str(keystone.auth_url).rstrip("/")
    login = v3.ApplicationCredential(
        auth_url=base if base.endswith("/v3") else f"{base}/v3",
        application_credential_id=credential.id,
        application_credential_secret=credential.secret,
        include_catalog=False,
    )
    known = keystone.session
    session = ka_session.Session(
        auth=login, session=known.session, verify=known.verify, cert=known.cert, timeout=_TIMEOUT
    )
    with translate_errors("Keystone", f"application credential '{credential.id}'"):
        try:
            return bool(session.get_token())
        except ka_exceptions.Unauthorized:
            return False
        except ka_exceptions.NotFound as error:
            # Where it, its user or its project is gone, Keystone says so in its own words.
            if _is_keystones(error):
                return False
            raise


def _is_keystones(error: ka_exceptions.NotFound) -> bool:
    try:
        body = error.response.json() if error.response is not None else None
    except ValueError:
        return False
    return isinstance(body, dict) and "Could not find" in str(body.get("error") or "")
