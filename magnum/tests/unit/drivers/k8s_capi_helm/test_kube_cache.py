# SPDX-License-Identifier: Apache-2.0
"""What of the objects of a cluster is kept in memory, and that it says what the objects say."""

from __future__ import annotations

from collections.abc import Iterator
import copy
import gc
import hashlib
import json
import pathlib
import re
import tracemalloc
from typing import Any

from hypothesis import given, strategies
import testtools
import yaml

from magnum.drivers.k8s_capi_helm.kube.watch.cache import ObjectCache
from magnum.drivers.k8s_capi_helm.kube.watch.informers import KINDS
from magnum.drivers.k8s_capi_helm.kube.watch.transform import transform
from magnum.drivers.k8s_capi_helm.model import conditions, Json, names
from magnum.drivers.k8s_capi_helm.status.objects import addons
from magnum.tests.unit.drivers.k8s_capi_helm import builders, recordings_player
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

HANDLED = "addons.stackhpc.com/last-handled-configuration"
BY_NAME = {kind.name: kind for kind in KINDS}
#: Addons as the chart renders them.
RENDERED = pathlib.Path(__file__).parents[5] / "charts/openstack-cluster/tests/golden/standard"
#: Nodegroups of a typical cluster: three, of two machines each, and three control plane machines.
COUNTS = {"MachineDeployment": 3, "MachineSet": 3, "Machine": 9, "OpenStackServer": 9}
CLUSTERS = 20
#: Bytes of a cluster: compressed, and in all. With both specs of each addon, each object compressed
#: alone and its labels beside it, they are 37 and 85 thousand.
MOST_PACKED, MOST = 12_000, 40_000

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: The hour and minute of a time.
_TIME = re.compile(r"\b\d\d:\d\d(?=:\d\dZ)")

SPECS = strategies.dictionaries(
    strategies.sampled_from(("paused", "targetNamespace", "chart", "values")),
    strategies.recursive(
        strategies.none() | strategies.booleans() | strategies.integers() | strategies.text(),
        lambda inner: strategies.lists(inner) | strategies.dictionaries(strategies.text(), inner),
        max_leaves=4,
    ),
)


def rendered_addons() -> Iterator[Json]:
    """The addons of a cluster, deployed: specs as the chart renders them."""
    for path in sorted(RENDERED.glob("*.yaml")):
        for obj in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if obj["kind"] in ("HelmRelease", "Manifests"):
                resources = [{"kind": "Secret", "name": "a", "namespace": "b"}] * 5
                handled = {"metadata": obj["metadata"], "spec": obj["spec"]}
                obj["metadata"]["annotations"] = {HANDLED: json.dumps(handled)}
                obj["status"] = {"phase": "Deployed", "resources": resources}
                yield obj


def typical_cluster() -> list[Json]:
    """Objects of real controllers, and addons of the chart, in JSON."""
    objects: dict[str, dict[str, Json]] = {}
    for line in recordings_player.lines(recordings_player.OWN / "everyday.jsonl.gz"):
        if line.get("type") in ("ADDED", "MODIFIED") and line["kind"] in BY_NAME:
            objects.setdefault(line["kind"], {})[line["name"]] = line["object"]
    found = [next(iter(objects[kind].values())) for kind in ("OpenStackCluster", "Cluster")]
    found.append(next(iter(objects["KubeadmControlPlane"].values())))
    for kind, count in COUNTS.items():
        known = list(objects[kind].values())
        for number in range(count):
            obj = copy.deepcopy(known[number % len(known)])
            obj["metadata"]["name"] += f"-{number}"
            found.append(obj)
    return [*found, *rendered_addons()]


def another(objects: list[Json], number: int) -> list[Json]:
    """The same cluster once more, with names, identities and times of its own."""

    def different(match: re.Match[str]) -> str:
        digits = str(int(hashlib.sha256(f"{number} {match[0]}".encode()).hexdigest(), 16))
        return "".join(digits[i] if c.isalnum() else c for i, c in enumerate(match[0]))

    text = json.dumps(objects)
    for release in ("everyday-7e4e9c-0d8gvayizztn", "demo"):
        text = text.replace(release, f"kube-{number:06d}-abcdefghijkl")
    found: list[Json] = json.loads(_TIME.sub(different, _UUID.sub(different, text)))
    for place, obj in enumerate(found):
        obj["metadata"]["namespace"] = f"magnum-{number // 10}"
        obj["metadata"]["resourceVersion"] = str(10**6 + 7919 * (number * 100 + place))
    return found


