# SPDX-License-Identifier: Apache-2.0
"""Read the provider's policy: a YAML file of the operator's rules, checked by a JSON Schema."""

from __future__ import annotations

import pathlib
from typing import Any

import jsonschema
from packaging.specifiers import InvalidSpecifier, SpecifierSet
import yaml

from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.values import provider_policy
from magnum.drivers.k8s_capi_helm.values.provider_policy import LabelRule, PolicyRule

_LARGEST = 1 << 20
_SENTENCE = (
    "This cloud's policy for clusters cannot be read, so no request is accepted. Ask the operator "
    "to look into the log of the Magnum conductor."
)
_TEXTS = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1}
_LABEL = {
    "type": "object",
    "additionalProperties": False,
    "minProperties": 1,
    "properties": {
        "allowed": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "refused": {"const": True},
        "minimum": {"type": "integer"},
        "maximum": {"type": "integer"},
    },
}
_RULE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name"],
    "not": {"required": ["projects", "excluded_projects"]},
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"},
        "message": {"type": "string", "maxLength": 500},
        "projects": _TEXTS,
        "excluded_projects": _TEXTS,
        "public_api": {"const": False},
        "kubernetes": {"type": "string"},
        **{limit: {"type": "integer", "minimum": 0} for limit in provider_policy.LIMITS},
        "labels": {"type": "object", "minProperties": 1, "additionalProperties": _LABEL},
    },
}
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["rules"],
    "properties": {"rules": {"type": "array", "items": _RULE}},
}


def read_policy(path: str) -> tuple[PolicyRule, ...]:
    """The rules in a file, () without a file.

    :param path: of the file, "" for none.
    :raises errors.InvalidConfiguration: it cannot be read, or one of its rules is none; the detail
        has the place in the file and the cause.
    """
    if not path:
        return ()
    try:
        file = pathlib.Path(path)
        if file.stat().st_size > _LARGEST:
            raise ValueError(f"it is larger than {_LARGEST} bytes")
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
        jsonschema.validate(document, SCHEMA)
        rules = tuple(map(_rule, document["rules"]))
        _check_names(rules)
    except jsonschema.ValidationError as error:
        raise _invalid(path, f"{error.json_path}: {error.message}") from None
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise _invalid(path, " ".join(str(error).split())) from None
    return rules


def _rule(document: dict[str, Any]) -> PolicyRule:
    """
    :raises ValueError: a version or a label is none.
    """
    name = document["name"]
    return PolicyRule(
        name=name,
        message=document.get("message", "").strip(),
        projects=tuple(document.get("projects", ())),
        excluded_projects=tuple(document.get("excluded_projects", ())),
        public_api=document.get("public_api", True),
        kubernetes=_versions(name, document["kubernetes"]) if "kubernetes" in document else None,
        limits={limit: document[limit] for limit in provider_policy.LIMITS if limit in document},
        labels={
            label: _label_rule(name, label, rule)
            for label, rule in document.get("labels", {}).items()
        },
    )


def _versions(name: str, text: str) -> SpecifierSet:
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        raise ValueError(
            f"rule '{name}': kubernetes is '{text}'; write for example '>=1.33,<1.36'"
        ) from None


def _label_rule(name: str, label: str, document: dict[str, Any]) -> LabelRule:
    if label not in labels.BY_NAME or labels.BY_NAME[label].name != label:
        raise ValueError(f"rule '{name}': there is no label '{label}'")
    return LabelRule(
        is_refused=document.get("refused", False),
        allowed_texts=tuple(document.get("allowed", ())),
        minimum=document.get("minimum"),
        maximum=document.get("maximum"),
    )


def _check_names(rules: tuple[PolicyRule, ...]) -> None:
    names = [rule.name for rule in rules]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two rules have the name '{name}'")


def _invalid(path: str, words: str) -> errors.InvalidConfiguration:
    return errors.InvalidConfiguration(_SENTENCE, f"[capi_helm] policy_file {path}: {words}")
