# SPDX-License-Identifier: Apache-2.0
"""What a tenant writes stays data: every place where text could become something else.

A text is either refused, or it arrives whole as a text of its own. Where a text is put together
with others (a path, an argument, a name) its form leaves nothing that could end it.
"""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import pathlib
import re
from typing import Any

import hypothesis
from hypothesis import strategies as st
import testtools

from magnum.drivers.k8s_capi_helm import errors, helm_values, labels
from magnum.drivers.k8s_capi_helm.chart_store import archive
from magnum.drivers.k8s_capi_helm.magnum_objects.validation import validate_nodegroup
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.test_helm_values import FACTS, REQUEST

#: Texts that mean something to Jinja, Go templates, shells, YAML, argument parsers and paths.
HOSTILE = (
    "{{ .Values.cloudCredentialsSecretName }}",
    "{{ lookup('env', 'HOME') }}",
    "{% raw %}",
    "{# comment #}",
    "{{`{{`}}",
    "${HOME}",
    "$(reboot)",
    "`reboot`",
    "a; reboot",
    "a && reboot",
    "a\nreboot",
    "a: b",
    "- a",
    "&a [*a]",
    "!!python/object/apply:os.system [reboot]",
    "a # b",
    "'\"",
    "--set-file=a=/etc/passwd",
    "-f /etc/passwd",
    "../../etc/passwd",
    "/etc/passwd",
    "a/../../b",
    "~root",
    "null",
    "true",
    "0x10",
    "1e3",
    "2026-11-21",
    "a,b={c}",
    "%s%n",
    "\u202ea",
    "é高速",
)
hostile = st.one_of(st.sampled_from(HOSTILE), st.text())
label = st.sampled_from(labels.REGISTRY)
#: Nothing in it ends a word, a line or a quotation anywhere.
_PLAIN = re.compile(r"[\w .:/=,+@-]*")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def texts(values: Any) -> Iterator[str]:
    """Every text in values: keys and leaves."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield key
            yield from texts(value)
    elif isinstance(values, list):
        for value in values:
            yield from texts(value)
    elif isinstance(values, str):
        yield values


class TestValues(testtools.TestCase):
    """Helm is given values as JSON: what matters is that a tenant's text is a text in them."""

    @staticmethod
    def rendered(given: dict[str, str]) -> set[str]:
        request = dataclasses.replace(REQUEST, labels=labels.parse(given, {}))
        return set(texts(helm_values.render(request, FACTS)))

    @hypothesis.given(label, hostile)
    def test_a_label_is_refused_or_arrives_whole(self, one: labels.Label, text: str) -> None:
        try:
            new = self.rendered({one.name: text}) - self.rendered({})
        except errors.InvalidRequest as error:
            self.assertTrue(str(error).endswith("."), str(error))
            return
        composed = [found for found in new if found not in text and not _PLAIN.fullmatch(found)]
        self.assertEqual([], composed)
        templates = [found for found in new if any(mark in found for mark in ("{{", "{%", "{#"))]
        self.assertEqual([], templates)


class TestPlaces(testtools.TestCase):
    """Paths, arguments and names."""

    @hypothesis.given(hostile)
    def test_a_charts_version_is_one_part_of_a_path_and_no_option(self, text: str) -> None:
        try:
            version = labels.parse({"capi_helm_chart_version": text}, {}).capi_helm_chart_version
        except errors.InvalidLabel:
            version = None
        store = pathlib.Path("/store")
        place = archive.directory_of(store, "openstack-cluster", version or "1", "digest")
        self.assertEqual(store / "openstack-cluster", place.parent.parent)
        self.assertFalse((version or "").startswith("-"))

    @hypothesis.given(hostile)
    def test_a_release_is_a_name(self, text: str) -> None:
        release = names.release(text)
        self.assertTrue(_NAME.fullmatch(release), release)
        self.assertTrue(names.is_release(release))

    @hypothesis.given(hostile)
    def test_a_nodegroups_name_is_a_name_or_refused(self, text: str) -> None:
        fit = bool(_NAME.fullmatch(text)) and len(text) <= 63 and "--" not in text
        self.assertEqual(fit, names.is_node_group(text))

    @hypothesis.given(hostile, hostile)
    def test_marks_of_nodes_have_a_form(self, key: str, value: str) -> None:
        row = type(
            "Row", (), {"name": "more", "node_labels": {key: value}, "node_taints": [], "role": ""}
        )
        try:
            validate_nodegroup.validate_details(row)
        except errors.InvalidRequest:
            return
        for text in (key, value):
            self.assertTrue(re.fullmatch(r"[A-Za-z0-9._/-]*", text), text)
