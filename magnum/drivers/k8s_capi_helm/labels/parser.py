# SPDX-License-Identifier: Apache-2.0
"""Parse the labels of a cluster and the site's defaults into typed labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import functools
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.labels import registry, unsupported
from magnum.drivers.k8s_capi_helm.labels.value_types import label as labels_label
from magnum.drivers.k8s_capi_helm.labels.value_types import types

#: What Octavia's providers cannot do (its provider driver feature matrix).
_OVN_ONLY_ALGORITHM = "SOURCE_IP_PORT"
_AMPHORA = frozenset({"amphora", "amphorav2", "octavia"})
#: Clusters and nodegroups whose typed labels are kept.
_KEPT = 256
_Frozen = tuple[tuple[str, str], ...]


def parse(
    texts: Mapping[str, str],
    defaults: Mapping[str, str],
    template: Mapping[str, str] | None = None,
    running_labels: Mapping[str, str] | None = None,
) -> registry.Labels:
    """The typed labels of a cluster.

    :param texts: the cluster's labels as Magnum keeps them; unknown ones are left alone, see
        :func:`~magnum.drivers.k8s_capi_helm.labels.notices`.
    :param defaults: texts of the site's defaults, used for labels that *texts* does not give.
    :param template: labels of the cluster template, for a cluster that is to be made or to follow
        it: what only a template can set must not differ from it, and what cannot be had is refused.
    :param running_labels: labels of a cluster that runs. Nobody can change them, so what is wrong
        with them keeps it neither from being resized nor from being upgraded: it counts as not
        given. Without
        *template* that goes for the site's defaults too.
    :raises InvalidLabel: a label has another form than it should, or contradicts another one.
    :raises InvalidRequest: a label asks for what cannot be had.
    :raises InvalidConfiguration: a site default is wrong.
    """
    return _parse(
        tuple(texts.items()),
        tuple(defaults.items()),
        None if template is None else tuple(template.items()),
        None if running_labels is None else tuple(running_labels.items()),
        running_labels is texts,
    )


@functools.lru_cache(maxsize=_KEPT)
def _parse(
    cluster_labels: _Frozen,
    site_defaults: _Frozen,
    template_labels: _Frozen | None,
    known_labels: _Frozen | None,
    unchanged: bool,
) -> registry.Labels:
    """The same of values that can be kept: one request parses the same texts several times."""
    texts, defaults = dict(cluster_labels), dict(site_defaults)
    template = None if template_labels is None else dict(template_labels)
    known = None if known_labels is None else dict(known_labels)
    previous, changed = known or {}, dict[str, str]()
    if not unchanged:
        changed = {name: text for name, text in texts.items() if previous.get(name) != text}
    if template is not None:
        _refuse_unavailable(changed)
        _refuse_not_from_template(texts, template)
    lenient = known is not None and template is None
    values: dict[str, Any] = {}
    for label in registry.REGISTRY:
        value = _label_value(label, texts, changed)
        if value is None:
            value = _default_value(label, defaults, lenient=lenient)
        if value is not None:
            values[label.name] = value
    _drop_unsupported_algorithm(values, texts)
    labels = registry.Labels(**values)
    for names, error in _conflicts(labels, texts):
        if known is None or any(name in changed for name in names):
            raise error
    return labels


def given_labels(label: labels_label.Label, texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Names and texts under which *label* is given, its own name before its old ones."""
    for name in (label.name, *label.aliases):
        if texts.get(name, "").strip():
            yield name, texts[name]


def readable_labels(texts: Mapping[str, str]) -> dict[str, str]:
    """Labels without those whose text does not have the label's form."""
    readable = dict(texts)
    for label in registry.REGISTRY:
        for name, text in given_labels(label, texts):
            if invalid_label(label, text):
                del readable[name]
    return readable


