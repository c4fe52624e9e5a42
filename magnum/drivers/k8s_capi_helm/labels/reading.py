# SPDX-License-Identifier: Apache-2.0
"""Texts of a cluster's labels and of the site's defaults -> typed labels, or what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from oslo_utils import strutils

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.labels import declaring, registry

#: Labels of magnum-capi-helm that this version cannot do anything for yet.
NOT_YET = frozenset({"kube_dashboard_enabled"})
#: What Octavia's providers cannot do (its provider driver feature matrix).
_OVN_ONLY_ALGORITHM = "SOURCE_IP_PORT"
_AMPHORA = frozenset({"amphora", "amphorav2", "octavia"})


def parse(
    texts: Mapping[str, str],
    defaults: Mapping[str, str],
    template: Mapping[str, str] | None = None,
    *,
    running: bool = False,
) -> registry.Labels:
    """The typed labels of a cluster.

    :param texts: the cluster's labels as Magnum keeps them; unknown ones are left alone, see
        :func:`~magnum.drivers.k8s_capi_helm.labels.notices`.
    :param defaults: texts of the site's defaults, used for labels that *texts* does not give.
    :param template: labels of the cluster template, for a cluster that is to be made: what only a
        template can set must not differ from it, and what this version cannot do is refused.
        Without it the cluster runs already.
    :param running: no label may keep the cluster from being resized: one that cannot be read, which
        magnum-capi-helm took for not given, is not given.
    :raises InvalidLabel: a label has another form than it should, or contradicts another one.
    :raises InvalidRequest: a label asks for what this version of the driver cannot do.
    :raises Misconfigured: a site default is wrong.
    """
    if template is not None:
        _refuse_not_yet(texts)
        _refuse_not_from_template(texts, template)
    if running:
        texts = readable(texts)
    values: dict[str, Any] = {}
    for label in registry.REGISTRY:
        for name, text in given(label, texts):
            values[label.name] = _read(label, name, text)
            break
        else:
            for name, text in given(label, defaults):
                values[label.name] = _read_default(label, name, text)
                break
    _settle_algorithm(values, texts)
    labels = registry.Labels(**values)
    if not running:
        _refuse_contradictions(labels, texts)
    return labels


def given(label: declaring.Label, texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Names and texts under which *label* is given, its own name before its old ones."""
    for name in (label.name, *label.aliases):
        if texts.get(name, "").strip():
            yield name, texts[name]


def readable(texts: Mapping[str, str]) -> dict[str, str]:
    """Labels without those whose text does not have the label's form."""
    found = dict(texts)
    for label in registry.REGISTRY:
        for name, text in given(label, texts):
            try:
                label.form.read(text)
            except ValueError:
                del found[name]
    return found


def parse_node_group(
    own: Mapping[str, str],
    cluster: Mapping[str, str],
    defaults: Mapping[str, str],
    *,
    running: bool = False,
) -> registry.Labels:
    """The typed labels that hold for one nodegroup: its own laid over those of its cluster.

    Magnum copies the cluster's labels into the default nodegroups, and into others on request; a
    copy is no wish of its own, so it is not looked at.

    :param own: the nodegroup's labels as Magnum keeps them.
    :param running: as for :func:`parse`.
    :raises InvalidLabel: as :func:`parse`.
    """
    texts, own = dict(cluster), readable(own) if running else own
    for label in registry.REGISTRY:
        if declaring.Site.NODEGROUP not in label.sites:
            continue
        for name, text in given(label, own):
            if text != cluster.get(name):
                for known in (label.name, *label.aliases):
                    texts.pop(known, None)
                texts[name] = text
                break
    return parse(texts, defaults, running=running)


