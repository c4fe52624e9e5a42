# SPDX-License-Identifier: Apache-2.0
"""Checks of the identity for the management cluster: its expiry and its permissions."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
import dataclasses
import datetime
import functools
import pathlib

import yaml

from magnum import objects
from magnum.common import context as magnum_context
from magnum.drivers import k8s_capi_helm
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.check.result import (
    CheckResult,
    error_result,
    fault_result,
    good_result,
    warning_result,
)
from magnum.drivers.k8s_capi_helm.commands.output.expiry import days_left, expiry_status
from magnum.drivers.k8s_capi_helm.commands.output.lister import ExitStatus
from magnum.drivers.k8s_capi_helm.conf.management_clusters import MANAGEMENT_GROUP
from magnum.drivers.k8s_capi_helm.kube.identity.identity_expiry import validities, Validity
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.drivers.k8s_capi_helm.model.management_cluster import (
    DEFAULT_MANAGEMENT,
    is_own_stack_id,
    management_of,
)
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation
from magnum.drivers.k8s_capi_helm.reconcile.release.project_namespace import ROLE

#: The roles that an operator applies: what is checked is what is documented.
ROLES = pathlib.Path(k8s_capi_helm.__file__).parent / "manifests" / "rbac.yaml"
#: The ClusterRole that is bound in all namespaces.
_EVERYWHERE = f"{ROLE}-everywhere"
#: What is valid for a shorter time is renewed by the one who issues it.
_RENEWED = datetime.timedelta(days=1)
_AT_ONCE = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Permission:
    """One verb on one resource.

    :ivar name: of the only object that it is about, "" for all.
    """

    group: str
    resource: str
    verb: str
    name: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {resource}{f' {self.name}' if self.name else ''}"


#: What only the deletion of unused namespaces needs, which an operator may not want.
_OPTIONAL = frozenset({Permission("", "namespaces", "delete"), Permission("*", "*", "list")})


def check_kubeconfig(run: Reconciliation) -> Iterator[CheckResult]:
    """The kubeconfig can be used, and how long it is valid."""
    path = run.clients.kube.kubeconfig_path
    source = path or "the service account of this pod"
    try:
        parts = validities(path, run.clients.kube.context)
    except errors.DriverError as error:
        yield error_result(error, f"Correct [{_group(run)}] kubeconfig_file, or that file.")
        return
    for part in parts:
        yield _expiry_result(part, source, run.now)
    if not parts:
        yield good_result(f"The identity of {source} has no date of expiry.")


def _group(run: Reconciliation) -> str:
    """The group of Magnum's configuration that has the kubeconfig."""
    name = run.clients.management
    return "capi_helm" if name == DEFAULT_MANAGEMENT else f"{MANAGEMENT_GROUP}{name}"


def _expiry_result(part: Validity, source: str, now: datetime.datetime) -> CheckResult:
    days = days_left(part.end, now)
    text = f"The {part.subject} of {source} "
    if days < 0:
        return fault_result(f"{text}expired on {part.end:%Y-%m-%d}. Issue a new one.")
    text += f"expires on {part.end:%Y-%m-%d} ({days} days)."
    if part.start is not None and part.end - part.start <= _RENEWED:
        return good_result(f"{text} It is one that its issuer renews.")
    status = expiry_status(part.end, now)
    cure = "" if status is ExitStatus.OK else " Issue a new one: clusters cannot be managed after."
    return CheckResult(status, f"{text}{cure}")


def check_permissions(run: Reconciliation) -> Iterator[CheckResult]:
    """Each verb that the documented roles have, one by one."""
    roles = permissions(ROLES.read_text(encoding="utf-8"))
    yield from _role_results(run.clients.kube, roles[_EVERYWHERE], None)
    namespace = _newest_namespace(run)
    if namespace is None:
        yield good_result(
            f"The role {ROLE} is checked when there is a cluster: it is bound by then."
        )
        return
    yield from _role_results(run.clients.kube, roles[ROLE], namespace)


def permissions(manifest: str) -> dict[str, list[Permission]]:
    """What each ClusterRole of a manifest allows, verb by verb."""
    return {
        document["metadata"]["name"]: [
            Permission(group, resource, verb, name)
            for rule in document["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
            for name in rule.get("resourceNames", ("",))
        ]
        for document in yaml.safe_load_all(manifest)
        if document["kind"] == "ClusterRole"
    }


def _role_results(
    kube: KubeClient, role: list[Permission], namespace: str | None
) -> Iterator[CheckResult]:
    """What of a role is missing; one row if that is all of it."""
    where = f"in namespace {namespace}" if namespace else "in all namespaces"
    with futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        allowed = list(pool.map(functools.partial(_is_allowed, kube, namespace), role))
    denied = [one for one, is_allowed in zip(role, allowed, strict=True) if not is_allowed]
    required = [one for one in denied if one not in _OPTIONAL]
    if not required:
        yield good_result(f"{len(role) - len(denied)} of {len(role)} permissions {where}.")
        if denied:
            yield good_result(
                f"Optional and not granted: {', '.join(map(str, denied))}. Namespaces of projects "
                "stay when their last cluster is deleted."
            )
        return
    if len(denied) == len(role) and namespace:
        yield fault_result(
            f"Nothing is allowed {where}: the role {ROLE} does not exist, or is not bound there to "
            f"the driver's user. kubectl apply -f {ROLES}; kubectl -n {namespace} get rolebinding "
            f"{ROLE} -o yaml."
        )
        return
    for one in required:
        # Without watches the driver reads objects for each cluster, which is slow and works.
        result = warning_result if one.verb == "watch" else fault_result
        yield result(
            f"The driver's user may not {one} {where}. Set the user of the kubeconfig in {ROLES} "
            "and kubectl apply it."
        )


def _is_allowed(kube: KubeClient, namespace: str | None, permission: Permission) -> bool:
    """What the API server says of one permission (SelfSubjectAccessReview).

    https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
    """
    attributes: Json = {
        "group": permission.group,
        "resource": permission.resource,
        "verb": permission.verb,
    }
    name = permission.name
    if namespace:
        attributes["namespace"] = namespace
        # Of a namespace, a role that is bound in it is about the namespace itself.
        name = namespace if permission.resource == "namespaces" else name
    if name:
        attributes["name"] = name
    review = {"metadata": {}, "spec": {"resourceAttributes": attributes}}
    reply = kube.create(names.ACCESS_REVIEW, review)
    return (reply.get("status") or {}).get("allowed") is True


def _newest_namespace(run: Reconciliation) -> str | None:
    """The namespace of the newest cluster on a management cluster; None without one."""
    context = magnum_context.make_admin_context(all_tenants=True)
    clusters = objects.Cluster.list(context, sort_key="created_at", sort_dir="desc")
    for cluster in clusters:
        is_here = management_of(cluster.stack_id) == run.clients.management
        if is_here and is_own_stack_id(cluster.stack_id):
            return reader.cluster_namespace(cluster, run.settings)
    return None
