# SPDX-License-Identifier: Apache-2.0
"""Labels: each is refused by name, or moves its own paths of the values and nothing else."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st

from magnum.drivers.k8s_capi_helm import errors, helm_values, labels
from magnum.drivers.k8s_capi_helm.commands.explain import effects
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm import hostile
from magnum.tests.unit.drivers.k8s_capi_helm import test_helm_values as values

_LABEL = {one.name: one for one in labels.REGISTRY}
_NAMES = tuple(_LABEL)
#: Labels whose texts name keys themselves, and where: flags of programs, annotations of nodes.
_OPEN = {
    "node_annotations": re.compile(r".*\.nodeAnnotations\."),
    **dict.fromkeys(
        [one.name for one in labels.REGISTRY if one.name.endswith("_options")],
        re.compile(r".*\."),
    ),
}
#: What is rendered without any label, with all that Magnum's fields can bring.
_FACTS = {"keypair": "me", "dns_nameservers": ("192.0.2.53",)}


def flat(found: Any) -> set[tuple[str, str]]:
    return {(path, repr(leaf)) for path, leaf in values.leaves(found)}


def _effects() -> dict[str, list[str]]:
    return {name: list(moved.values) for name, moved in effects.label_effects().items()}


class TestLabels(hostile.HostileCase):
    """One label of a cluster has a hostile text."""

    owned = _effects()
    plain: dict[str, set[tuple[str, str]]] = {}

    def rendered(self, texts: dict[str, str], name: str) -> Any:
        fields = {**_FACTS, **values.FIELDS.get(name, {})}
        asked = values.request(texts, **fields)
        return helm_values.render(asked, values.seen(asked))

    def is_owned(self, name: str, path: str) -> bool:
        path = path.lstrip(".")
        if path.startswith(f"clusterAnnotations.{names.EFFECTIVE_LABEL}/{name}"):
            return True
        for one in self.owned.get(name, ()):
            if path == one or path.startswith((f"{one}.", f"{one}[")):
                return True
            open_at = _OPEN[name].match(one) if name in _OPEN else None
            if open_at is not None and path.startswith(open_at[0]):
                return True
        return False

    @hostile.given(st.sampled_from(_NAMES), hostile.spoiled, examples=8)
    def test_a_text_is_refused_by_name_or_stays_in_its_paths(self, name: str, text: str) -> None:
        self.try_it(name, text)

    @hostile.given(st.sampled_from(_NAMES), hostile.texts, st.integers(0, 60), examples=8)
    def test_a_good_text_that_is_spoiled(self, name: str, text: str, place: int) -> None:
        good = _LABEL[name].example
        place %= len(good) + 1
        self.try_it(name, f"{good[:place]}{text}{good[place:]}")

    def try_it(self, name: str, text: str) -> None:
        if not self.owned:
            self.skipTest("the documentation is not here")
        beside = values.COMPANIONS.get(name, {})
        try:
            found = self.rendered({**beside, name: text}, name)
        except errors.DriverError as error:
            self.assertIsInstance(error, errors.InvalidRequest)
            self.assert_sentence(error)
            self.assertIn("abel '", str(error))
            return
        if name not in self.plain:
            self.plain[name] = flat(self.rendered(beside, name))
        moved = {path for path, _ in flat(found) ^ self.plain[name]}
        strayed = sorted(path for path in moved if not self.is_owned(name, path))
        self.assertEqual([], strayed, (name, text))
        self.assert_same_as_text(found)
        new = {leaf for path, leaf in values.leaves(found) if isinstance(leaf, str)}
        for mark in ("{{", "{%", "{#"):
            self.assertEqual([], [one for one in new if mark in one], (name, text))

    @hostile.given(hostile.spoiled, hostile.texts, examples=4)
    def test_an_unknown_label_moves_nothing(self, name: str, text: str) -> None:
        if name in labels.BY_NAME:
            return
        try:
            found = values.rendered({name: text})
        except errors.InvalidRequest as error:
            # Known as one that cannot be had.
            self.assert_sentence(error, name)
            return
        self.assertEqual(values.rendered({}), found)

    @hostile.given(
        st.dictionaries(st.sampled_from(_NAMES), hostile.texts, max_size=4),
        st.dictionaries(hostile.texts, hostile.texts, max_size=3),
        examples=4,
    )
    def test_a_cluster_that_runs_is_never_refused_for_its_labels(
        self, known: Any, more: Any
    ) -> None:
        texts = {**more, **known}
        typed = labels.parse(texts, {}, running_labels=texts)
        self.assertIsInstance(typed, labels.Labels)
        self.assertEqual(
            {},
            {
                name: text
                for name, text in labels.readable_labels(texts).items()
                if name not in texts
            },
        )


class TestNodegroups(hostile.HostileCase):
    """Labels of a nodegroup."""

    @hostile.given(st.sampled_from(_NAMES), hostile.spoiled, st.booleans(), examples=4)
    def test_a_nodegroups_label(self, name: str, text: str, running: bool) -> None:
        own, cluster = {name: text}, {"boot_volume_size": "10"}
        try:
            if not running:
                labels.check_nodegroup(own, cluster, {})
            typed = labels.parse_nodegroup(own, cluster, {}, is_running=running)
        except errors.DriverError as error:
            self.assertFalse(running, str(error))
            self.assertIsInstance(error, errors.InvalidRequest)
            self.assert_sentence(error)
            return
        group = values.NodeGroupRequest("more", "7", 1, labels=typed)
        plain = values.NodeGroupRequest("more", "7", 1)
        found, before = (
            helm_values.render(
                values.request(cluster, node_groups=(values.WORKERS, one)), values.FACTS
            )
            for one in (group, plain)
        )
        strayed = [
            path
            for path, _ in flat(found) ^ flat(before)
            if not path.startswith((".nodeGroups[]", ".clusterAnnotations."))
        ]
        self.assertEqual([], strayed)
        self.assertEqual(found["nodeGroups"][0], before["nodeGroups"][0])
