# SPDX-License-Identifier: Apache-2.0
"""Explanations of labels: which value is in force, and which of many places it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from magnum.drivers.k8s_capi_helm import conf as conf_module
from magnum.drivers.k8s_capi_helm import labels
from magnum.drivers.k8s_capi_helm.commands.explain import effects
from magnum.drivers.k8s_capi_helm.commands.explain.effects import ValueEffect
from magnum.drivers.k8s_capi_helm.commands.explain.explanation import (
    CLUSTER,
    ExplainedCluster,
    Explanation,
    NOTHING,
)
from magnum.drivers.k8s_capi_helm.conf import overlay_files
from magnum.drivers.k8s_capi_helm.labels import LabelScope, parser
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader
from magnum.drivers.k8s_capi_helm.model import names, NodeGroupRequest

_OF_TEMPLATE, _OF_CLUSTER = "label of the cluster template", "label of the cluster"
_OF_IMAGE, _OF_DRIVER, _OF_CHART = (
    "image of the cluster template",
    "default of the driver",
    "default of the chart",
)
#: Labels that choose chart and overlay, of which no record can say what they move.
_ROLLS_BY_CHOICE = "depends on what is chosen"


def label_rows(subject: ExplainedCluster) -> Iterator[Explanation]:
    """All labels of the driver, then those that the cluster has besides."""
    sentences = subject.sentences()
    for label in labels.REGISTRY:
        yield _cluster_row(subject, label, sentences)
        yield from _nodegroup_rows(subject, label)
    yield from _other_rows(subject, sentences)


def absent_row(name: str) -> Explanation:
    """A label of another driver that the cluster does not have."""
    reason = labels.why_without_effect(name, "set")
    return Explanation(name, CLUSTER, notice=f"Label '{name}' has no effect: {reason}")


def _cluster_row(
    subject: ExplainedCluster, label: labels.Label, sentences: Mapping[str, str]
) -> Explanation:
    effect = effects.label_effects().get(label.name, effects.NONE)
    value = labels.value_text(label, getattr(subject.request.labels, label.name))
    own = {one.name for one in subject.request.node_groups if _is_own(subject, label, one)}
    followers = [one for one in subject.request.node_groups if one.name not in own]
    rolls = subject.rolls(effect, label.change_time, followers)
    is_choice = LabelScope.CLUSTER not in label.scopes
    source, overlaid = _source(subject, label, effect)
    notices = [sentences[one] for one in (label.name, *label.aliases) if one in sentences]
    if kept := _kept_sentence(subject, label, value):
        notices.append(kept)
    return Explanation(
        label.name,
        CLUSTER,
        overlaid or value,
        source,
        str(label.change_time),
        _ROLLS_BY_CHOICE if is_choice else rolls,
        " ".join(notices),
        effect,
        is_in_force=not notices,
    )


def _source(subject: ExplainedCluster, label: labels.Label, effect: ValueEffect) -> tuple[str, str]:
    """Where the value of a cluster's label comes from, and the values of an overlay instead."""
    cluster, conf = subject.cluster, subject.settings
    template_labels = cluster.cluster_template.labels or {}
    texts = labels.with_template_only(cluster.labels or {}, template_labels)
    for name, text in parser.given_labels(label, labels.readable_labels(texts)):
        is_copy = template_labels.get(name) == text
        return (_OF_TEMPLATE if is_copy else _OF_CLUSTER), ""
    paths = [tuple(path.partition("[]")[0].split(".")) for path in effect.values]
    overlay = overlay_files.overlays_with(
        conf.capi_helm.overlay_directory, subject.request.labels.capi_helm_overlay, paths
    )
    if overlay is not None:
        return f"overlay '{overlay[0]}' ({overlay[1]})", _live_texts(subject, paths)
    if option := conf_module.default_option(conf, label.name):
        return f"option {option}", ""
    if label.name == "kube_tag":
        return _OF_IMAGE, ""
    is_of_chart = label.default in (None, ()) and not label.is_for_rollouts
    return (_OF_CHART if is_of_chart else _OF_DRIVER), ""


def _live_texts(subject: ExplainedCluster, paths: list[tuple[str, ...]]) -> str:
    """What the release has at some paths of its values, where the chart's defaults do not hold."""
    found = []
    for path in dict.fromkeys(paths):
        value: object = subject.live_values
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            found.append(f"{'.'.join(path)}={value}")
    return ", ".join(found)


def _kept_sentence(subject: ExplainedCluster, label: labels.Label, value: str) -> str:
    """What a release keeps of a label, "" where it is what is computed now or is not on record."""
    prefix = f"{names.EFFECTIVE_LABEL}/"
    recorded = {
        key.removeprefix(prefix): str(text)
        for key, text in (subject.live_values.get("clusterAnnotations") or {}).items()
        if key.startswith(prefix)
    }
    # Without any record it may be a release of an older driver, which kept none.
    default = labels.value_text(label, label.default)
    kept = recorded.get(label.name, default if recorded else value)
    if kept == value or label.is_for_rollouts:
        return ""
    return (
        f"The release was made with '{kept}' and keeps it until an upgrade to a template that "
        "changes the label."
    )


def _nodegroup_rows(subject: ExplainedCluster, label: labels.Label) -> Iterator[Explanation]:
    """Nodegroups that have a label otherwise than their cluster."""
    effect = effects.label_effects().get(label.name, effects.NONE)
    of_workers = ValueEffect(
        tuple(path for path in effect.values if path.startswith("nodeGroup")),
        tuple(one for one in effect.objects if one.endswith(" NODEGROUP")),
    )
    for nodegroup in subject.request.node_groups:
        if _is_own(subject, label, nodegroup):
            name = subject.nodegroup_names[nodegroup.name]
            value = getattr(nodegroup.labels, label.name)
            yield Explanation(
                label.name,
                f"nodegroup {name}",
                labels.value_text(label, value),
                "label of the nodegroup",
                str(labels.ChangeTime.NEVER),
                effect=of_workers,
            )


def _is_own(subject: ExplainedCluster, label: labels.Label, nodegroup: NodeGroupRequest) -> bool:
    if nodegroup.labels is None or LabelScope.NODEGROUP not in label.scopes:
        return False
    own, common = getattr(nodegroup.labels, label.name), subject.request.labels
    return bool(own != getattr(common, label.name))


def _other_rows(subject: ExplainedCluster, sentences: Mapping[str, str]) -> Iterator[Explanation]:
    """Labels that are none of this driver's, and those of nodegroups that do nothing there."""
    cluster = subject.cluster
    texts, template_labels = cluster.labels or {}, cluster.cluster_template.labels or {}
    for name in sorted(texts.keys() - labels.BY_NAME.keys()):
        source = _OF_TEMPLATE if template_labels.get(name) == texts[name] else _OF_CLUSTER
        yield Explanation(
            name,
            CLUSTER,
            texts[name],
            source,
            rolls=NOTHING,
            notice=sentences.get(name, ""),
            is_in_force=False,
        )
    for nodegroup in reader.worker_nodegroups(cluster.nodegroups):
        own = {} if nodegroup.is_default else nodegroup.labels or {}
        for name in sorted(name for name in own if own[name] != texts.get(name)):
            if reason := labels.why_without_effect(name, own[name], is_nodegroup=True):
                yield Explanation(
                    name,
                    f"nodegroup {nodegroup.name}",
                    own[name],
                    "label of the nodegroup",
                    rolls=NOTHING,
                    notice=f"Label '{name}' has no effect: {reason}",
                    is_in_force=False,
                )
