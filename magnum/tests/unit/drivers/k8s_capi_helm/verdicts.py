# SPDX-License-Identifier: Apache-2.0
"""How the tests of the judge ask it, and look up what it said."""

from __future__ import annotations

import dataclasses

from magnum.drivers.k8s_capi_helm import model, status
from magnum.tests.unit.drivers.k8s_capi_helm.scenes import NOW

VERSIONS = ("v1beta2", "v1beta1")


def twice(observed: model.Observed, state: model.MagnumState) -> model.Verdict:
    """The verdict of the second of two equal looks."""
    first = status.judge(observed, state, NOW)
    return status.judge(observed, dataclasses.replace(state, first_look=first.fingerprint), NOW)


def row(verdict: model.Verdict, name: str) -> model.GroupVerdict:
    """The verdict on one nodegroup."""
    return next(one for one in verdict.groups if one.name == name)
