# SPDX-License-Identifier: Apache-2.0
"""Options about time: timeouts of requests, of Helm and of operations, and the lock's duration."""

from __future__ import annotations

from oslo_config import cfg

OPTIONS = [
    cfg.FloatOpt(
        "management_connect_timeout",
        default=5.0,
        min=0.1,
        help="Timeout, in seconds, of a connection to the management cluster.",
    ),
    cfg.FloatOpt(
        "management_read_timeout",
        default=30.0,
        min=0.1,
        help="Timeout, in seconds, of a response from the management cluster.",
    ),
    cfg.IntOpt(
        "helm_timeout",
        default=120,
        min=10,
        help="Timeout, in seconds, that a Helm process gets as its --timeout. A process that has "
        "not ended 15 seconds later is terminated, and killed three seconds after that. Must be "
        "more than 18 below lease_duration.",
    ),
    cfg.FloatOpt(
        "lock_wait",
        default=10.0,
        min=0,
        help="Seconds that a creation, an upgrade, a deletion and the rotation of a credential "
        "wait for another operation on the same cluster. After that a creation and a rotation are "
        "refused, and the others are left to the periodic task. All other requests do not wait: "
        "they are recorded, and the other operation applies them.",
    ),
    cfg.FloatOpt(
        "lease_duration",
        default=150.0,
        min=15,
        help="Seconds without a renewal of a release's Lease after which another conductor takes "
        "over the lock of a conductor that no longer responds. The lock of a process that has "
        "ended on the same host, in the same PID namespace, is taken over at once.",
    ),
    cfg.IntOpt(
        "server_start_timeout",
        default=600,
        min=0,
        help="Seconds after which auto healing replaces a machine whose server never became "
        "active, for example because a quota was exceeded. Must be longer than the slowest server "
        "start in this cloud. Workers have twice the time, because theirs starts while the "
        "control plane is being created. 0 selects the chart's default. Existing clusters keep "
        "their value.",
    ),
    cfg.IntOpt(
        "bare_metal_start_timeout",
        default=3600,
        min=0,
        help="Seconds after which auto healing replaces a machine whose server never became "
        "active, for clusters whose template has the server type bm: bare metal deployment takes "
        "longer. 0 selects the chart's default. Existing clusters keep their value.",
    ),
    cfg.IntOpt(
        "update_timeout",
        default=60,
        min=0,
        help="Minutes after which an unfinished change of a cluster becomes UPDATE_FAILED; 0 for "
        "no limit. The creation of a cluster has its own create_timeout.",
    ),
    cfg.IntOpt(
        "delete_timeout",
        default=60,
        min=0,
        help="Minutes after which an unfinished deletion becomes DELETE_FAILED; 0 for no limit.",
    ),
]
