# SPDX-License-Identifier: Apache-2.0
"""Sentences of refusals: the first one is all that clients print, and says what is wrong.

Magnum's API takes the text before the first full stop of an answer as its title
(``magnum/api/middleware/parsable_error.py``), and ``openstack`` prints the title alone. So no first
sentence holds anything that can have a dot in it: a version, a file, an address, or a name that
OpenStack lets have dots.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
import re

from oslo_serialization import jsonutils
import testtools

from magnum.api.middleware import parsable_error
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.cloud.preflight import message
from magnum.drivers.k8s_capi_helm.handlers.entry import rpc
from magnum.drivers.k8s_capi_helm.values.upgrade import version_skew
from magnum.tests.unit.drivers.k8s_capi_helm.house import messages
from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import rooms, sources, TESTS

#: Placeholders that stand in first sentences: numbers, names that have no dots by their form (of
#: nodegroups, releases, labels, fields, services) and sentences that obey the law themselves.
DOT_FREE = re.compile(
    r"error|str\(error\)|what|_WHAT|service|status|code|kind|asker|field|label|label\.name|name"
    r"|service_type|where|subject|of_nodegroup|of_label|max_labels|max_size|most|least|minimum|maximum|longest"
    r"|count|group|nodegroup|port|start|capability|bounds"
    r"|uuid|cluster_uuid|release|namespace|secret_names\[\d\]|uuid_label|operation\.verb|size|MASTER"
    r"|len\(.*\)|max\(.*\)|size // 1024|LIMIT // 1024|OF_OPERATIONS // 1024|_MOST_MARKS"
    r"|(row|group|nodegroup)\.(name|node_count|count|docker_volume|role)"
    r"|cluster\.stack_id|record\.cluster_uuid|operation\.template|masters\.count"
    r"|owner\.project_id|owner\.release|context\.project_id|errors\.Cause\.\w+|_noun\(subject\)"
    r"|', '\.join\(kinds\)|_titles\(problems\)|kind\.(name|plural)|about|why"
    r"|_short\(found\['namespace'\], _NAME_LIMIT\)"
)
#: What stands for a name without dots in one module only.
EXEMPT = {
    # Names of objects of the driver, which are those of releases.
    "reconcile/ownership/adoption.py": re.compile(r"other|title"),
    "reconcile/nodegroups/autoscaling.py": re.compile(r"len\(deployments\) or 'no'"),
    "reconcile/process/credential_secret.py": re.compile(
        r"conditions\.name\(openstack_cluster\)|reference\['name'\]|kind|VALUE"
    ),
    "lease/malformed.py": re.compile(r"lease\['metadata'\]\.get\('name', ''\)"),
}


def broken(node: ast.expr, exempt: re.Pattern[str] | None = None) -> str:
    """What of a literal's first sentence can have a dot, "" if nothing."""
    found = messages.pieces(node) or []
    for at, piece in enumerate(found):
        if isinstance(piece, str):
            _, stop, behind = piece.partition(".")
            if stop:
                ends = behind.startswith(" ") or (not behind and at == len(found) - 1)
                # A sentence that was handed on may follow the full stop at once.
                ends = ends or (not behind and at < len(found) - 1)
                return "" if ends else piece
        else:
            text = ast.unparse(piece)
            if not DOT_FREE.fullmatch(text) and not (exempt and exempt.fullmatch(text)):
                return text
    return ""


def refusals() -> Iterator[tuple[str, ast.expr, re.Pattern[str] | None]]:
    """Every literal that becomes a refusal: of an error, or of a problem of the preflight."""
    kinds = messages.errors_of_driver()
    for source in rooms():
        exempt = EXEMPT.get(source.name)
        for call, name in source.calls():
            if name in kinds and name != "InvalidLabel" and call.args:
                yield source.at(call), call.args[0], exempt
            if name == "not_found" and source.room == "chart_store":
                yield source.at(call), call.args[0], exempt
        if source.name.startswith("cloud/preflight/"):
            for node in ast.walk(source.tree):
                values = []
                if isinstance(node, ast.Yield) and node.value is not None:
                    values = [node.value]
                elif isinstance(node, ast.Call) and ast.unparse(node.func) == "problems.append":
                    values = node.args
                elif isinstance(node, ast.List):
                    values = node.elts
                for one in values:
                    if messages.pieces(one):
                        yield source.at(one), one, exempt


