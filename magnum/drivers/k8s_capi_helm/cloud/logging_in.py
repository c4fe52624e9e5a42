# SPDX-License-Identifier: Apache-2.0
"""Application credentials of clusters: whether Keystone takes one, and which a user has."""

from __future__ import annotations

from keystoneauth1 import exceptions as ka_exceptions
from keystoneauth1 import session as ka_session
from keystoneauth1.identity import v3
from openstack import exceptions as sdk_exceptions

from magnum.drivers.k8s_capi_helm.cloud.services import asking, Services
from magnum.drivers.k8s_capi_helm.model import ApplicationCredential

_TIMEOUT = 10.0


def credentials_named(services: Services, user_id: str, beginning: str) -> tuple[str, ...]:
    """Ids of a user's credentials whose names begin so; none of one who is gone.

    :raises errors.CloudRefused: Keystone does not tell this person.
    :raises errors.CloudUnreachable: Keystone does not answer.
    """
    keystone = services.keystone()
    with asking("Keystone", f"the application credentials '{beginning}'"):
        try:
            listed = list(keystone.client.application_credentials(user_id))
        except sdk_exceptions.NotFoundException:
            return ()
    return tuple(one.id for one in listed if (one.name or "").startswith(beginning))


def logged_in(services: Services, credential: ApplicationCredential) -> bool:
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
    with asking("Keystone", f"application credential '{credential.id}'"):
        try:
            return bool(session.get_token())
        except (ka_exceptions.Unauthorized, ka_exceptions.NotFound):
            # 404 where its user or project is gone.
            return False
