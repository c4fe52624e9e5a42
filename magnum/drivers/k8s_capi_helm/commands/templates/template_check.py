# SPDX-License-Identifier: Apache-2.0
"""Check a cluster template as magnum-api does, and as the driver would check its first cluster.

The cluster has the template's own labels and fields, one control plane node and one worker. Its
project is one that owns nothing if the template is public.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from magnum import objects
from magnum.common import context as magnum_context
from magnum.common import exception
from magnum.drivers.common import driver as magnum_driver
from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.commands.lookup.templates import member_project, Template
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader, template
from magnum.drivers.k8s_capi_helm.model import Chart, Image, Json, ResolvedNames
from magnum.drivers.k8s_capi_helm.reconcile import new_cluster
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

COE = "kubernetes"
_UUID = "00000000-0000-4000-8000-000000000000"
_NAME = "catalogue"
_STATUS = "CREATE_IN_PROGRESS"
#: Fields that a cluster has of its template, if its user says nothing.
_INHERITED = (
    "docker_volume_size",
    "fixed_network",
    "fixed_subnet",
    "floating_ip_enabled",
    "master_lb_enabled",
    "flavor_id",
    "master_flavor_id",
)


def default_network_driver(settings: Settings) -> str:
    """What Magnum writes into a template that names no network driver."""
    return str(settings["cluster_template"].kubernetes_default_network_driver)


def template_problems(
    run: Reconciliation, new_template: Template, images: Mapping[str, Image]
) -> Iterator[str]:
    """Why a template is refused, or none of its clusters could be created.

    :param new_template: not saved.
    :param images: that are not in Glance yet, by the text that templates use.
    :raises errors.CloudUnreachable: a service does not answer.
    """
    found = [*_api_problems(run.settings, new_template), *_label_problems(new_template)]
    found += [str(error) for _, error in template.field_errors(new_template)]
    yield from found
    if found:
        return
    try:
        first_cluster(run, new_template, images)
    except errors.DriverError as error:
        if error.retryable:
            raise
        yield str(error)


def _api_problems(settings: Settings, new_template: Template) -> Iterator[str]:
    """What magnum-api checks without a request to OpenStack.

    Its own validators read the options when they are imported, so those are compared here.
    """
    # Nothing else needs magnum-api, which takes a third of the time of a command to import.
    from wsme import exc as wsme_exc

    from magnum.api import validation
    from magnum.api.controllers.v1 import cluster_template as template_api

    fields = {
        field: value
        for field, value in new_template.as_dict().items()
        if value is not None and field not in ("project_id", "user_id")
    }
    driver, distro = new_template.network_driver, new_template.cluster_distro
    allowed = settings["cluster_template"].kubernetes_allowed_network_drivers
    try:
        template_api.ClusterTemplate(**fields)
        validator = validation.Validator.get_coe_validator(COE)
        validator.validate_server_type(new_template.server_type)
        if new_template.volume_driver:
            validator.validate_volume_driver(new_template.volume_driver)
        magnum_driver.Driver.get_driver(new_template.server_type, distro, COE, new_template.driver)
    except wsme_exc.ClientSideError as error:
        yield f"Magnum refuses the template. {error.faultstring}"
    except exception.MagnumException as error:
        yield f"Magnum refuses the template. {error}"
    if driver not in validation.K8sValidator.supported_network_drivers or (
        "all" not in allowed and driver not in allowed
    ):
        yield (
            f"Magnum refuses the network driver. Field 'network_driver' is '{driver}', and "
            "[cluster_template] kubernetes_allowed_network_drivers has "
            f"{', '.join(allowed)}."
        )


def _label_problems(new_template: Template) -> Iterator[str]:
    """Labels without an effect; a user would find them in a notice."""
    for name, text in sorted((new_template.labels or {}).items()):
        if reason := labels.why_without_effect(name, text):
            yield f"Label '{name}' with the value '{text}' has no effect: {reason}"


def first_cluster(
    run: Reconciliation, cluster_template: Template, images: Mapping[str, Image]
) -> tuple[Chart, Json]:
    """Chart and values of the first cluster of a template, by what the driver checks then.

    :param images: as for :func:`template_problems`.
    :raises errors.DriverError: it would be refused, or a service does not answer.
    """
    settings, cluster = run.settings, _cluster(cluster_template)
    nodegroups = [_nodegroup(cluster, role) for role in (reader.MASTER, "worker")]
    request = new_cluster.read_new_request(cluster, nodegroups, settings, _NAME)
    chart = new_cluster.find_chart(run, request, cluster, nodegroups)
    facts = run.cloud().facts(
        request,
        interface=settings.capi_helm.app_cred_interface_type,
        lookup=ResolvedNames(images=images),
    )
    return chart, new_cluster.render_new_cluster(settings, request, facts, chart)


def _cluster(new_template: Template) -> Any:
    """The first cluster of a template; it is not saved."""
    fields = {
        **_empty(objects.Cluster),
        **{field: getattr(new_template, field) for field in _INHERITED},
        "uuid": _UUID,
        "name": _NAME,
        "status": _STATUS,
        "project_id": member_project(new_template),
        "user_id": "",
        "keypair": new_template.keypair_id,
        "labels": new_template.labels,
        "cluster_template": new_template,
    }
    return objects.Cluster(magnum_context.make_admin_context(all_tenants=True), **fields)


def _empty(kind: Any) -> dict[str, Any]:
    """The fields of a kind of Magnum's objects, which has more of them in newer versions."""
    return {name: None for name, field in kind.fields.items() if field.nullable}


def _nodegroup(cluster: Any, role: str) -> Any:
    """A default nodegroup of the cluster; it is not saved."""
    is_master = role == reader.MASTER
    fields = {
        **_empty(objects.NodeGroup),
        "uuid": _UUID,
        "name": f"default-{role}",
        "cluster_id": cluster.uuid,
        "project_id": cluster.project_id,
        "docker_volume_size": cluster.docker_volume_size,
        "labels": cluster.labels,
        "flavor_id": cluster.master_flavor_id if is_master else cluster.flavor_id,
        "image_id": cluster.cluster_template.image_id,
        "node_count": 1,
        "role": role,
        "min_node_count": 1 if is_master else 0,
        "is_default": True,
        "status": _STATUS,
    }
    return objects.NodeGroup(cluster.obj_context, **fields)