class TestFirstSentences(testtools.TestCase):
    def test_none_has_a_dot_before_its_end(self) -> None:
        found = list(refusals())
        self.assertGreater(len(found), 150)
        wrong = [f"{at}: {text}" for at, node, own in found if (text := broken(node, own))]
        self.assertEqual([], wrong)

    def test_what_breaks_the_law_is_seen(self) -> None:
        for text in (
            'f"The cluster runs Kubernetes v{current}: it cannot be downgraded."',
            '"The operator sets example.org/name on it."',
            'f"Flavor {flavor.name} does not exist."',
        ):
            self.assertNotEqual("", broken(ast.parse(text, mode="eval").body), text)
        for text in ('f"{service} does not answer. {detail}"', '"One."', '"No end"'):
            self.assertEqual("", broken(ast.parse(text, mode="eval").body), text)

    def title(self, error: errors.DriverError) -> str:
        """What ``openstack`` prints of an error."""
        body = jsonutils.dump_as_bytes({"faultstring": str(rpc.not_supported(error))})
        app = parsable_error.ParsableErrorMiddleware(None)
        return str(app._update_errors([body], 400)[0]["title"])

    def test_what_a_client_prints(self) -> None:
        for call, wanted in (
            (
                lambda: version_skew.check_control_plane("1.34.4", "v1.33.1", {}),
                "The new template's image has an older Kubernetes version than the cluster",
            ),
            (
                lambda: version_skew.check_control_plane("1.32.4", "v1.34.1", {}),
                "The new template's image skips a minor release of Kubernetes",
            ),
            (
                lambda: message.refuse(
                    [
                        "The flavor does not exist or is not visible to this project. The flavor "
                        "is 'm1.small': choose one that 'openstack flavor list' shows.",
                        "The project's quota is too small for servers, vCPUs. servers: 4 needed, "
                        "3 free of 10. Delete what is no longer needed.",
                    ]
                ),
                "2 problems found: The flavor does not exist or is not visible to this project; "
                "The project's quota is too small for servers, vCPUs",
            ),
        ):
            error = self.assertRaises(errors.InvalidRequest, call)
            self.assertEqual(wanted, self.title(error))
        label = errors.InvalidLabel("kube_tag", "1.34", "a full Kubernetes version like v1.36.3")
        self.assertEqual("Label 'kube_tag' has an invalid value", self.title(label))

    def test_many_problems_leave_a_title_that_fits(self) -> None:
        many = [
            f"Problem {number} has a rather long name of its own. More." for number in range(40)
        ]
        error = self.assertRaises(errors.DoesNotFit, message.refuse, many)
        title = self.title(error)
        self.assertTrue(title.startswith("40 problems found: Problem 0 has"), title)
        self.assertLess(len(title), 400)
        self.assertTrue(str(error).endswith("Fix these and try again."), str(error)[-80:])


#: Modules of status/ whose texts are no sentences: forms of what others say, and of what they hide.
NO_SENTENCES = frozenset({"redaction", "json_sentence", "timestamps", "issue"})
#: Words in the code that no tenant reads: names of steps, words of Cluster API that are looked for.
NOT_TOLD = frozenset(
    {
        "delete the Cluster object",
        "uninstall the release",
        "remove Secrets and application credential",
        "turn the Lease into a tombstone",
        "no proof",
        "blocked because",
        "blocked because:",
        "can't remediate",
        "Traceback (most recent call last):",
        "the last look is from ... UTC",
        "the management cluster cannot be reached",
    }
)


def told_sentences() -> dict[str, str]:
    """Texts of status/ with at least two words, with "..." for what is filled in, and where."""
    found = {}
    for source in rooms():
        if source.room != "status" or source.path.stem in NO_SENTENCES:
            continue
        for node in messages.literals(source):
            text = messages.text_of(node)
            if len(re.findall(r"[A-Za-z']{2,}", text)) > 1 and " " in text:
                found[text] = source.at(node)
    return found


