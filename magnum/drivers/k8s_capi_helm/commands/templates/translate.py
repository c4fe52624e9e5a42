# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm translate``: a template of another driver, in the words of this one."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
import dataclasses
from typing import Any

from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import find_template
from magnum.drivers.k8s_capi_helm.commands.output.lister import ExitStatus, OperatorLister, Rows
from magnum.drivers.k8s_capi_helm.commands.output.secret_mask import is_sensitive, MASK, SecretMask
from magnum.drivers.k8s_capi_helm.magnum_objects import notices
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import template
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

COLUMNS = ("Label or field", "Value", "Becomes", "Advice")


@dataclasses.dataclass(frozen=True, slots=True)
class LabelAdvice:
    """A label or a field of a template.

    :ivar new_label: label and value as this driver has them, "" where there is none.
    :ivar advice: what to do, "" where it stays unchanged.
    """

    name: str
    value: str
    new_label: str = ""
    advice: str = ""


class Translate(OperatorLister):
    """Translate the labels and fields of a template of another driver into those of this one.

    For templates of Magnum's Heat driver and of magnum-cluster-api. Nothing is written. Exit status
    0: all of it can stay, 1: something has to be changed or is dropped, 3: there is no such
    template.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """A template, or labels."""
        parser = super().get_parser(prog_name)
        parser.add_argument("template", nargs="?", metavar="TEMPLATE", help="UUID or name.")
        parser.add_argument(
            "--labels",
            metavar="NAME=VALUE,...",
            help="Labels as 'openstack coe cluster template create' takes them, instead.",
        )
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """A row for each label, and for each field that is not in force or refused."""
        if bool(arguments.template) == bool(arguments.labels):
            raise errors.InvalidRequest("Name a cluster template, or give --labels.")
        if arguments.labels:
            translations = list(translate_labels(dict(_pairs(arguments.labels))))
        else:
            found = find_template(arguments.template)
            translations = [*translate_labels(found.labels or {}), *translate_fields(found)]
        has_advice = any(one.advice for one in translations)
        status = ExitStatus.WARNING if has_advice else ExitStatus.OK
        return COLUMNS, map(_row, translations), status


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """The labels of a text; a comma may also stand in a value."""
    name = value = ""
    for part in text.split(","):
        key, separator, rest = part.partition("=")
        if not separator and name:
            value += f",{part}"
            continue
        if not (separator and key.strip()):
            raise errors.InvalidRequest(
                f"--labels takes pairs NAME=VALUE with commas between them. It has '{part}'."
            )
        if name:
            yield name, value
        name, value = key.strip(), rest
    yield name, value


def translate_labels(texts: Mapping[str, str]) -> Iterator[LabelAdvice]:
    """The labels of a template, by name.

    :param texts: as Magnum keeps them.
    """
    for name, text in sorted(texts.items()):
        label, reason = labels.BY_NAME.get(name), labels.why_without_effect(name, text)
        if label is None:
            advice = f"Leave it out: {reason}" if reason else "Leave it out: it asks for nothing."
            yield LabelAdvice(name, text, advice=advice)
        elif reason:
            yield LabelAdvice(name, text, advice=f"Correct it: {reason}")
        elif name != label.name and label.name in texts:
            yield LabelAdvice(name, text, advice=f"Leave it out: '{label.name}' is set.")
        elif name != label.name:
            yield LabelAdvice(name, text, f"{label.name}={text}", "It has another name here.")
        else:
            yield LabelAdvice(name, text, f"{name}={text}", _condition(name, texts))


def _condition(name: str, texts: Mapping[str, str]) -> str:
    """What a label lacks that is understood, "" if nothing."""
    try:
        found = labels.named_notices(texts)
    except errors.DriverError:
        return ""  # another label is the reason, and its row says so
    return " ".join(one.sentence for one in found if one.names == (name,))


def translate_fields(cluster_template: Any) -> Iterable[LabelAdvice]:
    """Fields of a template that are refused, or not in force."""
    sentences = {
        **{one.names[0]: one.sentence for one in notices.template_notices(cluster_template, {})},
        **{field: str(error) for field, error in template.field_errors(cluster_template)},
    }
    for field, sentence in sorted(sentences.items()):
        yield LabelAdvice(field, str(getattr(cluster_template, field)), advice=sentence)


def _row(one: LabelAdvice) -> tuple[str, ...]:
    if is_sensitive(one.name):
        masked = f"{one.new_label.partition('=')[0]}={MASK}" if one.new_label else ""
        return one.name, MASK if one.value else "", masked, one.advice.replace(one.value, MASK)
    mask = SecretMask()
    return one.name, mask.text(one.value), mask.text(one.new_label), mask.text(one.advice)
