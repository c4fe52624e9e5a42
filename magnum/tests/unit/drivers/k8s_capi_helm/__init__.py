# SPDX-License-Identifier: Apache-2.0
"""Unit tests of the driver: no Go, no network.

Properties are tried with the same inputs each time, and a slow machine is no fault of theirs.
``HYPOTHESIS_PROFILE=explore`` looks for new inputs, and for more of them.
"""

import os

import hypothesis

_PATIENT = {
    "database": None,
    "deadline": None,
    "suppress_health_check": (hypothesis.HealthCheck.too_slow,),
}
hypothesis.settings.register_profile("steady", derandomize=True, **_PATIENT)
hypothesis.settings.register_profile("explore", max_examples=2000, **_PATIENT)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or "steady")
