# SPDX-License-Identifier: Apache-2.0
"""Refuse a Helm release that is older than the revision recorded in the Lease.

Helm keeps each revision in a Secret of its own. Where the newest of them are deleted, or a backup
brings back older ones only, what is left looks like a release that is merely smaller, or has not
been upgraded yet. So the Lease has the numbers of the newest revision that was ever seen and of the
newest that was applied as a whole; a record that has neither is refused, and nothing is changed.

The numbers only go up, whoever runs Helm: an upgrade or a rollback by hand makes a higher one. They
begin anew only where a release that is lost is installed over its objects, and that is noted
before Helm begins. A number that is not noted yet, because a conductor died between Helm's success
and its note, does no harm: nothing is taken off the record of pending operations before it is, so
what the revision has changed is still asked for, and is applied again should it be lost.
"""

from __future__ import annotations

import contextlib

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import LiveRelease, names, ReleaseRecord, Revisions
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import ReleaseSnapshot
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients

LOG = logging.getLogger(__name__)

#: Of an installation where there is no release (any more).
FIRST = 1
_SUPERSEDED = "superseded"
_WHAT = "Helm's record of this cluster is older than the cluster"


def outdated(
    record: ReleaseRecord | None, live: LiveRelease | None
) -> errors.ReleaseOutdated | None:
    """Why what Helm has as the newest revision is not believed, None if it is.

    :param record: read before *live*, so that a revision that was made in between is no news.
    """
    if live is None:
        return None
    known = record.revisions if record else Revisions()
    if live.status != _SUPERSEDED:
        if live.revision == known.pending_install:
            return None
        if live.revision >= known.newest and live.whole >= known.last_applied:
            return None
    return errors.ReleaseOutdated(
        f"{_WHAT}, so it is not known what it runs. Nothing was changed. Ask the operator to "
        f"restore the newest Secrets of the release ('sh.helm.release.v1.{live.name}.v*').",
        f"{live.namespace}/{live.name}: the newest revision is {live.revision} ({live.status}) and "
        f"the newest applied one {live.whole or 'none'}; Lease {names.lease(live.name)} records "
        f"{known.newest} and {known.last_applied}",
    )


def notice(error: errors.ReleaseOutdated | None) -> str:
    """What is to be said of a cluster whose record is refused, "" if it is not."""
    return f"{_WHAT}: no change is made until the operator has restored it." if error else ""


def unrecorded_revisions(
    record: ReleaseRecord | None, live: LiveRelease | None
) -> Revisions | None:
    """What the Lease is to know of a record that is believed, None if it does."""
    if record is None or live is None:
        return None
    revisions = Revisions(newest=live.revision, last_applied=live.whole)
    return None if revisions == record.revisions else revisions


def read_record_and_release(
    clients: Clients,
    namespace: str,
    release: str,
    record: ReleaseRecord | None = None,
    live: LiveRelease | None = None,
) -> tuple[ReleaseRecord | None, LiveRelease | None]:
    """The Lease's record and the live release, whose revision is noted.

    :param record: as it was read a moment ago; None to read it.
    :param live: the same of the release, read after the record.
    :raises errors.ReleaseOutdated: the release is older than the Lease says.
    :raises errors.DriverError: the management cluster cannot be used.
    """
    record = record or clients.leases.read(namespace, release)
    live = live or clients.helm.live(namespace, release)
    if outdated(record, live):
        # Somebody may have begun to count anew between the two.
        record = clients.leases.read(namespace, release)
        live = clients.helm.live(namespace, release)
    if refused := outdated(record, live):
        raise refused
    new = unrecorded_revisions(record, live)
    if record is not None and new is not None:
        record = clients.leases.record_revisions(namespace, release, record.revisions, new)
    return record, live


def read_for_request(
    clients: Clients, namespace: str, release: str, record: ReleaseRecord | None
) -> tuple[ReleaseSnapshot, errors.DriverError | None]:
    """Record and release for a request, and why the release is not known, None if it is.

    :param record: as the request has read it a moment ago.
    """
    try:
        return ReleaseSnapshot(*read_record_and_release(clients, namespace, release, record)), None
    except errors.DriverError as error:
        return ReleaseSnapshot(record, None), error


def deployed_release(
    clients: Clients, namespace: str, release: str, record: ReleaseRecord | None = None
) -> LiveRelease | None:
    """The live release, None without one.

    :param record: as it was read a moment ago; None to read it.
    :raises errors.ReleaseOutdated: it is older than the Lease says.
    :raises errors.DriverError: the management cluster cannot be used.
    """
    return read_record_and_release(clients, namespace, release, record)[1]


def require(
    clients: Clients, namespace: str, release: str, record: ReleaseRecord | None = None
) -> None:
    """Refuse a request as long as the release is older than the Lease says.

    While the management cluster does not answer nobody can tell; the passes that act look again.

    :param record: as it was read a moment ago; None to read it.
    :raises errors.ReleaseOutdated: it is.
    :raises errors.DriverError: the management cluster refuses.
    """
    with contextlib.suppress(errors.ManagementUnreachable):
        read_record_and_release(clients, namespace, release, record)
