# SPDX-License-Identifier: Apache-2.0
"""The autoscaler on the management cluster follows the operator's options.

Each run of Helm gives a release the image, the limits and the rights that the operator has set now;
a release of an older driver or chart, into which a tenant's label could have got, is brought there
by its next operation, or at once where the operator says so.
"""

from __future__ import annotations

from collections.abc import Mapping
import re
from typing import Any

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import chart_store, errors
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.model import Chart, Json, LiveRelease, names
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.reconcile.release import project_namespace
from magnum.drivers.k8s_capi_helm.values.sections import autoscaler
from magnum.drivers.k8s_capi_helm.values.tree import live as values_live
from magnum.drivers.k8s_capi_helm.values.upgrade import upgrade

LOG = logging.getLogger(__name__)

#: Since when this project's charts restrict and limit the pod themselves.
_GUARDED_SINCE = (1, 3)
_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*")
_TAG = re.compile(
    r"((?P<minor>\d+\.\d+)=)?(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[0-9a-f]{64})?)"
)
_MINOR = re.compile(r"v?(\d+\.\d+)\.")
_SENTENCE = (
    "This Magnum service cannot change clusters because of its configuration. Ask its operator to "
    "look into the log."
)


def with_operators_settings(values: Json, chart: Chart, conf: Settings) -> Json:
    """The values for a run of Helm, with the autoscaler as the operator has it.

    :returns: new values, or the very ones where the chart makes no autoscaler of them.
    :raises errors.InvalidConfiguration: an option about it cannot be used, or the chart lets a
        tenant choose what runs.
    """
    if _is_reachable(values, chart.family) and chart_store.uses_tenant_registry(chart):
        raise _exposed(chart)
    return _desired_values(values, chart.family, chart.version, conf)


def is_due(live: LiveRelease | None, conf: Settings) -> bool:
    """Whether the autoscaler of a release is another one than the operator has set.

    Not where that cannot be told because an option cannot be used: the next run of Helm says so.
    """
    if live is None or live.status != "deployed":
        return False
    if live.takes_prefix and _is_reachable(live.values, live.chart_family):
        return True
    if not _has_autoscaler(live.values):
        return False
    try:
        desired = _desired_values(live.values, live.chart_family, live.chart_version, conf)
    except errors.InvalidConfiguration as error:
        LOG.error("Release %s: its autoscaler is not checked: %s", live.name, error.detail)
        return False
    return desired != live.values


def has_values(live: LiveRelease, values: Json, conf: Settings) -> bool:
    """Whether a release has these values, and its autoscaler is the operator's."""
    return live.status == "deployed" and live.values == values and not is_due(live, conf)


def notice(live: LiveRelease | None, conf: Settings) -> str:
    """What is to be said of a release whose autoscaler is another one, "" for all others."""
    if not is_due(live, conf):
        return ""
    return (
        "The cluster autoscaler differs from what this cloud's operator has set. The next change "
        "of the cluster, or a resize to its current size, corrects that; no machine is replaced."
    )


def enforce_pod_security(clients: Clients, namespace: str, conf: Settings) -> None:
    """Have Kubernetes enforce the operator's level in a namespace that was there before it could.

    Helm is through by then, so trouble is for the log: the next run tries again.
    """
    try:
        project_namespace.enforce_pod_security(
            clients, namespace, conf.capi_helm.pod_security_level
        )
    except errors.DriverError as error:
        LOG.warning(
            "Namespace %s has no Pod Security level and cannot be labelled: %s. Apply the driver's "
            "rbac.yaml, or label the namespace.",
            namespace,
            error.detail or error,
        )


def _desired_values(values: Json, family: str, version: str, conf: Settings) -> Json:
    """The values with the autoscaler as it is set, for a chart of that family and version."""
    if family == names.CHART_FAMILY and not _autoscales(values):
        return values
    guarded = names.is_own_chart_since(_GUARDED_SINCE, family, version)
    return autoscaler.with_image(values, _image(values, conf), is_restricted=guarded)


def _exposed(chart: Chart) -> errors.InvalidConfiguration:
    """The error for a chart with a tenant's registry that nobody here knows how to mend."""
    return errors.InvalidConfiguration(
        "The cluster's chart takes the image of the cluster autoscaler from the registry of the "
        "label 'container_infra_prefix', and the autoscaler runs outside of the cluster. Nothing "
        "was changed. Leave out the label or 'auto_scaling_enabled', or ask the operator for "
        "another chart.",
        f"{chart.name} {chart.version}: {autoscaler.TEMPLATES} has global.imageRegistryPrefix",
    )


def _autoscales(values: Mapping[str, Any]) -> bool:
    return any(
        values_live.is_autoscaled(entry) for entry in values_live.node_groups(values).values()
    )


def _is_reachable(values: Mapping[str, Any], family: str) -> bool:
    """Whether there is an autoscaler, and a registry of a tenant's that its image could be from.

    Charts of other families make one whatever the nodegroups are.
    """
    makes_one = family != names.CHART_FAMILY or _autoscales(values)
    return makes_one and autoscaler.has_prefix(values)


def _has_autoscaler(values: Mapping[str, Any]) -> bool:
    """Whether it matters: reference charts make one for clusters without a group for it as well."""
    return _autoscales(values) or autoscaler.names_image(values)


def _image(values: Mapping[str, Any], conf: Settings) -> dict[str, str]:
    name, image = conf.capi_helm.autoscaler_image, {}
    if name:
        if not _NAME.fullmatch(name):
            raise _unusable("autoscaler_image", name, "REGISTRY/PATH without a tag")
        image["repository"] = name
    tags = {}
    for text in conf.capi_helm.autoscaler_image_tags:
        entry = _TAG.fullmatch(text)
        if entry is None:
            raise _unusable("autoscaler_image_tags", text, "MINOR=TAG, like 1.36=v1.36.1, or TAG")
        tags[entry["minor"]] = entry["tag"]
    minor = _MINOR.match(upgrade.versions(values)[values_live.CONTROL_PLANE])
    if tag := tags.get(minor[1] if minor else None, tags.get(None)):
        image["tag"] = tag
    return image


def _unusable(option: str, text: str, expected: str) -> errors.InvalidConfiguration:
    detail = f"[capi_helm] {option} has {text!r}: expected {expected}"
    return errors.InvalidConfiguration(_SENTENCE, detail)
