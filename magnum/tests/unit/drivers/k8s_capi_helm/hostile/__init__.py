# SPDX-License-Identifier: Apache-2.0
"""Hostile inputs: what tenants, strangers and broken services may write, and how many were tried.

The property is one: nothing gets out of its field. A tenant's text is refused in a sentence or
stays a text in its own place; an answer is understood or becomes an error of the driver; statuses
stay within Magnum's words and sizes, and no secret and no traceback comes out.

``make test`` tries some six thousand inputs, always the same. ``python -m`` this package tries at
least a hundred thousand, others each time, and prints how many and the seed.
"""

from __future__ import annotations

from collections.abc import Callable
import copy
import functools
import json
import os
from typing import Any

import hypothesis
from hypothesis import strategies as st
import testtools
import yaml

from magnum.drivers.k8s_capi_helm import errors
from magnum.tests.unit.drivers.k8s_capi_helm.test_tenant_text_is_data import HOSTILE

#: Inputs of each test; a run of its own asks for more.
EXAMPLES = int(os.environ.get("K8S_CAPI_HELM_HOSTILE_EXAMPLES") or 40)
#: Whether each run tries others.
IS_RUN = bool(os.environ.get("K8S_CAPI_HELM_HOSTILE_EXAMPLES"))
#: Inputs tried so far, by test.
tried: dict[str, int] = {}

#: Stands where a secret would; no sentence and no text for a tenant may have it.
CANARY = "S3cr3t-of-Somebody-Else"

_MORE = (
    *(
        "\x00",
        "a\x00b",
        "\x1b[2J\x1b]0;title\x07",
        "\x7f",
        "\ud800",
        "a\udcffb",
        "\r\n\r\nHTTP/1.1",
    ),
    *("\u202eevil\u202c", "\u2066a\u2069", "\u200b", "\ufeff", "\U0001f600" * 3, "e\u0301", "ﬀ"),
    *("{{", "}}", "{%", "{#", "{{ cluster.metadata }}", "{{- end }}", "{{/* */}}", "{{\n}}"),
    *(
        '"',
        "'",
        "\\",
        "\\\\",
        "\\n",
        '"}',
        '"]}',
        "'''",
        '"""',
        "<!--",
        "-->",
        "]]>",
        "%00",
        "%2e%2e",
    ),
    *(
        "---",
        "...",
        "? a",
        "| ",
        "> ",
        "*a",
        "&a",
        "!!binary",
        "<<: *a",
        "~",
        "no",
        "on",
        "1_000",
        ".inf",
    ),
    *(
        "a=b,c=d",
        "a\\,b=c",
        "a[0]=b",
        "a.b.c",
        "--",
        "-",
        "a b",
        " a",
        "a ",
        "\t",
        "\n",
        "a\n---\nb: c",
    ),
    *(
        "9" * 400,
        "-1",
        "0",
        "1e400",
        "0b1",
        "0o7",
        "١٢٣",
        "NaN",
        "Infinity",
        "-0",
        "1.0.0",
        "v1.34.4",
    ),
    *(
        "x" * 300,
        "x" * 5000,
        "é" * 3000,
        "a," * 3000,
        "1.2.3.4/0",
        "::/0",
        "::ffff:1.2.3.4",
        "10.0.0.0/8",
    ),
    *("http://169.254.169.254/", "file:///etc/passwd", "//evil.example", "https://a:b@c.example/"),
    *("evil.example/x", "evil.example:5000", "gopher://x", "https://[::1]/", "HTTPS://EXAMPLE.ORG"),
    *("default-worker", "default-master", "controlPlane", "kube-system", "nodeGroups", "__proto__"),
    *("$(id)", "`id`", "; id", "| id", "&& id", "$IFS", "%(asctime)s", "{0.__class__}", "%s" * 20),
)
texts = st.one_of(
    st.sampled_from((*HOSTILE, *_MORE)),
    st.builds("{}{}".format, st.sampled_from(HOSTILE), st.sampled_from(_MORE)),
    st.text(max_size=40),
)
#: Words that look right until their last part.
spoiled = st.builds("{}{}{}".format, texts, st.sampled_from(("", ",", " ", "/", "=")), texts)


