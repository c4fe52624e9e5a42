# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm catalogue``: images and cluster templates of one file, compared and applied."""

from __future__ import annotations

import abc
import argparse
from collections.abc import Iterator, Mapping

from magnum.common import exception
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.catalogue.export import export_catalogue
from magnum.drivers.k8s_capi_helm.commands.catalogue.file import (
    Catalogue,
    read_catalogue,
    TemplateEntry,
)
from magnum.drivers.k8s_capi_helm.commands.catalogue.image_plan import ImagePlan, plan_image
from magnum.drivers.k8s_capi_helm.commands.catalogue.plan import (
    CatalogueChange,
    check_names,
    desired_template,
    plan_others,
    plan_template,
    TemplatePlan,
)
from magnum.drivers.k8s_capi_helm.commands.lookup.templates import (
    all_templates,
    cluster_counts,
    EVERYBODY,
)
from magnum.drivers.k8s_capi_helm.commands.output.lister import (
    ExitStatus,
    operator_text,
    OperatorCommand,
    OperatorLister,
    Rows,
)
from magnum.drivers.k8s_capi_helm.commands.templates.template_check import template_problems
from magnum.drivers.k8s_capi_helm.model import Image
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

COLUMNS = ("Kind", "Name", "Action", "Changes")


class CatalogueCommand(OperatorLister, metaclass=abc.ABCMeta):
    """A command about a catalogue file."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """The file, and whether old templates are deleted."""
        parser = super().get_parser(prog_name)
        parser.add_argument("file", metavar="FILE", help="The catalogue, in YAML.")
        parser.add_argument(
            "--prune",
            action="store_true",
            help="Delete templates of the catalogue that it does not offer any more and that no "
            "cluster has. Without it they are hidden.",
        )
        return parser

    def changes(
        self, run: Reconciliation, arguments: argparse.Namespace
    ) -> tuple[CatalogueChange, ...]:
        """What has to change; nothing is written.

        :raises errors.InvalidRequest: with everything that is wrong.
        """
        return plan_catalogue(run, read_catalogue(arguments.file), prune=arguments.prune)


class CatalogueDiff(CatalogueCommand):
    """Compare a catalogue with Glance and Magnum; nothing is written.

    Everything is checked as for ``apply``. Exit status 0: nothing differs, 1: something does, 3:
    the catalogue is refused, or it could not be found out.
    """

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each change."""
        changes = self.changes(run, arguments)
        status = ExitStatus.WARNING if changes else ExitStatus.OK
        return COLUMNS, map(_row, changes), status


class CatalogueApply(CatalogueCommand):
    """Let Glance and Magnum offer what a catalogue says; without a difference nothing is written.

    Everything is checked before anything is written: an image and its properties, and each template
    as magnum-api checks it and as the driver would check its first cluster. A template that
    clusters have is replaced by a new one, and hidden. Exit status 0: it is so, 3: the catalogue is
    refused, or a service did not answer; apply it again then.
    """

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each change that was made."""
        changes = self.changes(run, arguments)
        for change in changes:
            try:
                change.carry_out()
            except exception.MagnumException as error:
                raise errors.InvalidRequest(
                    f"Magnum has refused a change. {change.kind} '{change.name}': {error}"
                ) from None
        return COLUMNS, map(_row, changes), ExitStatus.OK


class CatalogueShow(OperatorCommand):
    """Print what users are offered now, as a catalogue that changes nothing.

    Exit status 0: it is printed, 3: it could not be found out.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Whose templates."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--project", metavar="ID", help="Of this project; without it of the only one."
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Print it."""
        run = self.program.begin()
        self.program.stdout.write(export_catalogue(run, parsed_args.project))


def plan_catalogue(
    run: Reconciliation, catalogue: Catalogue, *, prune: bool
) -> tuple[CatalogueChange, ...]:
    """What has to change, in the order in which it is done.

    :raises errors.InvalidRequest: with everything that is wrong.
    :raises errors.DriverError: Glance, Magnum's database or the cloud cannot be read.
    """
    all_images = run.cloud().image_catalogue.list_all()
    existing, counts = all_templates(), cluster_counts()
    images = [plan_image(run, catalogue, entry, all_images) for entry in catalogue.images]
    problems = [f"Image '{plan.entry.name}': {text}" for plan in images for text in plan.problems]
    problems += check_names(catalogue, existing)
    planned = {plan.entry.name: plan for plan in images}
    plans: list[TemplatePlan] = []
    for entry in catalogue.templates:
        found = list(_entry_problems(run, catalogue, entry, planned))
        problems += [f"Template '{entry.name}': {text}" for text in found]
        if not problems:
            desired = desired_template(
                run.settings, catalogue, entry, _image(run, catalogue, entry, planned)
            )
            plans.append(plan_template(desired, existing, counts))
    if problems:
        raise errors.InvalidRequest(_refusal(problems))
    current = [plan.current for plan in plans]
    return (
        *(change for plan in images for change in plan.changes),
        *(change for plan in plans for change in plan.changes),
        *plan_others(catalogue, existing, counts, current, prune=prune),
    )


def _refusal(problems: list[str]) -> str:
    if len(problems) == 1:
        return f"The catalogue is refused, and nothing is changed. {problems[0]}"
    numbered = " ".join(f"({index}) {text}" for index, text in enumerate(problems, 1))
    return f"The catalogue has {len(problems)} problems, and nothing is changed. {numbered}"


def _entry_problems(
    run: Reconciliation,
    catalogue: Catalogue,
    entry: TemplateEntry,
    planned: Mapping[str, ImagePlan],
) -> Iterator[str]:
    """What is wrong with a template.

    :param planned: images by the name in the catalogue.
    """
    missing = [field for field in _REQUIRED if not entry.fields[field]]
    if missing:
        yield f"Without {', '.join(missing)} no cluster can be created. Set it, or in 'defaults'."
        return
    plan = planned.get(entry.fields["image_id"])
    if plan is not None and plan.problems:
        return  # They are reported once.
    visibility = plan.entry.fields["visibility"] if plan else ""
    if plan is not None and entry.fields["public"] and visibility != "public":
        yield (
            f"Its image '{plan.entry.name}' has the visibility '{visibility}', and the template is "
            "public. Make both public, or the template private."
        )
        return
    try:
        image = _image(run, catalogue, entry, planned)
    except errors.CloudRefused as error:
        yield operator_text(error)
        return
    template = desired_template(run.settings, catalogue, entry, image)
    new_images = {name: plan.image for name, plan in planned.items()}
    yield from template_problems(run, template, new_images)


_REQUIRED = ("image_id", "flavor_id", "master_flavor_id", "external_network_id")


def _image(
    run: Reconciliation,
    catalogue: Catalogue,
    entry: TemplateEntry,
    planned: Mapping[str, ImagePlan],
) -> Image:
    """The image of a template, of the catalogue or of Glance.

    :raises errors.CloudRefused: Glance shows its users none.
    """
    text = entry.fields["image_id"]
    if text in planned:
        return planned[text].image
    project = EVERYBODY if entry.fields["public"] else catalogue.project_id
    return run.cloud().named_images(project, [text])[text]


def _row(change: CatalogueChange) -> tuple[str, ...]:
    return change.kind, change.name, change.action, "; ".join(change.texts)
