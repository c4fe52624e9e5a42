# SPDX-License-Identifier: Apache-2.0
"""Errors: a sentence for the tenant, a detail for the operator, retryable or not.

Magnum's conductor writes ``str(error)`` into ``status_reason``, which a tenant reads. So ``str()``
of every error here is the user's sentence (what is wrong, with which value, what to do), and
everything that only an operator may or can use is in :attr:`DriverError.detail`, which goes to the
log.
"""

from __future__ import annotations

import enum

from magnum.drivers.k8s_capi_helm.errors import column_limits


class Cause(str, enum.Enum):
    """The class in front of a reason: who has to move, at a glance."""

    __str__ = str.__str__

    QUOTA = "quota"
    CAPACITY = "capacity"
    NETWORK = "network"
    IMAGE = "image"
    CREDENTIAL = "credential"
    BOOTSTRAP = "bootstrap"
    ADDON = "addon"
    PERMISSION = "permission"
    REQUEST = "request"
    TIMEOUT = "timeout"
    MANAGEMENT = "management"
    INTERNAL = "internal"


class DriverError(Exception):
    """Base of everything this driver raises; a library's own error never crosses a port.

    Magnum's API hands on the text before the first full stop as the title of a refusal, and
    ``openstack`` prints nothing else. So the first sentence says what is wrong without anything
    that has a dot in it: versions, addresses and names come in the second one.

    :param sentence: for the tenant: what is wrong, with which value, and what to do. No secrets.
        Magnum saves it as it is, so it is kept as a database takes it.
    :param detail: for the operator's log: the other side's words, exit codes, paths. No secrets.
    """

    cause: Cause = Cause.INTERNAL
    #: True when it is only a matter of time: nobody has to do anything.
    transient: bool = False
    #: True when the same call may succeed later without anybody changing the request.
    retryable: bool = False

    def __init__(self, sentence: str, detail: str = "") -> None:
        sentence = column_limits.sentence(sentence)
        super().__init__(sentence)
        self.sentence = sentence
        self.detail = detail

    def __str__(self) -> str:
        return self.sentence


class InvalidRequest(DriverError):
    """A field of the rows is wrong or not supported; nothing was touched."""

    cause = Cause.REQUEST


class InvalidLabel(InvalidRequest):
    """A label's text does not have the label's form.

    :param label: name of the label.
    :param value: the text as the tenant gave it.
    :param expected: the form, as an ending of the sentence "expected ...".
    """

    def __init__(self, label: str, value: str, expected: str) -> None:
        super().__init__(
            f"Label '{label}' has an invalid value. The value is '{value}': expected {expected}. "
            "Correct the label and send the request again."
        )
        self.label = label
        self.value = value
        self.expected = expected


class DoesNotFit(InvalidRequest):
    """What is asked for cannot be built in this project of this cloud; nothing was touched."""


class InvalidConfiguration(InvalidRequest):
    """The operator's configuration cannot be used; no other request would succeed."""

    cause = Cause.INTERNAL


class NotOwned(DriverError):
    """The cluster was not made by this driver, or not on this management cluster."""

    cause = Cause.PERMISSION


class ProofNotFound(NotOwned):
    """Nothing on this management cluster shows that it ever had the cluster."""

    cause = Cause.MANAGEMENT


class ManagementUnreachable(DriverError):
    """The management cluster does not answer (connection, timeout, 5xx, 429)."""

    cause = Cause.MANAGEMENT
    retryable = True


class ManagementRefused(DriverError):
    """The management cluster answered no: not authorised, admission or validation failed."""

    cause = Cause.PERMISSION


class NotAllowed(ManagementRefused):
    """The management cluster authenticates the driver and refuses the request (HTTP 403)."""


class Conflict(DriverError):
    """Another client has changed or created the object first: read it and decide again."""

    transient = True
    retryable = True


class Busy(DriverError):
    """Another worker holds the release; its pass, or the next periodic one, carries the work on."""

    transient = True
    retryable = True


class LockHeld(Busy):
    """Another worker has the lock of the release."""


class ReleaseLost(DriverError):
    """The release is gone, its objects are not, and what the rows say is not what runs."""

    cause = Cause.MANAGEMENT


class ReleaseOutdated(DriverError):
    """Helm has older revisions of the release only than what was applied."""

    cause = Cause.MANAGEMENT


class RecordFull(InvalidRequest):
    """The Lease of a release holds all that it may; nothing was touched."""


class HelmUnusable(DriverError):
    """The helm binary is missing, cannot be run, or has an unsupported version."""


class HelmInterrupted(DriverError):
    """helm ran out of time, was killed, or lost its connection; the release may be half-way."""

    cause = Cause.MANAGEMENT
    retryable = True


class HelmRefused(DriverError):
    """helm could not render the chart, or the management cluster refused an object of it."""


class ValuesRefused(HelmRefused):
    """The chart's schema does not accept the values; nothing was written.

    :param keys: paths of the keys that it names.
    """

    def __init__(
        self, sentence: str, detail: str = "", keys: tuple[tuple[str, ...], ...] = ()
    ) -> None:
        super().__init__(sentence, detail)
        self.keys = keys


class ChartNotFound(DriverError):
    """No source has the chart in the wanted version."""


class RegistryUnreachable(DriverError):
    """A registry of container images does not answer or answered 5xx."""

    retryable = True


class RegistryRefused(DriverError):
    """A registry does not have an image, wants a login, or sends something else."""


class CloudUnreachable(DriverError):
    """An OpenStack service does not answer or answered 5xx."""

    retryable = True


class CloudRefused(DriverError):
    """An OpenStack service refused: not found, forbidden, over quota."""


class EndpointNotFound(CloudRefused):
    """The catalogue of the cloud has no such service: there is nothing of it, and never was."""
