# SPDX-License-Identifier: Apache-2.0
"""Values of the addons."""

from __future__ import annotations

from collections.abc import Sequence

from magnum.drivers.k8s_capi_helm.labels import Labels
from magnum.drivers.k8s_capi_helm.model import CloudFacts, ClusterRequest, Json
from magnum.drivers.k8s_capi_helm.values.sections import storage


def addons(
    request: ClusterRequest,
    facts: CloudFacts,
    storage_class_default: str | None,
    allowed_topologies: Sequence[str],
) -> Json:
    labels = request.labels
    values: Json = {"cni": _network(request)}
    if labels.manila_csi_enabled:
        values["csi"] = {"nfs": {"enabled": True}}
    cinder = storage.cinder(labels, facts.volume_types, storage_class_default, allowed_topologies)
    values["openstack"] = _openstack(request, facts, cinder)
    if snapshot := _etcd_snapshot(labels):
        values["etcdSnapshot"] = snapshot
    values["metricsServer"] = {"enabled": labels.metrics_server_enabled}
    values["monitoring"] = _monitoring(labels)
    values["ingress"] = _ingress(labels)
    values["nodeProblemDetector"] = {"enabled": labels.npd_enabled}
    if labels.node_problem_detector_tag:
        values["nodeProblemDetector"]["release"] = {
            "values": _image(labels.node_problem_detector_tag)
        }
    if labels.kube_dashboard_enabled:
        values["headlamp"] = {"enabled": True}
        # The reference charts before 0.20 have this one.
        values["kubernetesDashboard"] = {"enabled": True}
    return values


def _openstack(request: ClusterRequest, facts: CloudFacts, cinder: Json) -> Json:
    labels = request.labels
    values: Json = {"enabled": True}
    if request.separate_addon_credential:
        values["separateCredential"] = True
    values["cloudConfig"] = {
        "LoadBalancer": {
            "lb-provider": labels.octavia_provider,
            "lb-method": labels.load_balancer_method,
            "create-monitor": labels.octavia_lb_healthcheck,
        }
    }
    if labels.cloud_provider_tag:
        values["ccm"] = {"values": _image(labels.cloud_provider_tag)}
    values["csiCinder"] = cinder
    if labels.manila_csi_enabled:
        values["csiManila"] = storage.manila(labels)
    values["k8sKeystoneAuth"] = _keystone_auth(request, facts)
    return values


def _image(tag: str) -> Json:
    return {"image": {"tag": tag}}


def _network(request: ClusterRequest) -> Json:
    """The network of the pods. The charts of Calico and Cilium have the versions of these."""
    labels, values = request.labels, {"type": request.cni}
    network: Json = {}
    if request.cni == "calico" and labels.calico_tag:
        network["chart"] = {"version": f"v{labels.calico_tag.removeprefix('v')}"}
    if request.cni == "cilium" and labels.cilium_tag:
        network["chart"] = {"version": labels.cilium_tag.removeprefix("v")}
    if request.cni == "cilium" and labels.cilium_hubble_ui_enabled:
        hubble = {"relay": {"enabled": True}, "ui": {"enabled": True}}
        network["release"] = {"values": {"hubble": hubble}}
    return {**values, request.cni: network} if network else values


def _keystone_auth(request: ClusterRequest, facts: CloudFacts) -> Json:
    labels = request.labels
    if not labels.keystone_auth_enabled:
        return {"enabled": False}
    values: Json = {"openstackAuthUrl": facts.auth_url, "projectId": request.project_id}
    if labels.k8s_keystone_auth_tag:
        values.update(_image(labels.k8s_keystone_auth_tag))
    return {"enabled": True, "values": values}


def _etcd_snapshot(labels: Labels) -> Json:
    """The job, if it has a destination and a credential: without them the chart refuses it."""
    bucket, secret = labels.etcd_snapshot_bucket, labels.etcd_snapshot_secret
    if not (labels.etcd_snapshot_enabled and bucket and secret):
        return {}
    job: Json = {}
    if labels.etcd_snapshot_schedule:
        job["schedule"] = labels.etcd_snapshot_schedule
    job.update(destination={"bucket": bucket}, secretName=secret)
    if labels.etcd_snapshot_keep_days:
        job["keepDays"] = labels.etcd_snapshot_keep_days
    return {"enabled": True, "release": {"values": job}}


def _monitoring(labels: Labels) -> Json:
    values: Json = {"enabled": labels.monitoring_enabled}
    if not labels.monitoring_enabled:
        return values
    claim: Json = {}
    spec: Json = {}
    if labels.monitoring_interval_seconds:
        spec["scrapeInterval"] = f"{labels.monitoring_interval_seconds}s"
    if labels.monitoring_retention_days:
        spec["retention"] = f"{labels.monitoring_retention_days}d"
    if labels.monitoring_storage_class_name:
        claim["storageClassName"] = labels.monitoring_storage_class_name
    if labels.monitoring_retention_size:
        size = f"{labels.monitoring_retention_size}Gi"
        claim["resources"] = {"requests": {"storage": size}}
    if claim:
        spec["storageSpec"] = {"volumeClaimTemplate": {"spec": claim}}
    stack: Json = {}
    if labels.monitoring_storage_class_name:
        alerts = {"spec": {"storageClassName": labels.monitoring_storage_class_name}}
        stack["alertmanager"] = {"alertmanagerSpec": {"storage": {"volumeClaimTemplate": alerts}}}
    if spec:
        stack["prometheus"] = {"prometheusSpec": spec}
    if stack:
        values["kubePrometheusStack"] = {"release": {"values": stack}}
    return values


def _ingress(labels: Labels) -> Json:
    """One controller or none: its load balancer is the tenant's wish, not the chart's."""
    if labels.ingress_controller == "none":
        return {"enabled": False}
    return {
        "enabled": True,
        "traefik": {"enabled": labels.ingress_controller == "traefik"},
        "nginx": {"enabled": labels.ingress_controller == "nginx"},
    }