def _nested(depth: int, inside: Any = 1) -> Any:
    for _ in range(depth):
        inside = {"message": inside} if depth % 2 else [inside]
    return inside


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from((0, -1, 1 << 31, 1 << 63, -(1 << 70), 10**30)) | st.integers(-5, 5),
    st.floats(allow_nan=True),
    texts,
)
#: Any JSON: wrong types, deep, wide.
junk = st.one_of(
    scalars,
    st.sampled_from(
        [[], {}, [[]], [None], [{}], {"": None}, {"message": None}, [1, "a", None]]
    ).map(copy.deepcopy),
    st.builds(_nested, st.sampled_from((3, 40, 41)), scalars),
    st.lists(scalars, max_size=3),
    st.dictionaries(texts, scalars, max_size=3),
)
#: Bodies of answers that are not what was asked for.
bodies = st.one_of(
    st.sampled_from(
        (
            b"",
            b"{",
            b"null",
            b"[]",
            b'"x"',
            b"\xff\xfe",
            b"\x00",
            b"<html><title>502 Bad Gateway</title></html>",
            b"[" * 100_000,
            b'{"a":' * 100_000,
            b'{"message": "' + b"x" * 1_000_000 + b'"}',
            b'{"kind": "Status", "details": "x", "message": 1}',
            b'{"kind": "Status", "details": {"causes": {"field": 1}}}',
        )
    ),
    st.binary(max_size=64),
    st.builds(lambda found: json.dumps(found).encode(), junk),
)


@functools.lru_cache(maxsize=256)
def _paths(text: str) -> tuple[tuple[Any, ...], ...]:
    found: list[tuple[Any, ...]] = []

    def walk(node: Any, path: tuple[Any, ...]) -> None:
        if path:
            found.append(path)
        listed = enumerate(node) if isinstance(node, list) else ()
        for key, value in node.items() if isinstance(node, dict) else listed:
            walk(value, (*path, key))

    walk(json.loads(text), ())
    return tuple(found)


@st.composite
def broken(draw: Any, document: Any) -> Any:
    """A copy of a good document in which one to three places are something else, or gone."""
    found = copy.deepcopy(document)
    paths = _paths(json.dumps(document))
    for _ in range(draw(st.integers(1, 3))):
        *way, last = paths[draw(st.integers(0, len(paths) - 1))]
        node = found
        try:
            for step in way:
                node = node[step]
            if draw(st.integers(0, 4)):
                node[last] = draw(junk)
            else:
                del node[last]
        except (KeyError, IndexError, TypeError):
            # An earlier change has taken that place away.
            continue
    return found


def given(*strategies: Any, examples: float = 1) -> Callable[[Any], Any]:
    """As hypothesis.given; the inputs are counted.

    :param examples: how many there are to be, as a part of those of other tests.
    """

    def decorate(test: Any) -> Any:
        @functools.wraps(test)
        def counted(self: Any, **drawn: Any) -> None:
            tried[test.__qualname__] = tried.get(test.__qualname__, 0) + 1
            test(self, **drawn)

        # Hypothesis looks at the signature.
        settings = hypothesis.settings(
            max_examples=max(1, int(EXAMPLES * examples)),
            derandomize=not IS_RUN,
            database=None,
            deadline=None,
            # To shrink a failure takes minutes, and most are short enough to be read.
            phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        return settings(hypothesis.given(*strategies)(counted))

    return decorate


class HostileCase(testtools.TestCase):
    """What holds whatever comes in."""

    def assert_same_as_text(self, values: Any) -> None:
        """As JSON and as YAML the same comes back."""
        self.assertEqual(values, json.loads(json.dumps(values)))
        text = yaml.dump(values, Dumper=yaml.CSafeDumper, allow_unicode=True)
        self.assertEqual(values, yaml.load(text, yaml.CSafeLoader))

    def assert_sentence(self, error: errors.DriverError, *named: str, most: int = 1 << 16) -> None:
        """An error that a tenant may read: bounded, without a traceback, with what it is about."""
        text = str(error)
        self.assertTrue(text.strip())
        self.assertNotIn("Traceback", text)
        self.assertNotIn(CANARY, text)
        for one in named:
            self.assertIn(one, text)
