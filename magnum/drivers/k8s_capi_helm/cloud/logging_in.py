# SPDX-License-Identifier: Apache-2.0
"""Logging in with a cluster's application credential, to see whether Keystone takes it."""

from __future__ import annotations

from keystoneauth1 import exceptions as ka_exceptions
from keystoneauth1 import session as ka_session
from keystoneauth1.identity import v3

from magnum.drivers.k8s_capi_helm.cloud.services import asking, Services
from magnum.drivers.k8s_capi_helm.model import ApplicationCredential

_TIMEOUT = 10.0


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
