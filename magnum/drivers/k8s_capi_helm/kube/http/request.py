# SPDX-License-Identifier: Apache-2.0
"""Requests and responses of the management cluster as plain data. No I/O.

The rules are those of the Kubernetes API: paths and verbs at
https://kubernetes.io/docs/reference/using-api/api-concepts/, the ``Status`` object of a refusal at
https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import json
import urllib.parse

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import Json, names

MERGE_PATCH = "application/merge-patch+json"
# JSON is YAML, and the server knows server-side apply by this media type only.
APPLY_PATCH = "application/apply-patch+yaml"
# Admission and validation as for a write, and nothing is stored ("Dry-run" of the page above).
DRY_RUN = (("dryRun", "All"),)
# A list of the metadata of objects ("Metadata-only fetches" of the page above).
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
# All groups, versions and resources in one answer ("Aggregated discovery" of
# https://kubernetes.io/docs/concepts/overview/kubernetes-api/); v2 since Kubernetes 1.30.
DISCOVERY = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    for version in ("v2", "v2beta1")
)
# Answers after which the very same request may succeed: overload and trouble inside the server or
# in one of its webhooks.
PASSING = frozenset({408, 429, 500, 502, 503, 504})
_DETAIL_LIMIT = 2000


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request.

    :ivar verb: what it does, in a word for people ("read", "list", "apply" ...).
    :ivar subject: what it is about, for people: kind, name and namespace.
    :ivar accept: media type of the answer.
    :ivar repeatable: sending it twice does what sending it once does, so that it may be sent again
        when nobody knows whether it arrived.
    :ivar private: the object holds secrets: the server's own words are kept out of errors, for
        they may quote it.
    :ivar new_role: the right to do it may have been given a moment ago; a 403 may be too early.
    """

    method: str
    path: str
    verb: str
    subject: str
    query: Sequence[tuple[str, str]] = ()
    body: Json | None = None
    content_type: str = "application/json"
    accept: str = "application/json"
    repeatable: bool = True
    private: bool = False
    new_role: bool = False


def path(kind: names.Kind, version: str, namespace: str | None, name: str | None) -> str:
    """The path of an object, or of all objects of a kind when *name* is None.

    :param namespace: ignored for kinds of the whole cluster; None means all namespaces.
    """
    parts = ["apis", kind.group, version] if kind.group else ["api", version]
    if kind.namespaced and namespace is not None:
        parts += ["namespaces", namespace]
    parts.append(kind.plural)
    if name is not None:
        parts.append(name)
    return "/" + "/".join(urllib.parse.quote(part, safe="") for part in parts)


def object_reference(kind: names.Kind, namespace: str | None, name: str | None = None) -> str:
    """What a request is about, for people: ``Lease 'a' in namespace 'b'``."""
    text = f"{kind.name} '{name}'" if name else f"{kind.name} objects"
    return f"{text} in namespace '{namespace}'" if kind.namespaced and namespace else text


def watch_query(since: str, seconds: int, label: str) -> list[tuple[str, str]]:
    """The query of a watch.

    :param since: resourceVersion after which changes are sent.
    :param seconds: after which the server is asked to end it.
    :param label: only objects that have it; "" for all.
    """
    return [
        ("watch", "true"),
        ("resourceVersion", since),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", str(seconds)),
        *label_query({label: None} if label else None),
    ]


def delete_options(uid: str | None, version: str | None) -> Json:
    """The body of a deletion.

    :param uid: of the only object that is deleted; *version* its only resourceVersion.
    """
    preconditions = {"uid": uid, "resourceVersion": version}
    return {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {key: text for key, text in preconditions.items() if text},
    }


def label_query(labels: Mapping[str, str | None] | None) -> list[tuple[str, str]]:
    """The query of a list: objects that have all these labels.

    :param labels: a value of None stands for any value.
    """
    if not labels:
        return []
    terms = (key if value is None else f"{key}={value}" for key, value in sorted(labels.items()))
    return [("labelSelector", ",".join(terms))]


