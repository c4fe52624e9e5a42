# SPDX-License-Identifier: Apache-2.0
"""Prometheus and its promtool, with which the driver's metrics and alerts are tested.

No sandbox runs them: they are built when a test needs them, and kept as other programs are. The
module has no assets of the web pages, so the server is built without them, and without the
discoveries of other systems, whose libraries would be most of what is built.
"""

from sandbox.management.binaries import Program

MODULE = "github.com/prometheus/prometheus"
VERSION = "3.16.0"
#: Of the Go module of that release.
#: https://github.com/prometheus/prometheus/blob/main/RELEASE.md
MODULE_VERSION = "0.316.0"


def _program(name: str) -> Program:
    return Program(
        name,
        "prometheus",
        f"{MODULE}/cmd/{name}",
        VERSION,
        ("--version",),
        f"-X github.com/prometheus/common/version.Version={VERSION}",
        tags="remove_all_sd",
    )


PROMETHEUS, PROMTOOL = (_program(name) for name in ("prometheus", "promtool"))
