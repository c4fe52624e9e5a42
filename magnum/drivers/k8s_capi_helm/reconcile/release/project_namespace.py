# SPDX-License-Identifier: Apache-2.0
"""The namespace of a project: create it with its role binding, delete it when it is unused.

A namespace is deleted with all that is in it, so the driver deletes one only if it has created it,
no other label was put on it, and a list of every kind that the server has shows nothing in it but
what is in every namespace.
"""

from __future__ import annotations

from collections.abc import Callable

from oslo_log import log as logging
import tenacity

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import ClusterRequest, conditions, Json, names
from magnum.drivers.k8s_capi_helm.reconcile.process.clients import Clients
from magnum.drivers.k8s_capi_helm.values.sections import pod_security

LOG = logging.getLogger(__name__)

#: ClusterRole that an operator installs (manifests/rbac.yaml); bound in each namespace made here,
#: so that the driver needs no access to Secrets of the whole management cluster.
ROLE = "magnum-k8s-capi-helm"
#: Attempts, and seconds between two of them, to create a release in a namespace that is being
#: deleted: Kubernetes takes some seconds for an empty one.
_ATTEMPTS, _PAUSE = 30, 2.0
#: Attempts to use a right that was just given.
_RIGHTS_ATTEMPTS = 8
#: What every namespace has, and what the driver puts into it: group, resource and name.
_ALWAYS_THERE = frozenset(
    {
        ("", "serviceaccounts", "default"),
        (names.CONFIG_MAP.group, names.CONFIG_MAP.plural, "kube-root-ca.crt"),
        (names.ROLE_BINDING.group, names.ROLE_BINDING.plural, ROLE),
    }
)
#: Group and resource of Events, which expire by themselves.
_EVENTS = frozenset({("", "events"), ("events.k8s.io", "events")})
#: Label that the API server puts on every namespace
#: (https://kubernetes.io/docs/reference/labels-annotations-taints/#kubernetes-io-metadata-name).
_NAME_LABEL = "kubernetes.io/metadata.name"


def create_in_namespace(
    clients: Clients, request: ClusterRequest, level: str, create_lease: Callable[[], None]
) -> None:
    """Create a release's Lease in its project's namespace, which is created if there is none.

    The last cluster of the project may be deleted at the same time, and the namespace with it. Who
    deletes it reads its version, lists what is in it, and deletes that very version. So it has seen
    the Lease; or the annotation that is written after the Lease has made another version; or the
    answer to that says that the namespace is being deleted, and then all of this begins again.

    :param level: the Pod Security Standard that a new namespace enforces.
    :param create_lease: safe to repeat.
    :raises errors.Busy: the namespace is being deleted all the time.
    :raises errors.DriverError: as the management cluster said.
    """
    is_created = tenacity.Retrying(
        retry=tenacity.retry_if_result(lambda created: not created),
        stop=tenacity.stop_after_attempt(_ATTEMPTS),
        wait=tenacity.wait_fixed(_PAUSE),
        sleep=clients.pause,
        retry_error_callback=lambda state: False,
    )(_is_created, clients, request, level, create_lease)
    if not is_created:
        namespace = request.namespace
        raise errors.Busy(
            f"Namespace '{namespace}' on the management cluster is being deleted. Create the "
            "cluster again when the deletion has finished; if it does not finish, ask the operator "
            "to check what holds the namespace."
        )


def _is_created(
    clients: Clients, request: ClusterRequest, level: str, create_lease: Callable[[], None]
) -> bool:
    """One attempt; False if the namespace is being deleted, or was meanwhile."""
    namespace = request.namespace
    obj = create_namespace(clients, namespace, request.project_id, level)
    if obj is None or conditions.is_terminating(obj):
        return False
    try:
        bind_role(clients, namespace)
        create_lease()
        return _record_release(clients, request, obj)
    except (errors.NotAllowed, errors.Conflict):
        # What Kubernetes says of every write into a namespace that is being deleted, or is not
        # there any more.
        if _is_still(obj, clients.kube.get(names.NAMESPACE, None, namespace)):
            raise
        return False


