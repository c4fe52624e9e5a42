# SPDX-License-Identifier: Apache-2.0
"""What has to change so that Glance and Magnum offer what a catalogue says; nothing is written.

Magnum lets a template that clusters have change its name, its tags and its flags only
(``magnum/db/sqlalchemy/api.py``, ``_do_update_cluster_template``). So one that is in use is
replaced by a new one with the next revision in its name, and hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import functools
from typing import Any

from magnum import objects
from magnum.common import context as magnum_context
from magnum.drivers.k8s_capi_helm.commands.catalogue.file import (
    Catalogue,
    REVISION,
    TEMPLATE_FLAGS,
    TEMPLATE_NUMBERS,
    TEMPLATE_TEXTS,
    TemplateEntry,
)
from magnum.drivers.k8s_capi_helm.commands.lookup.templates import Template
from magnum.drivers.k8s_capi_helm.commands.templates.template_check import (
    COE,
    default_network_driver,
)
from magnum.drivers.k8s_capi_helm.conf.settings import Settings
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import saving
from magnum.drivers.k8s_capi_helm.model import Image, names

#: Of each template that a catalogue has made.
TAG = "k8s-capi-helm-catalogue"
#: Fields that Magnum changes of a template in use, each alone.
_FLAGS = ("public", "hidden")
_COMPARED = (
    *TEMPLATE_TEXTS,
    *TEMPLATE_NUMBERS,
    *(flag for flag in TEMPLATE_FLAGS if flag not in _FLAGS),
    "server_type",
    "labels",
    "coe",
    "driver",
    "cluster_distro",
)


@dataclasses.dataclass(frozen=True, slots=True)
class CatalogueChange:
    """A change of an image or a template.

    :ivar kind: ``image`` or ``template``.
    :ivar action: what is done with it.
    :ivar texts: the fields that change, and why.
    :ivar carry_out: does it.
    """

    kind: str
    name: str
    action: str
    texts: tuple[str, ...]
    carry_out: Callable[[], Any]


@dataclasses.dataclass(frozen=True, slots=True)
class TemplatePlan:
    """The changes of the templates of one entry.

    :ivar current: the one that users are to create clusters from, perhaps not saved yet.
    """

    current: Template
    changes: tuple[CatalogueChange, ...]


def desired_template(
    settings: Settings, catalogue: Catalogue, entry: TemplateEntry, image: Image
) -> Template:
    """A template as an entry of the file asks for it; it is not saved."""
    fields = {
        **entry.fields,
        "network_driver": entry.fields["network_driver"] or default_network_driver(settings),
        "labels": dict(entry.fields["labels"]),
        "name": entry.name,
        "project_id": catalogue.project_id,
        "user_id": None,
        "uuid": None,
        "coe": COE,
        "driver": names.DRIVER,
        "cluster_distro": image.os_distro,
        "tags": TAG,
    }
    context = magnum_context.make_admin_context(all_tenants=True)
    return objects.ClusterTemplate(context, **fields)


def check_names(catalogue: Catalogue, templates: Iterable[Template]) -> Iterator[str]:
    """Names that users could not choose by, because another project offers the same ones."""
    wanted = {entry.name for entry in catalogue.templates}
    for template in templates:
        is_other = template.public and template.project_id != catalogue.project_id
        if is_other and template.name in wanted:
            yield (
                "Another project has a public cluster template of this name. Name "
                f"'{template.name}' is that of {template.uuid} (project {template.project_id})."
            )


def plan_template(
    new_template: Template, templates: Iterable[Template], counts: Mapping[str, int]
) -> TemplatePlan:
    """The changes of the templates with the name of one that is desired.

    :param new_template: the desired one, not saved.
    :param templates: all of Magnum.
    :param counts: of clusters, by UUID of their template.
    """
    family = sorted(
        (
            template
            for template in templates
            if template.project_id == new_template.project_id
            and family_name(template.name) == new_template.name
        ),
        key=lambda template: template_revision(template.name),
    )
    same = [template for template in family if _is_same(template, new_template, counts)]
    changes: list[CatalogueChange] = []
    if same:
        current = same[-1]
        changes += _flag_change(current, new_template)
    elif family and not counts.get(family[-1].uuid):
        current = family[-1]
        changes.append(_update(current, new_template))
    else:
        current = new_template
        if family:
            new_template.name = f"{new_template.name}-r{template_revision(family[-1].name) + 1}"
        changes.append(_create(new_template, family, counts))
    changes += [_hide(template, counts) for template in family if _is_replaced(template, current)]
    return TemplatePlan(current, tuple(changes))


def plan_others(
    catalogue: Catalogue,
    templates: Iterable[Template],
    counts: Mapping[str, int],
    current: Iterable[Template],
    *,
    prune: bool,
) -> Iterator[CatalogueChange]:
    """The changes of templates that a catalogue has made, and that are not current any more.

    Revisions that are replaced are hidden by :func:`plan_template`.

    :param current: templates of the catalogue's entries.
    :param prune: whether to delete those that no cluster has.
    """
    wanted = {entry.name for entry in catalogue.templates}
    kept = {template.uuid for template in current}
    for template in templates:
        tags = (template.tags or "").split(",")
        is_own = template.project_id == catalogue.project_id and TAG in tags
        if not is_own or template.uuid in kept:
            continue
        if prune and not counts.get(template.uuid):
            destroy = functools.partial(saving.destroy, template)
            texts = ("no cluster has it",)
            yield CatalogueChange("template", template.name, "delete", texts, destroy)
        elif not template.hidden and family_name(template.name) not in wanted:
            yield _hide(template, counts)


def family_name(name: str | None) -> str:
    """The name of a template without its revision."""
    return REVISION.sub("", name or "")


def template_revision(name: str | None) -> int:
    """The revision in the name of a template; the first one has none in its name."""
    match = REVISION.search(name or "")
    return int(match[1]) if match else 1


def _is_replaced(template: Template, current: Template) -> bool:
    return template is not current and not template.hidden


def _is_same(template: Template, desired: Template, counts: Mapping[str, int]) -> bool:
    """Whether a template is the desired one, or can become it by flags that Magnum changes."""
    if counts.get(template.uuid) and template.public and not desired.public:
        return False
    return not _differences(template, desired, _COMPARED)


def _differences(
    template: Template, desired: Template, fields: Sequence[str]
) -> dict[str, tuple[Any, Any]]:
    """Fields with both values."""
    pairs = {field: (getattr(template, field), getattr(desired, field)) for field in fields}
    # An empty text or map is none.
    return {field: pair for field, pair in pairs.items() if (pair[0] or None) != (pair[1] or None)}


def _texts(differences: Mapping[str, tuple[Any, Any]]) -> tuple[str, ...]:
    return tuple(f"{field}: {old!r} -> {new!r}" for field, (old, new) in differences.items())


def _flag_change(template: Template, desired: Template) -> Iterator[CatalogueChange]:
    """Flags and tag; Magnum takes each alone where clusters have the template."""
    differences = _differences(template, desired, _FLAGS)
    tags = (template.tags or "").split(",")
    if TAG not in tags:
        merged = ",".join(filter(None, (*tags, TAG)))
        differences["tags"] = (template.tags, merged)
    if not differences:
        return

    def change() -> None:
        for field, (_, value) in differences.items():
            saving.save(template, **{field: value})

    yield CatalogueChange("template", template.name, "update", _texts(differences), change)


def _update(template: Template, desired: Template) -> CatalogueChange:
    """Change a template that no cluster has."""
    differences = _differences(template, desired, (*_COMPARED, *_FLAGS))
    fields = {field: new for field, (_, new) in differences.items()}
    fields["tags"] = ",".join(dict.fromkeys(filter(None, [*(template.tags or "").split(","), TAG])))
    carry_out = functools.partial(saving.save, template, **fields)
    return CatalogueChange("template", template.name, "update", _texts(differences), carry_out)


def _create(
    desired: Template, family: Sequence[Template], counts: Mapping[str, int]
) -> CatalogueChange:
    texts: tuple[str, ...] = ()
    if family:
        old = family[-1]
        texts = (
            f"replaces '{old.name}', which {counts[old.uuid]} clusters have",
            *_texts(_differences(old, desired, (*_COMPARED, "public"))),
        )
    create = functools.partial(saving.insert, desired)
    return CatalogueChange("template", desired.name, "create", texts, create)


def _hide(template: Template, counts: Mapping[str, int]) -> CatalogueChange:
    texts = (f"{counts.get(template.uuid, 0)} clusters have it",)
    hide = functools.partial(saving.save, template, hidden=True)
    return CatalogueChange("template", template.name, "hide", texts, hide)
