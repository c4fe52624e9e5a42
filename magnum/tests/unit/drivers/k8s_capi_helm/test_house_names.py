# SPDX-License-Identifier: Apache-2.0
"""What the law about names allows and refuses."""

from __future__ import annotations

from magnum.tests.unit.drivers.k8s_capi_helm.house import names, vocabulary
from magnum.tests.unit.drivers.k8s_capi_helm.house.sources import LawCase, made_up


def refused(text: str, name: str = "status/nodegroups.py") -> list[str]:
    """The names that the law refuses in a file with this text."""
    return [one.text for one, _ in names.broken([made_up(text, name)])]


class TestWords(LawCase):
    def test_names_are_split(self) -> None:
        for name, parts in (
            ("is_due", ["is", "due"]),
            ("KubeClient", ["kube", "client"]),
            ("_TenantAPIClient", ["tenant", "api", "client"]),
            ("ipv4pool", ["ipv4pool"]),
        ):
            self.assertEqual(parts, names.words(name))

    def test_the_glossary_has_words(self) -> None:
        self.assertLess({"nodegroup", "lease", "reconcile", "deferred"}, names.glossary())
        self.assertNotIn("owed", names.glossary())
        self.assertGreater(len(names.glossary()), 150)

    def test_forms_of_known_words_are_known(self) -> None:
        for word in ("replicas", "policies", "creates", "created", "stopping", "rotation", "3"):
            self.assertTrue(names.is_known(word), word)

    def test_private_words_are_not_known(self) -> None:
        for word in ("owed", "told", "patience", "newcomer", "theirs", "one", "thing", "utils"):
            self.assertFalse(names.is_known(word), word)

    def test_no_word_is_allowed_and_empty(self) -> None:
        self.assertEqual(set(), vocabulary.EMPTY & (names.glossary() | vocabulary.VERBS))
        self.assertEqual(set(), vocabulary.STATES & vocabulary.PARTICIPLES)


class TestRefused(LawCase):
    def test_a_file(self) -> None:
        self.assertEqual(["owed"], refused("", "values/owed.py"))
        self.assertEqual([], refused("", "values/upgrade/deferred.py"))
        self.assertEqual([], refused("", "values/__init__.py"))

    def test_a_function(self) -> None:
        self.assertEqual(["told"], refused("def told(cluster): ...\n"))
        self.assertEqual([], refused("def message(cluster): ...\ndef _told(one): ...\n"))

    def test_a_parameter(self) -> None:
        for text in (
            "def message(one): ...\n",
            "def message(cluster, *, one: int = 1): ...\n",
            "class Message:\n    def __init__(self, one): ...\n",
            "class Message:\n    @property\n    def text(self, one, /): ...\n",
        ):
            self.assertEqual(["one"], refused(text), text)

    def test_a_class_a_method_and_a_field(self) -> None:
        text = "class Newcomer:\n    owed: int\n    _told: int\n    def look(self): ...\n"
        self.assertEqual(["Newcomer", "owed", "look"], refused(text))

    def test_a_participle_alone(self) -> None:
        for name in ("found", "asked", "wanted", "Omitted", "waiting"):
            self.assertTrue(names.is_bare_participle(name), name)
        for name in ("not_found", "requested_bounds", "paused", "string", "id", "need", "ring"):
            self.assertFalse(names.is_bare_participle(name), name)

    def test_what_others_have_named_is_free(self) -> None:
        for name in ("octavia_lb_healthcheck", "use_admin_ctx", "docker_volume_size", "lock_wait"):
            self.assertIn(name, names.given_names())
            self.assertIsNone(names.refusal(name))


class TestShared(LawCase):
    def test_two_rooms_with_one_name(self) -> None:
        files = [
            made_up("def labels(): ...\ndef message(): ...\n", "status/a.py"),
            made_up("def labels(): ...\n", "values/b.py"),
            made_up("class X:\n    def message(self): ...\n", "model/c.py"),
        ]
        self.assertEqual({"labels": ["status", "values"]}, names.shared(files))