def create_namespace(clients: Clients, namespace: str, project_id: str, level: str) -> Json | None:
    """Create the project's namespace, unless it is there.

    It is created, never changed: the driver has no right to change namespaces everywhere. What it
    may do in one that was there is :func:`enforce_pod_security`.

    :param level: the Pod Security Standard that a new namespace enforces.
    :returns: the namespace, which may be being deleted; None if that has just come to its end.
    :raises errors.DriverError: as the management cluster said.
    """
    metadata = {
        "name": namespace,
        "labels": {names.LABEL_PROJECT: project_id, **pod_security.namespace_labels(level)},
        "annotations": {names.CREATED_NAMESPACE: "true"},
    }
    return _ensure(clients, names.NAMESPACE, {"metadata": metadata})


def bind_role(clients: Clients, namespace: str) -> None:
    """Bind the driver's own role in a project's namespace, unless it is bound there.

    :raises errors.DriverError: as the management cluster said.
    """
    if clients.kube.get(names.ROLE_BINDING, namespace, ROLE) is not None:
        return
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE}
    manifest = {
        "metadata": {"name": ROLE, "namespace": namespace},
        "roleRef": role,
        "subjects": [_own_subject(clients)],
    }
    _create(clients, names.ROLE_BINDING, manifest)
    # The API server authorizes by what it watches, which may be behind what was just created.
    tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(errors.NotAllowed),
        stop=tenacity.stop_after_attempt(_RIGHTS_ATTEMPTS),
        wait=tenacity.wait_exponential_jitter(initial=0.1, max=_PAUSE),
        sleep=clients.pause,
        reraise=True,
    )(clients.kube.get, names.LEASE, namespace, ROLE)


def enforce_pod_security(clients: Clients, namespace: str, level: str) -> None:
    """Let a namespace enforce a Pod Security Standard, unless it says itself which one.

    The driver's role in the namespace gives the right to; nothing gives it elsewhere. As long as a
    Deployment there does not keep to ``restricted`` the namespace is left alone, or its pods could
    not start again: an autoscaler of an older release, which its next operation corrects.

    :raises errors.DriverError: the management cluster does not answer, or refuses.
    """
    obj = clients.kube.get(names.NAMESPACE, None, namespace)
    if obj is None or pod_security.ENFORCE in (obj["metadata"].get("labels") or {}):
        return
    deployments = clients.kube.list(names.DEPLOYMENT, namespace)
    pods = [deployment["spec"]["template"]["spec"] for deployment in deployments]
    if all(pod_security.is_restricted(pod) for pod in pods):
        merge = {"metadata": {"labels": pod_security.namespace_labels(level)}}
        clients.kube.patch(names.NAMESPACE, None, namespace, merge)


def delete_unused(clients: Clients, namespace: str, project_id: str) -> None:
    """Delete a project's namespace after its last cluster, if the driver may and nothing is in it.

    Whatever is not known keeps it; the next deletion in it looks again.
    """
    try:
        obj = clients.kube.get(names.NAMESPACE, None, namespace)
        if obj is None or not _is_own(obj, project_id) or not _is_empty(clients, namespace):
            return
        metadata = obj["metadata"]
        clients.kube.delete(
            names.NAMESPACE,
            None,
            namespace,
            uid=metadata["uid"],
            version=metadata["resourceVersion"],
        )
        LOG.info("Namespace %s is deleted with the last cluster of its project.", namespace)
    except errors.NotAllowed as error:
        _log_refusal(clients, namespace, error)
    except errors.Conflict:
        LOG.debug("Namespace %s stays: it was changed meanwhile.", namespace)
    except errors.DriverError as error:
        LOG.info("Namespace %s stays: %s", namespace, error.detail or error)


