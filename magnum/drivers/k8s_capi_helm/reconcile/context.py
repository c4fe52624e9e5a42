# SPDX-License-Identifier: Apache-2.0
"""What one reconciliation has read of its release, handed down instead of read again."""

from __future__ import annotations

import dataclasses

from magnum.drivers.k8s_capi_helm.model import LiveRelease, ReleaseRecord


@dataclasses.dataclass(frozen=True, slots=True)
class ReleaseSnapshot:
    """Record and deployed release, the record read first.

    It is read again after the lock was taken, and before Magnum's objects are written.

    :ivar record: None where there is no Lease.
    :ivar live: None where Helm has no release.
    """

    record: ReleaseRecord | None
    live: LiveRelease | None
