# SPDX-License-Identifier: Apache-2.0
"""Every regular expression of the driver: none takes longer than its text is long.

What they read is a tenant's, a controller's or Helm's. An expression of Python can take quadratic
time (a repetition at the beginning of what is searched for) or exponential time (a repetition of a
repetition); both shapes are looked for in the parsed expressions, so that a new one is found, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import importlib
import importlib.util
import pkgutil
import re
import sys
from typing import Any

import testtools

from magnum.drivers import k8s_capi_helm
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.helm import failures
from magnum.drivers.k8s_capi_helm.status.texts import public_text
from magnum.tests.unit.drivers.k8s_capi_helm.call_counts import calls

# The parser of expressions, under the name that it has had until Python 3.10, too.
_IS_OLD = sys.version_info < (3, 11)
codes = importlib.import_module("sre_constants" if _IS_OLD else "re._constants")
parser = importlib.import_module("sre_parse" if _IS_OLD else "re._parser")

_POSSESSIVE = () if _IS_OLD else (codes.POSSESSIVE_REPEAT,)
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, *_POSSESSIVE)
#: Repetitions of repetitions of which each round begins with a character that no other part has, so
#: that a text can be taken apart in one way only; with a text that nearly fits, of any length.
SEPARATED = {
    "values.sections.storage._SUBDOMAIN": "a-a.",
    "labels.value_types.network_types._DOMAIN": "a-a.",
    "labels.value_types.network_types._URL": "https://a/a",
    "labels.value_types.network_types._PREFIX": "a/a.a_a--a",
    "labels.value_types.types._REPOSITORY": "/a.a:a",
    "reconcile.release.autoscaler_deployment._NAME": "a.a:1/a-a/a",
    "status.texts.json_sentence._TOKEN": '"a\\a\\a',
    "status.objects.controller_leases._TOLD": "controllers a, a.a, ",
}
#: Their expressions overlap on purpose, and read no more than some thousand characters, see below.
CUT = ("status.texts.public_text", "status.texts.redaction")


def expressions() -> Iterator[tuple[str, str, re.Pattern[str]]]:
    """Module, name and expression of every one that a module of the driver keeps."""
    for found in pkgutil.walk_packages(k8s_capi_helm.__path__, f"{k8s_capi_helm.__name__}."):
        if ".charts" not in found.name:
            module = importlib.import_module(found.name)
            for name, value in vars(module).items():
                for one in _inside(value):
                    yield found.name.removeprefix(f"{k8s_capi_helm.__name__}."), name, one


def _inside(value: Any) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _inside(one)
    elif isinstance(value, dict):
        yield from _inside(list(value.values()))


def repeated(tree: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Every repetition without a bound, and what is repeated."""
    for code, value in tree:
        if code in _REPEATS:
            if value[1] == codes.MAXREPEAT:
                yield code, value[2]
            yield from repeated(value[2])
        elif code is codes.SUBPATTERN:
            yield from repeated(value[3])
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield from repeated(branch)
        elif code is codes.ATOMIC_GROUP:
            yield from repeated(value)


def begins_with_a_repetition(tree: Any) -> bool:
    """Whether it could begin anywhere in a long run of the same character."""
    for code, value in tree:
        if code is codes.SUBPATTERN:
            return begins_with_a_repetition(value[3])
        if code is codes.BRANCH:
            return any(begins_with_a_repetition(branch) for branch in value[1])
        return code in (codes.MAX_REPEAT, codes.MIN_REPEAT) and value[1] == codes.MAXREPEAT
    return False


def is_searched(module: str, name: str) -> bool:
    """Whether it is looked for anywhere in a text, and is not the form of the whole text."""
    source = importlib.util.find_spec(f"{k8s_capi_helm.__name__}.{module}").origin
    with open(source, encoding="utf-8") as file:
        text = file.read()
    return not re.search(rf"\b{name}(\.get\(\w+\)|\[\w+\])?\.(full)?match\(", text)


class TestExpressions(testtools.TestCase):
    def test_no_repetition_is_repeated_but_those_that_can_be_read_in_one_way_only(self) -> None:
        wrong = [
            f"{module}.{name}: {one.pattern}"
            for module, name, one in expressions()
            if f"{module}.{name}" not in SEPARATED and module not in CUT
            if any(
                code not in _POSSESSIVE
                and any(inner not in _POSSESSIVE for inner, _ in repeated(part))
                for code, part in repeated(parser.parse(one.pattern))
            )
        ]
        self.assertEqual([], wrong)

    def test_those_take_no_more_of_a_long_text_that_nearly_fits(self) -> None:
        known = {f"{module}.{name}": one for module, name, one in expressions()}
        for name, text in SEPARATED.items():
            for nearly in (text * 20_000, text + "a" * 100_000, text + text[-1] * 100_000):
                self.assertIsNone(known[name].fullmatch(f"{nearly}!"), name)

    def test_those_that_overlap_read_no_more_than_some_thousand_characters(self) -> None:
        for text in (
            "image: a/",
            "a.b.c.",
            "req-",
            "1.1.1.1 ",
            "http://a",
            "/a/",
            ":;",
            " ,",
            "a@",
        ):
            longest = text * (public_text.LONGEST // len(text) + 1)
            huge = text * ((1 << 20) // len(text))
            at_most = calls(lambda text=longest: public_text.public_text(text)) + 5
            steps = calls(lambda text=huge: public_text.public_text(text))
            self.assertLessEqual(steps, at_most, text)

    def test_what_is_searched_for_begins_with_something(self) -> None:
        wrong = [
            f"{module}.{name}: {one.pattern}"
            for module, name, one in expressions()
            if module not in CUT
            and begins_with_a_repetition(parser.parse(one.pattern))
            and is_searched(module, name)
            # Blanks between words are split at, from left to right.
            and name != "_BETWEEN"
        ]
        self.assertEqual([], wrong)


class TestWordsOfHelm(testtools.TestCase):
    """A megabyte of a webhook's words in Helm's error."""

    ERRORS = (
        "a" * (1 << 20),
        'a "' * (1 << 19),
        'admission webhook "a.b" denied the request: ' + "x " * (1 << 19),
        "Error: values don't meet the specifications of the schema(s) in the following chart(s):\n"
        + "openstack-cluster:\n"
        + "- at '/nodeGroups/0/name': got number, want string\n" * 20_000,
        "://a" * (1 << 18),
        'chart "' * (1 << 17),
        "template: " * (1 << 17),
    )

    def test_what_it_means_is_found_in_bounded_time_and_said_in_bounded_words(self) -> None:
        for text in self.ERRORS:
            error = failures.error_of(failures.without_passwords(text), "detail")
            self.assertIsInstance(error, errors.DriverError)
            self.assertLess(len(str(error)), 1000)

    def test_a_thousand_complaints_cost_what_is_read_of_them(self) -> None:
        text = self.ERRORS[3]
        some, all_of_it = text[: 1 << 17], text
        at_most = calls(lambda: failures.error_of(some, "")) + 5
        self.assertLessEqual(calls(lambda: failures.error_of(all_of_it, "")), at_most)

    def test_the_reason_at_the_end_of_a_long_error_is_found(self) -> None:
        text = f"Error: UPGRADE FAILED: {'x ' * (1 << 19)}: i/o timeout"
        self.assertIsInstance(failures.error_of(text, ""), errors.HelmInterrupted)