def _is_own(obj: Json, project_id: str) -> bool:
    """Whether the driver has created a namespace for the project, and no one else uses it."""
    metadata = obj["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    own_labels = {names.LABEL_PROJECT, *pod_security.namespace_labels(pod_security.RESTRICTED)}
    return (
        annotations.get(names.CREATED_NAMESPACE) == "true"
        and labels.get(names.LABEL_PROJECT) == project_id
        and labels.keys() <= own_labels | {_NAME_LABEL}
        and not conditions.is_terminating(obj)
    )


def _is_empty(clients: Clients, namespace: str) -> bool:
    """Whether nothing is in a namespace but what is in every one.

    :raises errors.DriverError: not known, because one of the lists cannot be read.
    """
    for kind in clients.kube.namespaced_kinds():
        if (kind.group, kind.plural) in _EVENTS:
            continue
        for item in clients.kube.list(kind, namespace, metadata_only=True):
            name = item["metadata"]["name"]
            if (kind.group, kind.plural, name) not in _ALWAYS_THERE:
                LOG.debug("Namespace %s stays: it has %s %s.", namespace, kind.name, name)
                return False
    return True


def _log_refusal(clients: Clients, namespace: str, error: errors.DriverError) -> None:
    """Say once in this process that the operator has not given the right to delete namespaces."""
    is_first = clients.namespace_refusal.replace(ROLE, None, True)
    LOG.log(
        logging.INFO if is_first else logging.DEBUG,
        "Namespace %s, whose project has no cluster any more, stays, and so do those of other "
        "projects: the optional rules of the role %s, to list everything in a namespace and to "
        "delete it, are not granted. %s",
        namespace,
        ROLE,
        error.detail,
    )


def _record_release(clients: Clients, request: ClusterRequest, obj: Json) -> bool:
    """Make another version of a namespace that could be deleted.

    :param obj: the namespace in which the Lease was created.
    :returns: False if its deletion has started, or if this is another one of the same name by now.
    :raises errors.Conflict: it is deleted.
    """
    if names.CREATED_NAMESPACE not in (obj["metadata"].get("annotations") or {}):
        return True
    merge = {"metadata": {"annotations": {names.NEWEST_RELEASE: request.release}}}
    try:
        changed = clients.kube.patch(names.NAMESPACE, None, request.namespace, merge)
    except errors.NotAllowed:
        # An older role, with which no conductor may delete it either.
        return True
    return _is_still(obj, changed)


def _is_still(obj: Json, current: Json | None) -> bool:
    """Whether a namespace is the same as before, and not being deleted."""
    return (
        current is not None
        and current["metadata"]["uid"] == obj["metadata"]["uid"]
        and not conditions.is_terminating(current)
    )


def _ensure(clients: Clients, kind: names.Kind, manifest: Json) -> Json | None:
    """The object of that name, which is created if there is none.

    :returns: None if another worker has created it, and it was deleted since.
    """
    metadata = manifest["metadata"]
    existing = clients.kube.get(kind, metadata.get("namespace"), metadata["name"])
    return _create(clients, kind, manifest) if existing is None else existing


def _create(clients: Clients, kind: names.Kind, manifest: Json) -> Json | None:
    """As :func:`_ensure`, of an object that was not there."""
    metadata = manifest["metadata"]
    try:
        return clients.kube.create(kind, manifest)
    except errors.Conflict:
        # Another worker may be opening the same namespace.
        return clients.kube.get(kind, metadata.get("namespace"), metadata["name"])


def _own_subject(clients: Clients) -> dict[str, str]:
    """Who the driver is on the management cluster, as an RBAC subject."""
    review = clients.kube.create(
        names.SELF_REVIEW,
        {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}},
    )
    user = str(conditions.at_path(review, "status", "userInfo", "username") or "")
    if not user:
        raise errors.ManagementUnreachable(
            "The management cluster does not report the user name of this Magnum service. Try "
            "again in some minutes.",
            f"SelfSubjectReview: {review}",
        )
    if user.startswith("system:serviceaccount:"):
        _, _, namespace, name = user.split(":", 3)
        return {"kind": "ServiceAccount", "namespace": namespace, "name": name}
    return {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