class MemoryTest(testtools.TestCase):
    def test_a_typical_cluster_needs_little(self) -> None:
        caches = {kind: ObjectCache(kind, lambda namespace: True) for kind in KINDS}
        objects, packed = typical_cluster(), 0
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        for kind, cache in caches.items():
            own = [obj for obj in objects if obj["kind"] == kind.name]
            found = (obj for number in range(CLUSTERS) for obj in another(own, number))
            kept = list(filter(None, map(cache.keep, found)))
            self.assertEqual(len(own) * CLUSTERS, len(kept))
            packed += sum(len(cached.data) for cached in kept)
            cache.fill(kept, "here", 0.0)
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        self.assertLess(packed / CLUSTERS, MOST_PACKED)
        self.assertLess(size / CLUSTERS, MOST)

    def test_each_object_is_what_is_kept_of_it(self) -> None:
        objects = typical_cluster()
        for kind in KINDS:
            cache = ObjectCache(kind, lambda namespace: True)
            own = [obj for obj in another(objects, 1) if obj["kind"] == kind.name]
            for obj in own:
                self.assertTrue(cache.change(obj, is_deleted=False))
            expected = sorted((transform(kind, obj) for obj in own), key=conditions.name)
            self.assertEqual(expected, cache.list("magnum-0", None))

    def test_a_selector_may_have_any_label(self) -> None:
        cache = ObjectCache(names.MACHINE, lambda namespace: True)
        one, other = builders.machine(None, 0), builders.machine("default-worker", 0)
        for obj in (one, other):
            cache.change(obj, is_deleted=False)
        self.assertEqual(2, len(cache.list(builders.NAMESPACE, None)))
        for obj in (one, other):
            found = cache.list(builders.NAMESPACE, obj["metadata"]["labels"])
            self.assertEqual([conditions.name(obj)], [conditions.name(thing) for thing in found])
        self.assertEqual([], cache.list(builders.NAMESPACE, {"unknown": "label"}))

    def test_an_object_without_labels_has_none(self) -> None:
        cache = ObjectCache(names.CLUSTER, lambda namespace: True)
        cache.change({"metadata": {"name": "a", "namespace": "b"}}, is_deleted=False)
        self.assertEqual([], cache.list("b", {"unknown": "label"}))


class AddonTest(testtools.TestCase):
    """The two specs of an addon are not kept, only whether they are equal."""

    def test_texts_are_not_kept(self) -> None:
        for addon in at_least_one(rendered_addons()):
            kept = transform(BY_NAME[addon["kind"]], addon)
            self.assertLess(len(json.dumps(kept["spec"])), 100)
            self.assertLess(len(json.dumps(kept["metadata"]["annotations"])), 200)
            self.assertIn("clusterName", addon["spec"])
            self.assertTrue(addons.is_addon_deployed(kept))

    def test_an_edit_is_seen(self) -> None:
        for addon in at_least_one(rendered_addons()):
            addon["spec"]["clusterName"] += "x"
            kept = transform(BY_NAME[addon["kind"]], addon)
            self.assertFalse(addons.is_addon_deployed(kept))

    def test_what_is_read_of_a_spec_remains(self) -> None:
        spec = {"paused": True, "targetNamespace": "a", "chart": {"name": "b"}}
        addon = {**builders.addon("csi-cinder"), "spec": spec}
        kept = transform(names.HELM_RELEASE, addon)
        self.assertEqual({"paused": True, "targetNamespace": "a"}, kept["spec"])

    @given(
        spec=SPECS | strategies.none(),
        handled=SPECS | strategies.none() | strategies.text(),
        is_equal=strategies.booleans(),
        is_known=strategies.booleans(),
    )
    def test_any_two_specs_are_compared_as_before(
        self, spec: Any, handled: Any, is_equal: bool, is_known: bool
    ) -> None:
        addon = {**builders.addon("csi-cinder"), "spec": spec}
        if spec is None:
            del addon["spec"]
        text = json.dumps({"spec": spec if is_equal else handled})
        addon["metadata"]["annotations"] = {HANDLED: text} if is_known else {}
        kept = transform(names.HELM_RELEASE, addon)
        self.assertEqual(addons.is_addon_deployed(addon), addons.is_addon_deployed(kept))
        self.assertEqual(kept, transform(names.HELM_RELEASE, kept))
