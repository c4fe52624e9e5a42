# SPDX-License-Identifier: Apache-2.0
"""Validate a successful response: a proxy's or a truncated one never means "not found".

The forms are those of the Kubernetes API
(https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from magnum.drivers.k8s_capi_helm.model import names


def not_the_object(body: Any, kind: names.Kind, namespace: str | None, name: str | None) -> str:
    """Why an answer is not the object that was asked for, "" if it is."""
    return _not_of(body, kind, namespace, {}) or (
        "" if body["metadata"]["name"] == name else f"the answer is not about '{name}'"
    )


def not_a_list(
    body: Any, kind: names.Kind, namespace: str | None, labels: Mapping[str, str | None]
) -> str:
    """Why an answer is not a page of the list that was asked for, "" if it is.

    :param labels: that each item has to have; a value of None stands for any value.
    """
    if not isinstance(body, dict) or not isinstance(body.get("items"), list):
        return "the answer has no items"
    about = body.get("metadata") or {}
    if about.get("remainingItemCount") and not about.get("continue"):
        return f"the list ends {about['remainingItemCount']} items too early"
    reasons = (_not_of(item, kind, namespace, labels) for item in body["items"])
    return next((reason for reason in reasons if reason), "")


def metadata_page(body: Any) -> Any:
    """A page of a list of metadata; of an empty one the server writes null for the items."""
    is_empty = isinstance(body, dict) and "items" in body and body["items"] is None
    return {**body, "items": []} if is_empty else body


def not_a_discovery(body: Any) -> str:
    """Why an answer is not all that an API server has, "" if it is."""
    if not isinstance(body, dict) or body.get("kind") != "APIGroupDiscoveryList":
        return "no aggregated discovery, which Kubernetes has since 1.27"
    stale = [
        f"{group['metadata'].get('name', '')}/{version['version']}"
        for group in body["items"]
        for version in group["versions"]
        if version.get("freshness", "Current") != "Current"
    ]
    return f"{', '.join(stale)} does not answer" if stale else ""


def namespaced_kinds(body: Any) -> list[names.Kind]:
    """The kinds of a discovery that are in namespaces and can be listed, in the best version."""
    kinds: dict[tuple[str, str], names.Kind] = {}
    for group in body["items"]:
        # Of the core group it says no name.
        group_name = group["metadata"].get("name", "")
        for version in group["versions"]:
            for resource in version.get("resources") or ():
                if resource.get("scope") == "Namespaced" and "list" in resource["verbs"]:
                    plural = resource["resource"]
                    kind = names.Kind(
                        group_name, resource["responseKind"]["kind"], plural, (version["version"],)
                    )
                    kinds.setdefault((group_name, plural), kind)
    return list(kinds.values())


def _not_of(
    obj: Any, kind: names.Kind, namespace: str | None, labels: Mapping[str, str | None]
) -> str:
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return "something in the answer is no object"
    if kind.namespaced and namespace is not None and metadata.get("namespace") != namespace:
        return f"'{metadata['name']}' in the answer is in namespace '{metadata.get('namespace')}'"
    own_labels = metadata.get("labels") or {}
    if any(
        key not in own_labels or value not in (None, own_labels[key])
        for key, value in labels.items()
    ):
        return f"'{metadata['name']}' in the answer does not have the labels asked for"
    return ""
