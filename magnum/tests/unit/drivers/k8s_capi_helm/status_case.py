# SPDX-License-Identifier: Apache-2.0
"""How the tests of the judge ask it, and look up what it said."""

from __future__ import annotations

import dataclasses

from magnum.drivers.k8s_capi_helm import model, status
from magnum.tests.unit.drivers.k8s_capi_helm.builders import NOW

VERSIONS = ("v1beta2", "v1beta1")


def twice(observed: model.Observed, state: model.MagnumState) -> model.Verdict:
    """The verdict of the second of two equal looks."""
    return status.evaluate(observed, after(status.evaluate(observed, state, NOW), state), NOW)


def after(verdict: model.Verdict, state: model.MagnumState) -> model.MagnumState:
    """The state that the next look is judged by: it knows what this one has found in place."""
    looks = {one.name: one.fingerprint for one in verdict.groups}
    groups = tuple(
        dataclasses.replace(one, ready_fingerprint=looks.get(one.name, "")) for one in state.groups
    )
    return dataclasses.replace(state, ready_fingerprint=verdict.fingerprint, groups=groups)


def row(verdict: model.Verdict, name: str) -> model.GroupVerdict:
    """The verdict on one nodegroup."""
    return next(one for one in verdict.groups if one.name == name)
