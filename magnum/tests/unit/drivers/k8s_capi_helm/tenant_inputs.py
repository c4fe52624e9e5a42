# SPDX-License-Identifier: Apache-2.0
"""Everything that a tenant can write, as values that are hostile and accepted all the same.

Made from the registry of labels and the table of fields, so that a new one is in it from its first
day. A label whose form takes nothing hostile stands there with its example.
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import functools
import re
from typing import Any

from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.magnum_objects.validation.fields import Effect, FieldOwner, FIELDS
from magnum.drivers.k8s_capi_helm.model import Json
from magnum.tests.unit.drivers.k8s_capi_helm import (
    test_helm_values,
    test_magnum_fields,
    test_magnum_objects,
)
from magnum.tests.unit.drivers.k8s_capi_helm.test_helm_values import FACTS
from magnum.tests.unit.drivers.k8s_capi_helm.test_tenant_text_is_data import HOSTILE

#: With these there is a workload on the management cluster.
SCALED = {"auto_scaling_enabled": "true", "min_node_count": "1", "max_node_count": "5"}
#: Where labels fit one pod network only.
CNIS = ("calico", "cilium")
#: What the forms of labels take: names of a stranger's registry, host, version, network, flag.
_EVIL = (
    "evil.example.org:5000/x",
    "https://evil.example.org/x",
    "evil.example.org",
    "evil",
    "EVIL evil",
    "v1.66.66",
    "v6.66.6",
    "6.6.6.6",
    "66.6.0.0/16",
    "10.66.0.0/16",
    "192.168.66.0/24",
    "--v=6 --profiling=true",
    "--feature-gates=Evil=true",
    "node.cluster.x-k8s.io/evil=evil.example.org",
    "66666666-6666-4666-8666-666666666666",
    "66Gi",
    "66",
    "6",
    "1",
    "true",
    "false",
)
_NETWORKS = frozenset(text for text in _EVIL if re.fullmatch(r"[0-9a-f.:]+/\d+", text))
_ID = "66666666-6666-4666-8666-6666666666"
#: Values of fields that are accepted and a stranger's.
_FIELDS: dict[tuple[FieldOwner, str], Any] = {
    **test_magnum_fields.EXAMPLES,
    (FieldOwner.TEMPLATE, "http_proxy"): "http://evil.example.org:3128",
    (FieldOwner.TEMPLATE, "https_proxy"): "http://evil.example.org:3128",
    (FieldOwner.TEMPLATE, "insecure_registry"): "evil.example.org:5000",
    (FieldOwner.TEMPLATE, "dns_nameserver"): "66.6.6.6",
    (FieldOwner.TEMPLATE, "name"): "evil {{ x }}",
    (FieldOwner.TEMPLATE, "external_network_id"): f"{_ID}01",
    (FieldOwner.CLUSTER, "fixed_network"): f"{_ID}02",
    (FieldOwner.CLUSTER, "fixed_subnet"): f"{_ID}03",
    (FieldOwner.TEMPLATE, "no_proxy"): "evil.example.org",
    (FieldOwner.CLUSTER, "name"): "evil --image=evil.example.org/x",
    (FieldOwner.CLUSTER, "keypair"): "evil {{ x }}",
    (FieldOwner.CLUSTER, "labels"): {"container_infra_prefix": "evil.example.org/x"},
    (FieldOwner.NODE_GROUP, "labels"): {"node_annotations": "node.cluster.x-k8s.io/evil=evil"},
    (FieldOwner.NODE_GROUP, "role"): "evil",
    (FieldOwner.NODE_GROUP, "node_labels"): {"evil.example.org/evil": "evil"},
    (FieldOwner.NODE_GROUP, "node_taints"): [{"key": "evil", "value": "e", "effect": "NoSchedule"}],
    (FieldOwner.NODE_GROUP, "min_node_count"): 2,
    (FieldOwner.NODE_GROUP, "max_node_count"): 66,
}


@dataclasses.dataclass(frozen=True)
class Word:
    """One thing that a tenant writes, with the values that the driver makes of it.

    :ivar name: a label, or place and name of a field.
    :ivar base: the values without it.
    :ivar is_hostile: it is no example of the documentation.
    """

    name: str
    text: str
    values: Json
    base: Json
    is_hostile: bool = True


def of_labels() -> Iterator[Word]:
    """Every text that a label takes, each in a cluster of its own that has an autoscaler."""
    for label in labels.REGISTRY:
        beside = {**SCALED, **test_helm_values.COMPANIONS.get(label.name, {})}
        fields = test_helm_values.FIELDS.get(label.name, {})
        usual = test_helm_values.sample(label)
        texts = dict.fromkeys((usual, *label.label_type.choices, *_EVIL, *HOSTILE))
        for text in texts:
            values = _rendered({**beside, label.name: text}, fields)
            if values is not None:
                base = _rendered(beside, fields)
                assert base is not None
                yield Word(label.name, text, values, base, text in (*_EVIL, *HOSTILE))


def tried() -> int:
    """How many texts :func:`of_labels` tries."""
    return sum(
        len({test_helm_values.sample(label), *label.label_type.choices, *_EVIL, *HOSTILE})
        for label in labels.REGISTRY
    )


def of_fields() -> Iterator[Word]:
    """Every field that has an effect, or whose text gets anywhere, with a stranger's value."""
    base = _of_rows({})
    for place, name in _FIELDS:
        change = {(place, name): _FIELDS[place, name]}
        yield Word(f"{place} {name}", str(_FIELDS[place, name]), _of_rows(change), base)
    # Without a load balancer the API would need an address that it is not given here.
    several = {key: one for key, one in _FIELDS.items() if key[1] != "master_lb_enabled"}
    yield Word("all fields", "", _of_rows(several), base)


