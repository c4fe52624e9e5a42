# SPDX-License-Identifier: Apache-2.0
"""Text is text: what looks like a number, a date, YAML or a template arrives as it was written.

Each text of a scenario is first a word of its own, to see where it comes out; then each gets the
hostile texts in turn, and must come out at the same places.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
import contextlib
import json
import re
from typing import Any
import unittest

import jsonschema  # type: ignore[import-untyped]

from magnum.tests.functional.k8s_capi_helm.charts import any_values, keys, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Scenario, Values

HOSTILE = (
    *("123", "1e3", "0x1f", "true", "null", "~", "2024-01-01", "a: b", "# x", "- y", "[z]"),
    *('say "hi"', "it's", "größer-部", "{{ x }}", "{% y %}", "trailing ", "back\\slash", "&a *b"),
)
#: The hash at the end of an immutable template's name.
_HASH = re.compile(r"-[0-9a-f]{8}$")
#: The chart says why it does not take these texts, by the end of the key and part of the text.
REFUSED: Mapping[str, str] = {"machineImage": "{{"}
#: What reaches cloud-init's template as it is, by the section and part of a key: without its marks.
PLAIN = {
    *(("apiServer", "extraArgs"), ("apiServer", "extraVolumes"), ("apiServer", "audit")),
    *(
        (program, key)
        for program in ("controllerManager", "scheduler", "etcd")
        for key in ("extraArgs", "extraVolumes", "dataDir")
    ),
    *(("kubelet", "extraArgs"), ("controlPlane", "kubeletExtraArgs")),
    *(("nodeGroupDefaults", "kubeletExtraArgs"), ("nodeGroups", "kubeletExtraArgs")),
}
#: Parts of keys that are no free text, whatever their schema says: they must fit something else.
NOT_FREE = {
    *("cloudName", "trustedCAs", "additionalAuthorizers", "dnsNameservers"),
    *("additionalSyncMachineLabels", "additionalSyncMachineAnnotations"),
}
#: In the scenarios that set these, a stronger key says something else.
QUIET = {
    *("apiServer.extraArgs.profiling", "kubelet.extraArgs.v", "controlPlane.kubeletExtraArgs.v"),
}
#: The autoscaler's list of labels leaves out what is no value of a label.
LABELS = "capacity.cluster-autoscaler.kubernetes.io/labels"

Place = tuple[Any, ...]


def texts_in(values: Any, above: Place = ()) -> Iterator[tuple[Place, str]]:
    """Each text in some values, with the way to it."""
    if isinstance(values, str):
        yield above, values
    elif isinstance(values, (dict, list)):
        for step, found in values.items() if isinstance(values, dict) else enumerate(values):
            yield from texts_in(found, (*above, step))


def free(place: Place) -> list[str]:
    """The hostile texts that the schema takes at a place."""
    schema: Any = keys.root(rendering.CLUSTER)
    if place[0] == "addons" or NOT_FREE & set(place):
        return []
    for step in place:
        schema, _ = keys.resolved(rendering.CLUSTER, schema)
        below = dict(keys.within(schema))
        if step in below:
            schema = below[step]
        elif isinstance(step, int) and keys.ITEMS in below:
            schema = below[keys.ITEMS]
        elif keys.ANY in below:
            schema = below[keys.ANY]
        else:
            return []  # passed through: what a scenario has there is not the chart's business
    root = keys.root(rendering.CLUSTER)
    validator = jsonschema.Draft7Validator({**schema, "definitions": root["definitions"]})
    refused = REFUSED.get(str(place[-1]), "\0")
    plain = place[0] == "oidc" or any((place[0], part) in PLAIN for part in place)
    return [
        text
        for text in HOSTILE
        if refused not in text
        and not (plain and re.search(r"\{[{%#]", text))
        and validator.is_valid(text)
    ]


def come_out(values: Values) -> dict[Place, str]:
    """Every text of every object, by the object and the way to it."""
    found = {}
    for one in rendering.render(rendering.CLUSTER, values):
        kind, name = rendering.identity(one)
        for place, text in texts_in(one):
            where = (kind, _HASH.sub("", name), *place)
            found[where] = text
            with contextlib.suppress(ValueError):
                found[(*where, "decoded")] = base64.b64decode(text, validate=True).decode()
    return found


class TextTest(unittest.TestCase):
    maxDiff = None

    def test_every_text_arrives(self) -> None:
        arrived: set[str] = set()
        asked: set[str] = set()
        for scenario in rendering.scenarios(rendering.CLUSTER).values():
            with self.subTest(scenario=scenario.name):
                choice = {
                    place: found
                    for place, text in texts_in(scenario.values)
                    if text and len(found := free(place)) > len(HOSTILE) // 2
                }
                asked |= {name_of(place) for place in choice}
                arrived |= self.one(scenario, choice)
        lost = asked - arrived - QUIET
        self.assertEqual(set(), lost, "the text of these keys comes out nowhere")

    def one(self, scenario: Scenario, choice: Mapping[Place, list[str]]) -> set[str]:
        """Names of the keys of a scenario whose text came out, whatever it was."""
        marks = {place: f"mark-{number}-end" for number, place in enumerate(choice)}
        before = come_out(any_values.written(scenario.values, marks))
        where = {
            mark: [place for place, text in before.items() if mark in text]
            for mark in marks.values()
        }
        for turn in range(0, len(HOSTILE), 2):
            texts = {
                place: found[(turn + number) % len(found)]
                for number, (place, found) in enumerate(choice.items())
            }
            after = come_out(any_values.written(scenario.values, texts))
            for place, text in texts.items():
                for out in where[marks[place]]:
                    with self.subTest(key=name_of(place), text=text, out=out):
                        if before[out] == marks[place]:
                            self.assertEqual(text, after.get(out))
                        elif out[-1] != LABELS:
                            self.assertTrue(holds(after.get(out, ""), text), after.get(out))
        return {name_of(place) for place in choice if where[marks[place]]}


def holds(found: str, text: str) -> bool:
    """Whether a text has another in it: as it is, quoted (TOML, YAML, JSON), or in Base64."""
    with contextlib.suppress(ValueError):
        found = base64.b64decode(found, validate=True).decode()
    plain = re.sub(r"\\u00([0-9a-f]{2})", lambda code: chr(int(code[1], 16)), found)
    return text in plain.replace("''", "'") or json.dumps(text, ensure_ascii=False)[1:-1] in plain


def name_of(place: Place) -> str:
    """A place as the name of its key."""
    return ".".join(keys.ITEMS if isinstance(step, int) else step for step in place)
