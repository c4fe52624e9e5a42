# SPDX-License-Identifier: Apache-2.0
"""Render values: the driver's, the operator's overlays, the request.

An overlay wins over the driver's and the site's defaults and loses against what Magnum's rows ask
for. So three renders are made: without anything that the rows ask for (*base*), with all of it
(*full*), and for every label that was given one with another value of it. What differs from *full*
was asked for, also where somebody asked for what is the default anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import contextlib
import dataclasses
from typing import Any

from magnum.drivers.k8s_capi_helm import conf as conf_module
from magnum.drivers.k8s_capi_helm import errors, helm_values, labels
from magnum.drivers.k8s_capi_helm.conf import overlay_files, overlay_template, overlay_yaml
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.model import Chart, CloudFacts, ClusterRequest, Json, names
from magnum.drivers.k8s_capi_helm.values.tree import merge, reserved_keys

#: Where an operator says what stands below keys of the driver's, for the log.
_ELSEWHERE = {
    "autoscaler": ", from autoscaler_image and autoscaler_image_tags in [capi_helm]",
}


def render_values(
    request: ClusterRequest,
    facts: CloudFacts,
    conf: Settings,
    chart: Chart | None = None,
    *,
    kubernetes_version: str = "",
) -> Json:
    """All values of a cluster.

    :param chart: that is to take them, None for this project's newest.
    :param kubernetes_version: Kubernetes version for the overlays' templates, where it is not the
        image's.
    :raises errors.InvalidRequest: rows and cloud contradict each other, or there is no such
        overlay.
    :raises errors.InvalidConfiguration: an overlay cannot be used.
    """
    full = _render(request, facts, conf, chart)
    context = _context(request, kubernetes_version or full["kubernetesVersion"])
    name = request.labels.capi_helm_overlay
    overlays = overlay_files.read_overlays(conf.capi_helm.overlay_directory, name, context)
    if not any(overlay.values for overlay in overlays):
        return full
    for overlay in overlays:
        _check_overlay(overlay, full)
    base = _render(*_without_labels(request, facts, conf), conf, chart)
    others = _with_other_labels(request, facts, conf, chart)
    return merge.merge_layers(full, base, others, [overlay.values for overlay in overlays])


def explain_refusal(
    error: errors.ValuesRefused, request: ClusterRequest, conf: Settings
) -> errors.DriverError:
    """The error of a chart that refused values, with the overlay that set them, if one did."""
    name = request.labels.capi_helm_overlay
    setting = overlay_files.overlays_with(conf.capi_helm.overlay_directory, name, error.keys)
    if setting is None:
        return error
    overlay, location = setting
    return overlay_files.invalid_overlay(overlay, f"{location}: {error} {error.detail}")


def _render(
    request: ClusterRequest, facts: CloudFacts, conf: Settings, chart: Chart | None
) -> Json:
    return helm_values.render(
        request,
        facts,
        storage_class_default=conf.capi_helm.csi_cinder_default_volume_type or None,
        allowed_topologies=conf.capi_helm.csi_cinder_allowed_topologies,
        tells_capacity=chart is None or names.tells_capacity(chart.family, chart.version),
    )


def _context(request: ClusterRequest, version: str) -> overlay_template.Context:
    return overlay_template.Context(
        cluster_name=request.name,
        cluster_uuid=request.uuid,
        project_id=request.project_id,
        template_name=request.template,
        kubernetes_version=version.removeprefix("v"),
        labels=dataclasses.asdict(request.labels),
    )


def _check_overlay(overlay: overlay_yaml.Overlay, full: Json) -> None:
    """Refuse keys of the driver's own, and what would put a text where keys have to be."""
    for path, value in overlay_yaml.keys(overlay.values):
        if reserved_keys.is_owned(path):
            advice = _ELSEWHERE.get(path[0], "")
            raise overlay_files.invalid_overlay(
                overlay.name, f"{overlay.location(path)}: only the driver sets this key{advice}"
            )
        if isinstance(_at(full, path), Mapping) and not isinstance(value, Mapping):
            raise overlay_files.invalid_overlay(
                overlay.name,
                f"{overlay.location(path)}: it has keys of its own, which are expected",
            )


def _at(values: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        values = values.get(key) if isinstance(values, Mapping) else None
    return values


def _without_labels(
    request: ClusterRequest, facts: CloudFacts, conf: Settings
) -> tuple[ClusterRequest, CloudFacts]:
    """The cluster as if nobody had asked for anything that an overlay may say as well."""
    site = labels.parse({}, conf_module.label_defaults(conf))
    plain = dataclasses.replace(
        request,
        # The version is the image's, and a site's default need not be that.
        labels=dataclasses.replace(site, kube_tag=request.labels.kube_tag),
        control_plane=dataclasses.replace(request.control_plane, docker_volume=0),
        keypair=None,
        fixed_network=None,
        fixed_subnet=None,
        dns_nameservers=(),
        http_proxy="",
        https_proxy="",
        no_proxy=(),
        insecure_registry="",
        apiserver_port=None,
    )
    return plain, dataclasses.replace(facts, fixed_network_id=None, fixed_subnet_id=None)


def _with_other_labels(
    request: ClusterRequest, facts: CloudFacts, conf: Settings, chart: Chart | None
) -> Iterator[Json]:
    """Renders with another value of each label that was given, one at a time."""
    site = labels.parse({}, conf_module.label_defaults(conf))
    for label in labels.REGISTRY:
        if label.name not in request.given_labels:
            continue
        current = getattr(request.labels, label.name)
        alternatives = (
            getattr(site, label.name),
            label.default,
            label.label_type.read(label.example),
        )
        for value in alternatives:
            if value == current:
                continue
            changed = dataclasses.replace(request.labels, **{label.name: value})
            other = dataclasses.replace(request, labels=changed)
            # Nobody asked for this one: where it cannot be rendered, another value tells as much.
            with contextlib.suppress(errors.InvalidRequest):
                yield _render(other, facts, conf, chart)
