# SPDX-License-Identifier: Apache-2.0
"""The catalogue of what a project offers now: the file that changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.catalogue.file import (
    TEMPLATE_FLAGS,
    TEMPLATE_NUMBERS,
    TEMPLATE_TEXTS,
)
from magnum.drivers.k8s_capi_helm.commands.catalogue.plan import family_name, template_revision
from magnum.drivers.k8s_capi_helm.commands.lookup.templates import (
    member_project,
    shown_templates,
    Template,
)
from magnum.drivers.k8s_capi_helm.model import ListedImage
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

#: Properties that say what an image is: those that the driver and Magnum read, and Nova's.
_PROPERTIES = ("os_distro", "kube_version", "magnum_driver", "hw_architecture", "architecture")
#: Flags as they are where the file says nothing.
_DEFAULTS = {"public": True, "floating_ip_enabled": True}


def export_catalogue(run: Reconciliation, project_id: str | None) -> str:
    """The catalogue of a project, in YAML.

    :param project_id: None for the only project that has templates of this driver.
    :raises errors.InvalidRequest: several have, or none.
    :raises errors.DriverError: Glance or the database cannot be read.
    """
    shown = shown_templates()
    projects = sorted({template.project_id for template in shown if template.public})
    if project_id is None and len(projects) != 1:
        raise errors.InvalidRequest(
            "Choose whose templates are printed with --project. Projects with public templates of "
            f"this driver: {', '.join(projects) or 'none'}."
        )
    chosen = project_id or projects[0]
    templates = {
        family_name(template.name): template
        for template in sorted(shown, key=lambda template: template_revision(template.name))
        if template.project_id == chosen
    }
    document: dict[str, Any] = {
        "project": chosen,
        "images": list(_images(run, chosen, templates.values())),
        "templates": [_template(name, templates[name]) for name in sorted(templates)],
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def _images(
    run: Reconciliation, project_id: str, templates: Iterable[Template]
) -> Iterable[dict[str, Any]]:
    """The images that templates name by their names; an id is the same in no other cloud."""
    all_images = run.cloud().image_catalogue.list_all()
    listed_by_id = {listed.image.id: listed for listed in all_images}
    names = {template.image_id: template for template in templates}
    for text, template in sorted(names.items()):
        try:
            found = run.cloud().named_images(member_project(template), [text])[text]
        except errors.CloudRefused:
            continue
        listed = listed_by_id[found.id]
        if listed.name == text and (
            listed.project_id == project_id or listed.visibility == "public"
        ):
            yield _image(listed)


def _image(listed: ListedImage) -> dict[str, Any]:
    return {
        "name": listed.name,
        "visibility": listed.visibility,
        **({"hidden": True} if listed.hidden else {}),
        **({"sha512": listed.data_hash} if listed.data_hash else {}),
        "properties": {
            name: listed.properties[name] for name in _PROPERTIES if listed.properties.get(name)
        },
    }


def _template(name: str, template: Template) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": name}
    for field in (*TEMPLATE_TEXTS, *TEMPLATE_NUMBERS):
        if getattr(template, field):
            fields[field] = getattr(template, field)
    for flag in TEMPLATE_FLAGS:
        if bool(getattr(template, flag)) != _DEFAULTS.get(flag, False):
            fields[flag] = bool(getattr(template, flag))
    if template.server_type != "vm":
        fields["server_type"] = template.server_type
    if template.labels:
        fields["labels"] = dict(sorted(template.labels.items()))
    return fields
