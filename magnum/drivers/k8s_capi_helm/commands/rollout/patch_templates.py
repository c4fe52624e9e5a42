# SPDX-License-Identifier: Apache-2.0
"""The template of a cluster's newest patch release: its own template with another image.

A provider who publishes an image for a patch release publishes a template for it, which
differs from the one before in nothing else. So an upgrade to it changes the version of Kubernetes,
and never a network, a size, a chart or a label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
import contextlib
import dataclasses
from typing import Any

from packaging.version import Version

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.labels.value_types import versions
from magnum.drivers.k8s_capi_helm.magnum_objects import cluster_labels
from magnum.drivers.k8s_capi_helm.model import Image
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

#: What two templates of the same clusters may differ in.
_OWN_FIELDS = frozenset(
    {
        *("id", "uuid", "name", "image_id", "labels", "tags", "public", "hidden"),
        *("project_id", "user_id", "created_at", "updated_at"),
    }
)
#: The label that says the version of an image.
_VERSION_LABEL = "kube_tag"


@dataclasses.dataclass(frozen=True, slots=True)
class PatchTemplate:
    """A template of a newer patch release.

    :ivar template: ``magnum.objects.ClusterTemplate``.
    """

    template: Any
    version: Version


def patch_templates(
    run: Reconciliation, clusters: Iterable[Any], templates: Sequence[Any]
) -> Mapping[str, PatchTemplate]:
    """The newest patch release of each cluster by UUID; clusters without one are left out.

    Left out are also those whose label has opted out, and those that are not complete and healthy:
    they would be the first that do not come good.

    :param templates: all that there are.
    :raises errors.DriverError: the cloud cannot be asked.
    """
    offered = [one for one in templates if _is_offered(one)]
    by_uuid = {one.uuid: one for one in templates}
    versions_of = _ImageVersions(run)
    found: dict[str, PatchTemplate] = {}
    for cluster in clusters:
        if not _takes_patches(run, cluster):
            continue
        own = by_uuid.get(cluster.cluster_template_id)
        same = [one for one in offered if own is not None and _is_same(own, one)]
        newest = _newest(cluster, same, versions_of)
        if newest is not None:
            found[cluster.uuid] = newest
    return found


class _ImageVersions:
    """Versions of templates, with one question for each image and project."""

    def __init__(self, run: Reconciliation) -> None:
        self._run = run
        self._known: dict[tuple[str, str], Image | None] = {}

    def find(self, project_id: str, template: Any) -> Version | None:
        """The version of a template; None if it is not known, or the project has no such image."""
        key = project_id, template.image_id
        if key not in self._known:
            self._known[key] = self._image(*key)
        image = self._known[key]
        if image is None or image.status != "active":
            return None
        label = (template.labels or {}).get(_VERSION_LABEL, "")
        return versions.parse(label or image.kubernetes_version)

    def _image(self, project_id: str, reference: str) -> Image | None:
        """
        :raises errors.DriverError: the cloud cannot be asked.
        """
        with contextlib.suppress(errors.CloudRefused):  # several have the name
            return self._run.cloud().named_images(project_id, [reference]).get(reference)
        return None


def _takes_patches(run: Reconciliation, cluster: Any) -> bool:
    return (
        bool(cluster.stack_id)
        and (cluster.status or "").endswith("_COMPLETE")
        and cluster.health_status == "HEALTHY"
        and cluster_labels.parsed_labels(cluster, run.settings).auto_upgrade_enabled
    )


def _is_offered(template: Any) -> bool:
    """Whether all tenants are offered a template."""
    return bool(template.public and not template.hidden)


def _is_same(template: Any, other: Any) -> bool:
    """Whether two templates differ in their image alone, so that they have the same driver."""
    fields = template.fields.keys() - _OWN_FIELDS
    return all(getattr(template, one) == getattr(other, one) for one in fields) and (
        _without_version(template) == _without_version(other)
    )


def _without_version(template: Any) -> dict[str, str]:
    return {name: text for name, text in (template.labels or {}).items() if name != _VERSION_LABEL}


def _newest(
    cluster: Any, templates: Iterable[Any], versions_of: _ImageVersions
) -> PatchTemplate | None:
    """The newest of some templates that is a newer patch release of the cluster's minor."""
    current = versions.parse(cluster.coe_version or "")
    newest: PatchTemplate | None = None
    for template in sorted(templates, key=lambda one: str(one.uuid)):
        version = versions_of.find(cluster.project_id, template)
        if (
            current is not None
            and version is not None
            and version.release[:2] == current.release[:2]
            and version > (newest.version if newest else current)
        ):
            newest = PatchTemplate(template, version)
    return newest
