# SPDX-License-Identifier: Apache-2.0
"""Credential checks: periodically ask Keystone whether a credential is valid.

A credential ends with its user, with the user's role in the project, or with the project. Cluster
API's OpenStack provider before 0.15 shows that on no object: nothing happens any more, and nothing
says why. So the driver logs in with it, at once where something hangs, else a few times in an hour.
"""

from __future__ import annotations

from collections.abc import Callable
import datetime
import random
import time

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import secrets
from magnum.drivers.k8s_capi_helm.reconcile.process import credential_secret
from magnum.drivers.k8s_capi_helm.reconcile.process.caches import Cache

LOG = logging.getLogger(__name__)

#: A cluster at rest needs its credential seldom, and there may be thousands.
_SELDOM = datetime.timedelta(minutes=20)
_SOON = datetime.timedelta(minutes=1)
#: How long nothing changes where something waits, until that is reason enough to ask.
_UNCHANGED = datetime.timedelta(minutes=5)
#: How long nobody has asked about a cluster that has gone.
_FORGOTTEN = datetime.timedelta(days=1)


class CredentialCheck:
    """What this process knows of the credentials of clusters; safe to share between threads.

    :param jitter: a number from 0 to 1; clusters that are seen for the first time at once are not
        all asked about at once.
    :param clock: seconds that only ever go up.
    """

    def __init__(
        self,
        jitter: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._chance = jitter
        #: When Keystone was asked last, and the answer.
        self._known: Cache[str, tuple[datetime.datetime, str]] = Cache(
            _FORGOTTEN.total_seconds(), clock
        )

    def problem(
        self,
        kube: KubeClient,
        owner: secrets.Owner,
        cloud: Callable[[], Cloud],
        now: datetime.datetime,
        *,
        is_waiting: bool,
        recorded_text: str = "",
    ) -> str:
        """A sentence for the tenant if the credential is invalid; "" if it is valid or unknown.

        :param cloud: any cloud; who logs in is the credential itself.
        :param now: aware, UTC.
        :param is_waiting: something waits, so that an answer of a minute ago is old.
        :param recorded_text: what the cluster's row says of its credential: the last answer, while
            this process has none of its own.
        """
        last = self._known.get(owner.cluster_uuid)
        # The first look at a cluster at rest counts as one that was at any time before.
        checked_at, known = last or (now - _SELDOM * self._chance(), recorded_text)
        interval = _SOON if is_waiting or known else _SELDOM
        is_due = abs(now - checked_at) >= interval
        if not is_due and (last or not is_waiting):
            self._known.get_or_put(owner.cluster_uuid, (checked_at, known))
            return known
        # Taken for asked already, so that no other thread asks at the same time.
        if not self._known.replace(owner.cluster_uuid, last, (now, known)):
            return known
        try:
            problem_text = _ask(kube, owner, cloud)
        except errors.DriverError as error:
            LOG.warning(
                "Cluster %s: credential check: %s %s", owner.cluster_uuid, error, error.detail
            )
            return known
        self._known.put(owner.cluster_uuid, (now, problem_text))
        return problem_text

    def is_due(self, cluster_uuid: str, now: datetime.datetime, *, is_waiting: bool) -> bool:
        """Whether Keystone is to be asked although nothing of the cluster has changed.

        Parameters as for :meth:`problem`.
        """
        last = self._known.get(cluster_uuid)
        if last is None:
            return True
        checked_at, known = last
        interval = _UNCHANGED if is_waiting else _SELDOM
        return abs(now - checked_at) >= (_SOON if known else interval)


def _ask(kube: KubeClient, owner: secrets.Owner, cloud: Callable[[], Cloud]) -> str:
    secrets_found = credential_secret.secrets_in_use(kube, owner)
    remedy = f"Run 'openstack coe credential rotate {owner.cluster_uuid}' as a user of its project"
    if not secrets_found:
        return f"the Secret with the cluster's application credential does not exist. {remedy}"
    for secret in secrets_found:
        for credential in secrets.credentials_of(secret):
            if not cloud().accepts(credential):
                return (
                    "Keystone does not accept the cluster's application credential any more. "
                    f"{remedy}"
                )
    return ""