def check_node_group(
    own: Mapping[str, str], cluster: Mapping[str, str], defaults: Mapping[str, str]
) -> None:
    """Refuse what a new nodegroup cannot have otherwise than its cluster.

    :raises InvalidLabel: a label has another form than it should.
    :raises InvalidRequest: the first label that is the whole cluster's.
    """
    allowed = [one.name for one in registry.REGISTRY if declaring.Site.NODEGROUP in one.sites]
    for name in sorted(own):
        label = registry.BY_NAME.get(name)
        if label is None or not own[name].strip() or own[name] == cluster.get(name):
            continue
        if declaring.Site.NODEGROUP not in label.sites:
            raise errors.InvalidRequest(
                f"Label '{name}' of the nodegroup has the value '{own[name]}', which is not the "
                "cluster's. It holds for whole clusters; of its own a nodegroup can have: "
                f"{', '.join(allowed)}. Create the nodegroup without the label."
            )
    parse_node_group(own, cluster, defaults)


def _read(label: declaring.Label, name: str, text: str) -> Any:
    try:
        return label.form.read(text)
    except ValueError:
        raise errors.InvalidLabel(name, text, label.form.expected) from None


def _read_default(label: declaring.Label, name: str, text: str) -> Any:
    try:
        return label.form.read(text)
    except ValueError:
        raise errors.Misconfigured(
            f"This cloud's default for label '{name}' cannot be used: it is '{text}', expected "
            f"{label.form.expected}. Set the label yourself or ask the cloud's operator.",
            f"option {name} in [capi_helm_cluster_labels] (or what it takes its default from)",
        ) from None


def _refuse_not_yet(texts: Mapping[str, str]) -> None:
    for name in sorted(NOT_YET & set(texts)):
        wanted = texts[name].strip()
        if wanted and strutils.bool_from_string(wanted, default=True):
            raise errors.InvalidRequest(
                f"Label '{name}' with the value '{texts[name]}' is not supported by this version "
                "of the driver. Remove the label, or set it to false."
            )


def _refuse_not_from_template(texts: Mapping[str, str], template: Mapping[str, str]) -> None:
    for label in registry.REGISTRY:
        if declaring.Site.CLUSTER in label.sites:
            continue
        for name, text in given(label, texts):
            if text != template.get(name):
                raise errors.InvalidLabel(
                    name,
                    text,
                    "the cluster template's value, as only a template can set this label",
                )


def _settle_algorithm(values: dict[str, Any], texts: Mapping[str, str]) -> None:
    """Keep a site's default algorithm out of a cluster whose provider does not have it."""
    named = values.get("octavia_lb_algorithm")
    if named is None or texts.get("octavia_lb_algorithm", "").strip():
        return
    provider = values.get("octavia_provider", registry.Labels().octavia_provider)
    if (provider == "ovn") != (named == _OVN_ONLY_ALGORITHM):
        del values["octavia_lb_algorithm"]


def _refuse_contradictions(labels: registry.Labels, texts: Mapping[str, str]) -> None:
    algorithm = labels.octavia_lb_algorithm
    if labels.octavia_provider == "ovn" and algorithm not in (None, _OVN_ONLY_ALGORITHM):
        raise errors.InvalidLabel(
            "octavia_lb_algorithm",
            texts.get("octavia_lb_algorithm", ""),
            f"{_OVN_ONLY_ALGORITHM}, the only one that the Octavia provider ovn has",
        )
    if labels.octavia_provider in _AMPHORA and algorithm == _OVN_ONLY_ALGORITHM:
        raise errors.InvalidLabel(
            "octavia_lb_algorithm",
            texts.get("octavia_lb_algorithm", ""),
            "ROUND_ROBIN, LEAST_CONNECTIONS or SOURCE_IP, which the Octavia provider "
            f"{labels.octavia_provider} has",
        )
    least, most = labels.min_node_count, labels.max_node_count
    if least is not None and most is not None and least > most:
        if texts.get("min_node_count", "").strip():
            raise errors.InvalidLabel(
                "min_node_count", str(least), f"at most {most}, the value of max_node_count"
            )
        raise errors.InvalidLabel(
            "max_node_count", str(most), f"at least {least}, the value of min_node_count"
        )