def with_template_only(texts: Mapping[str, str], template: Mapping[str, str]) -> dict[str, str]:
    """Labels of a cluster, with what only a template can set as its template has it.

    Whoever replaces the template's labels cannot have meant these, and what a cluster was taken
    over with is not in force.

    :param template: labels of the cluster template.
    """
    names = template_only_names()
    others = {name: text for name, text in texts.items() if name not in names}
    return {**others, **{name: text for name, text in template.items() if name in names}}


@functools.cache
def template_only_names() -> frozenset[str]:
    """Every name of the labels that only a template can set."""
    labels = (
        label for label in registry.REGISTRY if labels_label.LabelScope.CLUSTER not in label.scopes
    )
    return frozenset(name for label in labels for name in (label.name, *label.aliases))


def given_names(texts: Mapping[str, str]) -> frozenset[str]:
    """Names of the labels that *texts* gives, under whichever of their names."""
    return frozenset(label.name for label in registry.REGISTRY if any(given_labels(label, texts)))


def parse_nodegroup(
    own: Mapping[str, str],
    cluster: Mapping[str, str],
    defaults: Mapping[str, str],
    *,
    is_running: bool = False,
) -> registry.Labels:
    """The typed labels that hold for one nodegroup: its own laid over those of its cluster.

    Magnum copies the cluster's labels into the default nodegroups, and into others on request; a
    copy is no wish of its own, so it is not looked at.

    :param own: the nodegroup's labels as Magnum keeps them.
    :param is_running: the nodegroup is there already, so nothing may be wrong with its labels.
    :raises InvalidLabel: as :func:`parse`.
    """
    texts, own = dict(cluster), readable_labels(own) if is_running else own
    for label in registry.REGISTRY:
        if labels_label.LabelScope.NODEGROUP not in label.scopes:
            continue
        for name, text in given_labels(label, own):
            if text != cluster.get(name):
                for alias in (label.name, *label.aliases):
                    texts.pop(alias, None)
                texts[name] = text
                break
    # What is wrong with its cluster's labels was not asked for with it.
    return parse(texts, defaults, running_labels=texts if is_running else cluster)


def check_nodegroup(
    own: Mapping[str, str], cluster: Mapping[str, str], defaults: Mapping[str, str]
) -> None:
    """Refuse what a new nodegroup cannot have otherwise than its cluster.

    :raises InvalidLabel: a label has another form than it should.
    :raises InvalidRequest: the first label that is the whole cluster's, or cannot be had at all.
    """
    _refuse_unavailable({name: own[name] for name in own if own[name] != cluster.get(name)})
    allowed = [
        label.name
        for label in registry.REGISTRY
        if labels_label.LabelScope.NODEGROUP in label.scopes
    ]
    for name in sorted(own):
        label = registry.BY_NAME.get(name)
        if label is None or not own[name].strip() or own[name] == cluster.get(name):
            continue
        if labels_label.LabelScope.NODEGROUP not in label.scopes:
            raise errors.InvalidRequest(
                f"Label '{name}' applies to whole clusters. The nodegroup has the value "
                f"'{own[name]}', and the cluster another one; a nodegroup can have its own of: "
                f"{', '.join(allowed)}. Create the nodegroup without the label."
            )
    parse_nodegroup(own, cluster, defaults)


def invalid_label(label: labels_label.Label, text: str) -> str:
    """How a text should look instead, as an ending of "expected ..."; "" if it is right."""
    try:
        label.label_type.read(text)
    except types.InvalidText as error:
        return f"{label.label_type.expected} ({error})"
    except ValueError:
        return label.label_type.expected
    return ""


def _label_value(
    label: labels_label.Label, texts: Mapping[str, str], changed: Mapping[str, str]
) -> Any:
    """The value under the label's first name that has one; None if nothing is given."""
    for name, text in given_labels(label, texts):
        expected = invalid_label(label, text)
        if not expected:
            return label.label_type.read(text)
        if name in changed:
            raise errors.InvalidLabel(name, text, expected)
    return None


