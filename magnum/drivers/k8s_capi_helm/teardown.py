# SPDX-License-Identifier: Apache-2.0
"""One pass of a deletion: the steps that deletion.py decides, until one has to be waited for."""

from __future__ import annotations

from collections.abc import Callable
import datetime
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import (
    belongings,
    deletion,
    errors,
    names,
    observer,
    ownership,
    secrets,
)
from magnum.drivers.k8s_capi_helm.assembly import Ports
from magnum.drivers.k8s_capi_helm.cloud import Cloud
from magnum.drivers.k8s_capi_helm.model import Json
from magnum.drivers.k8s_capi_helm.operations import Hold

LOG = logging.getLogger(__name__)

#: More steps than a deletion has kinds of: a pass that needs more goes round in circles.
_MOST_STEPS = 8


def advance(
    ports: Ports,
    owner: secrets.Owner,
    cloud: Callable[[], Cloud],
    conf: Any,
    now: datetime.datetime,
) -> deletion.Step:
    """Carry a deletion on as far as it goes now, under the release's lock.

    :param cloud: the cloud as Magnum's service user sees it; removes the application credential and
        what else was made for the cluster.
    :returns: the step at which the pass stopped: DONE, WAIT or NO_PROOF.
    :raises errors.DriverError: the management cluster or Keystone could not be asked.
    """
    if not ownership.is_proved(ports, owner):
        return _next(ports, owner, proof=False, now=now)
    with ports.operations.hold(
        owner.namespace, owner.release, wait=conf.capi_helm.lock_wait
    ) as hold:
        for _ in range(_MOST_STEPS):
            proof = ownership.is_proved(ports, owner)
            step = _next(ports, owner, proof=proof, now=now)
            if step.action in deletion.STOPS:
                return step
            LOG.info("Deletion of release %s: %s.", owner.release, step.action.value)
            _carry_out(ports, owner, cloud, step, hold)
        return step


def _next(
    ports: Ports, owner: secrets.Owner, *, proof: bool, now: datetime.datetime
) -> deletion.Step:
    record = ports.operations.read(owner.namespace, owner.release)
    return deletion.next_step(
        observer.look(ports.kube, owner.namespace, owner.release, now),
        proof=proof,
        release_present=ports.helm.live(owner.namespace, owner.release) is not None,
        secrets_present=bool(_own_secrets(ports, owner)),
        buried=record is not None and record.tombstone,
    )


def _carry_out(
    ports: Ports, owner: secrets.Owner, cloud: Callable[[], Cloud], step: deletion.Step, hold: Hold
) -> None:
    match step.action:
        case deletion.Action.DELETE_CLUSTER:
            for target in step.targets:
                ports.kube.delete(target.kind, owner.namespace, target.name, uid=target.uid)
        case deletion.Action.UNINSTALL:
            ports.helm.uninstall(owner.namespace, owner.release, hold=hold)
        case deletion.Action.REMOVE_SECRETS:
            _remove_secrets(ports, owner, cloud)
        case deletion.Action.BURY:
            belongings.remove(cloud(), owner)
            _sweep_charts(ports, owner)
            ports.operations.bury(owner.namespace, owner.release)


def _remove_secrets(ports: Ports, owner: secrets.Owner, cloud: Callable[[], Cloud]) -> None:
    """The application credential first: its id is known from its Secret only."""
    found = _own_secrets(ports, owner)
    for secret in found:
        for credential in secrets.credentials_of(secret):
            cloud().delete_credential(secrets.user_of(secret, owner), credential.id)
    record = ports.operations.read(owner.namespace, owner.release)
    for retired in record.retired if record else ():
        cloud().delete_credential(retired.user, retired.id)
    for secret in found:
        ports.kube.delete(names.SECRET, owner.namespace, secret["metadata"]["name"])


def _sweep_charts(ports: Ports, owner: secrets.Owner) -> None:
    """Take away the copies of charts that no other cluster of the namespace has.

    While one of them has not noted its chart all stay; the next deletion looks again.
    """
    try:
        used = ports.operations.chart_digests(owner.namespace, without=owner.release)
        if "" not in used:
            ports.charts.sweep(owner.namespace, used)
    except errors.DriverError as error:
        LOG.warning("Copies of charts in %s stay behind: %s", owner.namespace, error.detail)


def _own_secrets(ports: Ports, owner: secrets.Owner) -> list[Json]:
    selector = {names.LABEL_UUID: owner.cluster_uuid}
    return ports.kube.list(names.SECRET, owner.namespace, selector)
