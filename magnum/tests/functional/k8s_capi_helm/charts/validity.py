# SPDX-License-Identifier: Apache-2.0
"""What an API server that forgives nothing would say of an object."""

from __future__ import annotations

from collections.abc import Sequence

from magnum.tests.functional.k8s_capi_helm.charts import crds, kubernetes_kinds
from magnum.tests.functional.k8s_capi_helm.charts.crds import Release
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object


def faults(found: Object, among: Sequence[Release] | None = None) -> list[str]:
    """All that is wrong with an object.

    :param among: releases that must know it, as for :func:`crds.validate`.
    """
    result = kubernetes_kinds.metadata_faults(found)
    if kubernetes_kinds.knows(found):
        return result + kubernetes_kinds.faults(found)
    try:
        crds.validate(found, among)
    except crds.Invalid as error:
        result.append(str(error))
    return result