def _default_value(label: labels_label.Label, texts: Mapping[str, str], *, lenient: bool) -> Any:
    for name, text in given_labels(label, texts):
        expected = invalid_label(label, text)
        if not expected:
            return label.label_type.read(text)
        if not lenient:
            raise errors.InvalidConfiguration(
                f"This cloud's default for label '{label.name}' is invalid. It is '{text}': "
                f"expected {expected}. Set the label yourself or ask the cloud's operator.",
                f"option {name} in [capi_helm_cluster_labels] (or what it takes its default from)",
            )
    return None


def _refuse_unavailable(texts: Mapping[str, str]) -> None:
    for name in sorted(texts.keys() & unsupported.REFUSED.keys()):
        if unsupported.has_effect(name, texts[name]):
            raise errors.InvalidRequest(
                f"Label '{name}' is not supported with this value. The value is '{texts[name]}'. "
                f"{unsupported.REFUSED[name]}"
            )


def _refuse_not_from_template(texts: Mapping[str, str], template: Mapping[str, str]) -> None:
    for label in registry.REGISTRY:
        if labels_label.LabelScope.CLUSTER in label.scopes:
            continue
        for name, text in given_labels(label, texts):
            if text != template.get(name):
                raise errors.InvalidLabel(
                    name,
                    text,
                    "the cluster template's value, as only a template can set this label",
                )


def _drop_unsupported_algorithm(values: dict[str, Any], texts: Mapping[str, str]) -> None:
    """Keep a site's default algorithm out of a cluster whose provider does not have it."""
    algorithm = values.get("octavia_lb_algorithm")
    if algorithm is None or texts.get("octavia_lb_algorithm", "").strip():
        return
    provider = values.get("octavia_provider", registry.Labels().octavia_provider)
    if (provider == "ovn") != (algorithm == _OVN_ONLY_ALGORITHM):
        del values["octavia_lb_algorithm"]


def _conflicts(
    labels: registry.Labels, texts: Mapping[str, str]
) -> Iterator[tuple[tuple[str, ...], errors.InvalidLabel]]:
    """What is wrong between labels, and between which."""
    yield from _provider_conflicts(labels, texts)
    yield from _bounds_conflicts(labels, texts)
    if labels.monitoring_enabled and not labels.cinder_csi_enabled:
        yield (
            ("monitoring_enabled", "cinder_csi_enabled"),
            errors.InvalidLabel(
                "monitoring_enabled",
                "true",
                "false while cinder_csi_enabled is false, as it keeps its data on Cinder volumes",
            ),
        )


def _provider_conflicts(
    labels: registry.Labels, texts: Mapping[str, str]
) -> Iterator[tuple[tuple[str, ...], errors.InvalidLabel]]:
    algorithm, expected = labels.octavia_lb_algorithm, ""
    if labels.octavia_provider == "ovn" and algorithm not in (None, _OVN_ONLY_ALGORITHM):
        expected = f"{_OVN_ONLY_ALGORITHM}, the only one that the Octavia provider ovn has"
    if labels.octavia_provider in _AMPHORA and algorithm == _OVN_ONLY_ALGORITHM:
        expected = (
            "ROUND_ROBIN, LEAST_CONNECTIONS or SOURCE_IP, which the Octavia provider "
            f"{labels.octavia_provider} has"
        )
    if expected:
        name = "octavia_lb_algorithm"
        names = (name, "octavia_provider")
        yield names, errors.InvalidLabel(name, texts.get(name, ""), expected)


def _bounds_conflicts(
    labels: registry.Labels, texts: Mapping[str, str]
) -> Iterator[tuple[tuple[str, ...], errors.InvalidLabel]]:
    minimum, maximum = labels.min_node_count, labels.max_node_count
    if minimum is None or maximum is None or minimum <= maximum:
        return
    names = ("min_node_count", "max_node_count")
    if texts.get("min_node_count", "").strip():
        expected = f"at most {maximum}, the value of max_node_count"
        yield names, errors.InvalidLabel("min_node_count", str(minimum), expected)
    else:
        expected = f"at least {minimum}, the value of min_node_count"
        yield names, errors.InvalidLabel("max_node_count", str(maximum), expected)
