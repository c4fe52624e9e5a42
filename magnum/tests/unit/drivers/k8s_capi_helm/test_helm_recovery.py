# SPDX-License-Identifier: Apache-2.0
"""What interrupted revisions may have left, read off their Secrets alone."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.helm import recovery, release_secret
from magnum.drivers.k8s_capi_helm.model import Json, names
from magnum.drivers.k8s_capi_helm.values.tree import merge
from magnum.tests.unit.drivers.k8s_capi_helm.suites import helm

_KEYS = st.sampled_from("abc")
_PLAIN = st.recursive(
    st.one_of(st.booleans(), st.integers(0, 3), st.lists(st.integers(0, 3), max_size=2)),
    lambda inner: st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(_KEYS, _PLAIN, max_size=3)
_GROUP = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment"}


def revision(number: int, status: str, *documents: Json, method: str | None = None) -> Json:
    """The Secret of a revision with these objects."""
    secret = helm.secret(number, status, {}, method=method)
    release = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(_data(secret)))))
    release["manifest"] = "".join(f"---\n{json.dumps(one)}\n" for one in documents)
    packed = base64.b64encode(gzip.compress(json.dumps(release).encode()))
    secret["data"]["release"] = base64.b64encode(packed).decode()
    return secret


def group(name: str, replicas: int, **notes: str) -> Json:
    return {**_GROUP, "metadata": {"name": name, **notes}, "spec": {"replicas": replicas}}


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386, as it stands there."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def _data(secret: Json) -> str:
    text: str = secret["data"]["release"]
    return text


class TestManifest(testtools.TestCase):
    def test_a_date_is_a_text_as_for_kubernetes(self) -> None:
        text = "---\nspec: {rolloutAfter: 2026-11-22T10:00:00Z, day: 2026-11-22}\n---\n"
        wanted = {"spec": {"rolloutAfter": "2026-11-22T10:00:00Z", "day": "2026-11-22"}}
        self.assertEqual([wanted], release_secret.documents(text))


class TestMarks(testtools.TestCase):
    def test_a_mark_is_for_helm_a_failure(self) -> None:
        marked = recovery.with_mark(revision(2, "pending-upgrade", group("g", 1)))
        self.assertTrue(recovery.is_marked(marked))
        self.assertEqual(
            ("failed", 2), (release_secret.decode(marked).status, release_secret.revision(marked))
        )
        self.assertEqual("failed", marked["metadata"]["labels"]["status"])
        self.assertIn("replicas", release_secret.manifest(marked))

    def test_what_was_gone_over_has_no_mark(self) -> None:
        settled = recovery.without_mark(recovery.with_mark(revision(2, "pending-upgrade")))
        self.assertFalse(recovery.is_marked(settled))
        self.assertEqual("failed", release_secret.decode(settled).status)
        late = recovery.without_mark(revision(2, "deployed"))
        self.assertEqual("superseded", release_secret.decode(late).status)

    def test_what_remains_to_be_gone_over(self) -> None:
        old, late, new = (revision(number, "deployed") for number in (1, 2, 3))
        marked = recovery.with_mark(revision(2, "pending-upgrade"))
        self.assertEqual([], recovery.interrupted_revisions([new]))
        self.assertEqual([marked], recovery.interrupted_revisions([new, marked]))
        self.assertEqual([old, late], recovery.interrupted_revisions([new, late, old]))
        # As long as the newest is not through, the older one is what runs.
        self.assertEqual([], recovery.interrupted_revisions([old, revision(3, "pending-upgrade")]))

    def test_an_installation_is_one_until_it_is_through(self) -> None:
        first = revision(1, "pending-install")
        self.assertEqual("pending-install", recovery.effective_status([first], "pending-install"))
        first = recovery.with_mark(first)
        second = revision(2, "pending-upgrade")
        self.assertEqual(
            "pending-install", recovery.effective_status([first, second], "pending-upgrade")
        )
        second = recovery.with_mark(second)
        self.assertEqual("pending-install", recovery.effective_status([first, second], "failed"))
        third = revision(3, "deployed")
        listed = [first, second, third]
        self.assertEqual(recovery.HALF_DONE, recovery.effective_status(listed, "deployed"))
        listed = [recovery.without_mark(first), recovery.without_mark(second), third]
        self.assertEqual("deployed", recovery.effective_status(listed, "deployed"))
        # One that helm itself has ended was refused, and says so.
        self.assertEqual("failed", recovery.effective_status([revision(1, "failed")], "failed"))

    def test_what_is_no_release_is_refused(self) -> None:
        secret = revision(1, "deployed")
        secret["data"]["release"] = base64.b64encode(b"no release").decode()
        self.assertRaises(errors.HelmRefused, release_secret.manifest, secret)
        self.assertRaises(errors.HelmRefused, recovery.with_mark, secret)


class TestRepairs(testtools.TestCase):
    def repairs(self, half: Json, whole: Json) -> list[tuple[str, str, Json | None]]:
        found = recovery.repairs(half, whole)
        return [(one.manifest["kind"], one.name, one.patch) for one in found]

    def test_fields_and_objects(self) -> None:
        half = revision(2, "failed", group("a", 5), group("gone", 1), group("same", 1))
        whole = revision(3, "deployed", group("a", 2), group("same", 1), group("new", 1))
        found = self.repairs(half, whole)
        kind = names.MACHINE_DEPLOYMENT.name
        wanted = [(kind, "a", {"spec": {"replicas": 2}}), (kind, "gone", None)]
        self.assertEqual(wanted, found)

    def test_what_is_to_be_kept_stays(self) -> None:
        kept = group("kept", 1)
        kept["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
        self.assertEqual([], self.repairs(revision(2, "failed", kept), revision(3, "deployed")))

    def test_what_helm_or_the_server_compares_is_left_to_them(self) -> None:
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
        half = revision(2, "failed", {**config, "data": {"a": "1"}}, group("a", 5))
        documents = {**config, "data": {"a": "2"}}, group("a", 2)
        [found] = self.repairs(half, revision(3, "deployed", *documents))
        self.assertEqual("a", found[1])
        by_server = revision(3, "deployed", *documents, method="ssa")
        self.assertEqual([], self.repairs(half, by_server))

    @given(_OBJECTS, _OBJECTS)
    def test_a_patch_leads_from_one_to_the_other(self, old: Json, new: Json) -> None:
        self.assertEqual(new, merged(old, merge.merge_patch(old, new)))
        self.assertEqual({}, merge.merge_patch(new, new))