def status_of(body: bytes) -> Json:
    """The ``Status`` object in an answer; {} when the answer is something else."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) and parsed.get("kind") == "Status" else {}


def _details(body: bytes) -> Json:
    """What a ``Status`` says about its object, {} where it says nothing of that form."""
    details = status_of(body).get("details")
    return details if isinstance(details, dict) else {}


def is_missing_kind(code: int, body: bytes) -> bool:
    """Whether an answer says that the kind is not served, rather than that the object is not there.

    For an object that is not there, the server names it in ``details``; for an unknown path the
    details are empty or the answer is plain text.
    """
    return code == 404 and not _details(body).get("name")


def is_about(code: int, body: bytes, object_names: Iterable[str | None]) -> bool:
    """Whether an answer says of one of the *object_names* names that there is no such object."""
    details = status_of(body).get("details") or {}
    return code == 404 and bool(details.get("name")) and details["name"] in tuple(object_names)


def refusal(request: Request, code: int, body: bytes) -> errors.DriverError:
    """The error for an answer with a status code of 400 and above.

    :returns: ManagementUnreachable for what may pass by itself, Conflict for 409 and 410,
        ManagementRefused for the rest. The server's words are in the detail only.
    """
    detail = f"{request.method} {request.path}: HTTP {code}: {server_message(request, body)}"
    about = f"{request.verb} {request.subject}"
    if code in PASSING:
        return unreachable(detail)
    if code in (409, 410):
        return errors.Conflict(
            "Another client changed an object on the management cluster first. Nothing of "
            f"{request.subject} was overwritten; the request will be retried.",
            detail,
        )
    if code == 401:
        return errors.ManagementRefused(
            "The management cluster does not accept the credentials of this Magnum service. "
            "Ask the operator to renew the kubeconfig.",
            detail,
        )
    if code == 403:
        return errors.NotAllowed(
            "The management cluster does not allow a request of this Magnum service. It was to "
            f"{about}. Ask the operator to check the role of the driver, or whether the namespace "
            "is being deleted.",
            detail,
        )
    if is_missing_kind(code, body):
        return missing_kind(request.subject, detail)
    return errors.ManagementRefused(
        f"The management cluster refused a request of this Magnum service (HTTP {code}). It was to "
        f"{about}. Ask the operator to look into the log of the Magnum conductor for the reason.",
        detail,
    )


def missing_kind(subject: str, detail: str) -> errors.ManagementRefused:
    """The error for a kind that the management cluster does not serve."""
    return errors.ManagementRefused(
        "The management cluster does not know a kind of object that this driver needs. It is asked "
        f"for {subject}, and the custom resource definition is not installed, or not in a version "
        "that this driver understands. Ask the operator to install Cluster API, its OpenStack "
        "provider and the addon provider.",
        detail,
    )


def unreachable(detail: str) -> errors.ManagementUnreachable:
    """The error for a management cluster that gives no useful answer now."""
    return errors.ManagementUnreachable(
        # Some requests go on after this and some are refused: neither is promised here.
        "The management cluster does not answer. If this persists, ask the operator to check it.",
        detail,
    )


@contextlib.contextmanager
def named_errors(management: str) -> Iterator[None]:
    """Let the operator's details of errors say which management cluster they are about.

    :param management: its name; "" for the only or default one.
    """
    try:
        yield
    except errors.DriverError as error:
        if management:
            error.detail = f"management cluster {management}: {error.detail}"
        raise


def server_message(request: Request, body: bytes) -> str:
    """What the server says in an answer, for the operator; nothing that could be of a secret."""
    status = status_of(body)
    if request.private:
        causes = _details(body).get("causes")
        causes_of_object = (
            [cause for cause in causes if isinstance(cause, dict)]
            if isinstance(causes, list)
            else []
        )
        fields = ", ".join(str(cause.get("field", "")) for cause in causes_of_object)
        return f"{status.get('reason', '')} {fields}".strip()[:_DETAIL_LIMIT]
    return str(status.get("message") or body[:_DETAIL_LIMIT].decode(errors="replace"))[
        :_DETAIL_LIMIT
    ]


def not_found_error(kind: names.Kind, namespace: str | None, name: str | None) -> errors.Conflict:
    """The error of a write to an object that does not exist, or whose namespace does not."""
    return errors.Conflict(
        "An object of this cluster does not exist any more on the management cluster. It is "
        f"{object_reference(kind, namespace, name)}; the request will be retried.",
        f"{kind.plural}: HTTP 404",
    )