def fields_without_a_word() -> set[tuple[FieldOwner, str]]:
    """Fields with an effect of which no word is made; each needs a reason in the tests."""
    honoured = {(one.owner, one.name) for one in FIELDS if one.effect is Effect.HONOURED}
    return honoured - set(_FIELDS)


@functools.cache
def together(cni: str) -> tuple[Json, Json, frozenset[str]]:
    """One cluster with as much as can be had at once of what labels take.

    :returns: its values, those without all of it, and which labels there are.
    """
    fields: Json = {"cni": cni}
    texts = dict(SCALED)
    for word in of_labels():
        more = {**texts, **test_helm_values.COMPANIONS.get(word.name, {}), word.name: word.text}
        is_new = word.name not in texts or texts[word.name] == _example(word.name)
        # Networks must not overlap, which only the chart finds out.
        is_new &= word.text not in _NETWORKS or word.text not in texts.values()
        if is_new and more.items() >= SCALED.items() and _rendered(more, fields) is not None:
            texts = more
    base, values = _rendered(SCALED, fields), _rendered(texts, fields)
    assert base is not None and values is not None
    return values, base, frozenset(texts)


def _example(name: str) -> str:
    return test_helm_values.sample(labels.BY_NAME[name])


def _rendered(texts: dict[str, str], fields: Json) -> Json | None:
    try:
        return test_helm_values.rendered(texts, **fields)
    except errors.InvalidRequest:
        return None


def _of_rows(changes: dict[tuple[FieldOwner, str], Any]) -> Json:
    by_place: dict[FieldOwner, Json] = {place: {} for place in FieldOwner}
    by_place[FieldOwner.TEMPLATE]["external_network_id"] = f"{_ID}00"
    for (place, name), value in changes.items():
        by_place[place][name] = value
    mine = by_place[FieldOwner.CLUSTER]
    mine["labels"] = {**SCALED, **mine.get("labels", {})}
    template = test_magnum_objects.template(**by_place[FieldOwner.TEMPLATE])
    made = test_magnum_objects.cluster(cluster_template=template, **mine)
    workers = test_magnum_objects.group(**by_place[FieldOwner.NODE_GROUP])
    return test_magnum_fields.rendered(
        made, [test_magnum_objects.group("default-master", role="master"), workers]
    )


__all__ = ["CNIS", "FACTS", "SCALED", "Word", "of_fields", "of_labels", "together", "tried"]
