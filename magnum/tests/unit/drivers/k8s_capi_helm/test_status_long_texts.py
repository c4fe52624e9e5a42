# SPDX-License-Identifier: Apache-2.0
"""What controllers and tenants write is bounded before it is read for its meaning."""

from __future__ import annotations

import json

import hypothesis
from hypothesis import strategies as st
import testtools

from magnum.drivers.k8s_capi_helm.kube.watch import transform
from magnum.drivers.k8s_capi_helm.model import conditions, names, observed
from magnum.drivers.k8s_capi_helm.status.objects import workload_addons
from magnum.drivers.k8s_capi_helm.status.texts import issue, messages
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.call_counts import calls

#: Beginnings that are repeated until the text is as long as it is wanted.
HOSTILE = (
    "{",
    '{"',
    '{"a":',
    '{"a":[',
    '{"message":',
    '{"message": "',
    '{"message": ""},',
    '{"message": "\\ud800',
    '{"a": {"message": 1, ',
    '{"a\\"{',
    '{ "\\',
    "[{",
    "}{",
    '{"a": 1e9, ',
    "\\",
    '"',
    " {\n",
    "network.",
    'MachineSet version (1) and ControlPlane version (2) "a',
    "Unable to complete operation on network a There are one or more ports still in use on the "
    "network, id for these ports is: ",
    "Exceeded max scheduling attempts 1 for instance a",
    "kubeletVersion a, ",
    "* :\n",
)


def unwrapped(text: str) -> str:
    """As it is the first time: what it remembers would hide what it costs."""
    issue._unwrapped.cache_clear()
    return issue.unwrap_message(text)


READERS = (
    unwrapped,
    issue.shorten_reason,
    issue.cause_of,
    messages.of_neutron,
    messages.of_nova,
    messages.of_kubelet,
    messages.of_skew,
)


def of_size(beginning: str, size: int) -> str:
    return (beginning * (size // len(beginning) + 1))[:size]


class TestReaders(testtools.TestCase):
    """Whatever a message is, reading it takes a number of steps that has a bound."""

    def test_no_text_is_too_deep_or_too_long(self) -> None:
        for beginning in HOSTILE:
            for size in (10, 1_000, 20_000, 1_000_000):
                for reader in READERS:
                    self.assertIsNotNone(reader(of_size(beginning, size)))

    def test_a_text_of_a_megabyte_takes_no_more_steps_than_the_longest_that_is_read(self) -> None:
        for beginning in HOSTILE:
            longest = of_size(beginning, conditions.LONGEST)
            huge = of_size(beginning, 1 << 20)
            for reader in READERS:
                at_most = calls(lambda reader=reader, text=longest: reader(text)) + 5
                self.assertLessEqual(
                    calls(lambda reader=reader, text=huge: reader(text)), at_most, beginning
                )

    def test_twice_the_text_takes_twice_the_steps(self) -> None:
        for beginning in HOSTILE:
            half, whole = (of_size(beginning, conditions.LONGEST // part) for part in (2, 1))
            for reader in READERS:
                steps = calls(lambda reader=reader, text=half: reader(text))
                twice = calls(lambda reader=reader, text=whole: reader(text))
                self.assertLessEqual(twice, 2 * steps + 20, (reader, beginning))

    @hypothesis.given(st.text(alphabet='{}[]:,"\\ am1\n') | st.text())
    def test_any_text_is_read(self, text: str) -> None:
        self.assertTrue(issue.unwrap_message(text) or not text)

    @hypothesis.given(
        st.dictionaries(st.sampled_from(("a", "error", "message", "faultstring")), st.text()),
        st.text(alphabet="ab{\n"),
    )
    def test_what_an_answer_says_is_found_wherever_it_stands(self, said, before) -> None:
        text = f'{before} {{"wrong": {json.dumps(said)}}}'
        wanted = next((said[key] for key in ("message", "faultstring") if said.get(key)), "")
        self.assertEqual(wanted if wanted.strip() else text, issue.unwrap_message(text))

    def test_the_deepest_sentence_is_told_whatever_stands_around_it(self) -> None:
        for text, wanted in (
            ('{"message": "outer", "error": {"message": "inner"}}', "inner"),
            ('{"error": {"a": [{"message": "listed"}]}, "message": "own"}', "own"),
            ('{"faultstring": "first", "message": "better"}', "better"),
            ('{"message": "cut off", "more": {"a": ', None),
            ('{"error": {"message": "whole"}, "more": "cut o', "whole"),
            ('{"message": 1}{"message": "two"}', "two"),
            ('{"message": "a \\"quoted\\" \\u00e9 word"}', 'a "quoted" é word'),
        ):
            self.assertEqual(wanted or text, issue.unwrap_message(text))


class TestConditions(testtools.TestCase):
    """A condition's words are cut where they are read first, so nothing later sees more."""

    def test_words_of_a_megabyte(self) -> None:
        thing = builders.observed().cluster
        builders.say(thing, "Available", "False", "x" * (1 << 20))
        said = conditions.condition(thing, "Available")
        self.assertEqual(conditions.LONGEST, len(said.message))

    def test_what_is_no_text_has_none(self) -> None:
        thing = builders.observed().cluster
        for wrong in ({"a": 1}, ["a"] * 10**5, 7, None, True):
            builders.say(thing, "Available", "False", wrong)
            self.assertEqual("", conditions.condition(thing, "Available").message)


class TestTrimming(testtools.TestCase):
    """What is watched is kept for as long as it lives: nothing of it is longer than is read."""

    def test_an_event_of_a_megabyte(self) -> None:
        event = {"kind": "Event", "metadata": {"name": "one"}, "message": "x" * (1 << 20)}
        self.assertEqual(
            conditions.LONGEST, len(transform.transform(names.EVENT, event)["message"])
        )

    def test_an_addon_that_lists_and_says_without_end(self) -> None:
        made = {"apiVersion": "v1", "kind": "Secret", "name": "a", "namespace": "b"}
        status = {
            "phase": "Failed",
            "failureMessage": "denied the request: " + "x" * (1 << 20),
            "resources": [made] * 20_000,
        }
        addon = {"kind": "HelmRelease", "metadata": {"name": "one"}, "status": status}
        kept = transform.transform(names.HELM_RELEASE, addon)
        self.assertLess(len(json.dumps(kept)), 200_000)
        self.assertEqual(20_000, len(status["resources"]))

    def test_of_a_list_without_end_a_part_is_read(self) -> None:
        look = builders.observed()
        made = [
            {"apiVersion": "v1", "kind": "Secret", "name": f"a{number}", "namespace": "b"}
            for number in range(40_000)
        ]

        def steps(count: int) -> int:
            for addon in look.addons:
                addon["status"]["resources"] = made[:count]
            return calls(lambda: workload_addons.expected(look.addons))

        self.assertLessEqual(steps(40_000), steps(observed.LONGEST_LIST) + 10)