class TestCatalogue(testtools.TestCase):
    """The page lists every sentence of a status and a health, and none that nobody says."""

    def test_every_sentence_is_on_the_page(self) -> None:
        page, told = messages.listed("sentences"), told_sentences()
        self.assertGreater(len(told), 80)
        missing = [
            f"{at}: {text}"
            for text, at in told.items()
            if text not in NOT_TOLD and not any(is_part(text, one) for one in page)
        ]
        self.assertEqual([], missing)

    def test_the_page_has_no_other_one(self) -> None:
        told = told_sentences()
        strange = [
            one
            for one in messages.listed("sentences")
            if not any(is_part(text, one) for text in told)
        ]
        self.assertEqual([], strange)


def is_part(text: str, line: str) -> bool:
    """Whether a text of the code stands in a line of the page; each "..." is for anything."""
    parts = [re.escape(one.strip()) for one in text.split("...") if one.strip()]
    return re.search(".*".join(parts), line) is not None


#: Words that say less than those of the field, or nothing to whoever does not know this project.
PRIVATE = re.compile(
    r"\b(gone|away|anew|mend\w*|once more|in the way|being made|(was|were) made|is through|to go"
    r"|tells?|told|nobody|whoever|who asks|takes? over|looked at|let through)\b",
    re.IGNORECASE,
)
#: So many words in a row of a message stand in its test; fewer where it has no more in a row.
_WORDS, _FEWER = 3, 2
#: What ``format`` may put into a first sentence: names without dots, and whole sentences.
_DOT_FREE_FIELDS = frozenset({"namespace", "error"})
#: Modules whose sentences are no titles: notices, and parts of other sentences.
_NO_TITLES = ("labels/notices.py", "labels/unsupported.py", "magnum_objects/notices.py")


def runs(text: str, length: int) -> set[str]:
    """All runs of so many words of a text, none of which is filled in."""
    found = set()
    for part in re.split(r"\.\.\.|\x00", text):
        words = re.findall(r"\w[\w'-]*", part)
        found |= {" ".join(words[at : at + length]) for at in range(len(words) - length + 1)}
    return found


class TestMessages(testtools.TestCase):
    """The page lists every refusal and notice, and each of them has a test."""

    def test_every_message_is_on_the_page(self) -> None:
        page, told = set(messages.listed("messages")), messages.messages()
        self.assertGreater(len(told), 200)
        missing = [f"{at}: {text}" for text, at in told.items() if text not in page]
        self.assertEqual([], missing, "add each to doc/source/user/status.rst, ... for its values")

    def test_the_page_has_no_other_one(self) -> None:
        told = messages.messages()
        self.assertEqual([], [one for one in messages.listed("messages") if one not in told])

    def test_first_sentences_that_are_filled_in_later_have_no_dot_either(self) -> None:
        wrong = []
        for source, node in messages.message_nodes():
            first = messages.text_of(node, "\x00").partition(". ")[0].removesuffix(".")
            plain = isinstance(node, ast.Constant) and str(node.value).partition(". ")[0]
            fields = set(re.findall(r"\{(\w+)\}", plain or ""))
            if ("." in first or fields - _DOT_FREE_FIELDS) and source.name not in _NO_TITLES:
                wrong.append(f"{source.at(node)}: {first}")
        self.assertEqual([], wrong)

    def test_they_have_no_private_words(self) -> None:
        told = {**messages.messages(), **told_sentences()}
        wrong = [
            f"{at}: {text}"
            for text, at in told.items()
            if PRIVATE.search(text) and text not in NOT_TOLD
        ]
        self.assertEqual([], wrong)

    def test_each_has_a_test(self) -> None:
        tested = set()
        for source in sources(TESTS):
            if source.room not in ("house", "test_sentences"):
                for node in messages.literals(source):
                    text = messages.text_of(node, "\x00")
                    tested |= runs(text, _WORDS) | runs(text, _FEWER)
        told = messages.messages()
        told.pop("Nodegroup '...' was deleted while it was being created.")  # its row goes, unread
        without = [
            f"{at}: {one}"
            for one, at in told.items()
            if (runs(one, _WORDS) or runs(one, _FEWER)).isdisjoint(tested)
        ]
        self.assertEqual([], without)
