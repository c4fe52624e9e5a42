# SPDX-License-Identifier: Apache-2.0
"""What nodegroups take with their upgrade, and that no other nodegroup changes for it."""

from __future__ import annotations

from collections.abc import Mapping
import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.explain import effects
from magnum.drivers.k8s_capi_helm.model import Json
from magnum.drivers.k8s_capi_helm.values.tree import merge
from magnum.drivers.k8s_capi_helm.values.upgrade import deferred, rollout, upgrade

#: Values of nodegroups alone: they are deferred nodegroup by nodegroup.
OF_NODEGROUPS = frozenset({"nodeGroups", "nodeGroupDefaults"})
#: Values that replace workers and are not deferred, since an upgrade treats them otherwise.
OTHERWISE = {
    **dict.fromkeys(upgrade.SOFTWARE, "pinned for each nodegroup until its turn"),
    "osDistro": "an upgrade to another distribution is refused",
}
VALUES = st.recursive(
    st.one_of(st.integers(0, 2), st.lists(st.integers(0, 1), max_size=1)),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
MAPS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)
TAKERS = st.sets(st.sampled_from(["x", "y", "z"]))


def values(defaults: Json, **groups: Json) -> Json:
    """Of a release."""
    entries = [{"name": name, **entry} for name, entry in groups.items()]
    return {"nodeGroupDefaults": defaults, "nodeGroups": entries}


def whole(found: Json, name: str) -> Any:
    """A nodegroup as the chart sees it; an empty map says what none says."""
    (entry,) = (one for one in found["nodeGroups"] if one["name"] == name)
    return _filled(_chart_overlay(found["nodeGroupDefaults"], entry))


def _chart_overlay(below: Any, above: Any) -> Any:
    """``openstack-cluster.machine.values.merged`` of the chart, line by line."""
    result = dict(below)
    for key, high in above.items():
        low = result.get(key)
        if isinstance(low, dict) and isinstance(high, dict):
            result[key] = _chart_overlay(low, high)
        elif high is not None:
            result[key] = high
    return result


def _filled(one: Any) -> Any:
    if not isinstance(one, dict):
        return repr(one)
    found = {key: _filled(value) for key, value in one.items()}
    return {key: value for key, value in found.items() if value != {}}


def replacing_workers(rolls: Mapping[str, str]) -> set[str]:
    """Top-level values of which another value replaces the machines of nodegroups."""
    found = {name.partition(".")[0] for name, word in rolls.items() if "node groups" in word}
    return found - OF_NODEGROUPS


class TestRolls(testtools.TestCase):
    """What an upgrade defers is what the chart's record says of workers' machines."""

    def test_what_replaces_workers_is_deferred_or_treated_otherwise(self) -> None:
        rolls = effects.rolls()
        self.assertEqual({*rollout.SHARED, *OTHERWISE}, replacing_workers(rolls))
        self.assertEqual(set(), set(rollout.SHARED) & set(OTHERWISE))

    def test_a_row_of_the_record_is_read(self) -> None:
        rolls = {
            "tls": "control plane and node groups",
            "kubelet.extraArgs": "node groups",
            "etcd": "control plane",
            "bastion": "nothing is replaced",
            "nodeGroupDefaults.machineFlavor": "node groups",
        }
        self.assertEqual({"tls", "kubelet"}, replacing_workers(rolls))


class TestPairs(testtools.TestCase):
    @given(VALUES, VALUES)
    def test_what_does_not_differ_carries_nothing(self, live: Any, same: Any) -> None:
        self.assertEqual(live, merge.carry_over(live, same, same))

    @given(MAPS, MAPS, MAPS)
    def test_a_difference_carries_what_both_renders_carry(
        self, live: Any, base: Any, theirs: Any
    ) -> None:
        self.assertEqual(
            _filled(merge.carry_over(live, base, theirs)),
            _filled(merge.carry_over(live, *merge.difference(base, theirs))),
        )


class TestGroups(testtools.TestCase):
    @given(MAPS, MAPS, MAPS, MAPS, MAPS, TAKERS)
    def test_who_takes_nothing_stays_as_it_is(
        self, defaults: Any, new: Any, x: Any, y: Any, z: Any, takers: Any
    ) -> None:
        live = values(defaults, x=x, y=y, z=z)
        before = copy.deepcopy(live)
        owing = deferred.of_upgrade("1", live, live, values(new, x=x, y=y, z=z))
        after = deferred.apply(live, takers, [owing], include_shared=True)
        for name in {"x", "y", "z"} - takers:
            self.assertEqual(whole(live, name), whole(after, name))
        self.assertEqual(before, live)

    @given(MAPS, MAPS, MAPS, MAPS, MAPS)
    def test_a_new_group_is_as_the_new_render_says_and_moves_nobody(
        self, defaults: Any, new: Any, x: Any, y: Any, late: Any
    ) -> None:
        live = values(defaults, x=x, y=y)
        owing = deferred.of_upgrade("1", live, live, values(new, x=x, y=y))
        after = deferred.expand_defaults(live, [owing])
        for name in ("x", "y"):
            self.assertEqual(whole(live, name), whole(after, name))
        entry = deferred.new_nodegroup_entry({"name": "late", **late}, after, [owing])
        after["nodeGroups"].append(entry)
        self.assertEqual(whole(values(new, late=late), "late"), whole(after, "late"))

    @given(MAPS, MAPS, MAPS, MAPS, TAKERS)
    def test_who_takes_it_has_what_the_new_render_says(
        self, defaults: Any, new: Any, x: Any, y: Any, takers: Any
    ) -> None:
        live, theirs = values(defaults, x=x, y=y), values(new, x=x, y=y)
        owing = deferred.of_upgrade("1", live, live, theirs)
        after = deferred.apply(live, takers, [owing], include_shared=True)
        for name in takers & {"x", "y"}:
            self.assertEqual(whole(theirs, name), whole(after, name))

    @given(MAPS, MAPS, MAPS)
    def test_all_of_them_have_it_from_the_defaults(self, old: Any, new: Any, x: Any) -> None:
        live = values(old, x={}, y={})
        owing = deferred.of_upgrade("1", live, live, values(new, x={}, y={}))
        after = deferred.apply(live, ["x", "y"], [owing], include_shared=True)
        self.assertEqual(_filled(new), _filled(after["nodeGroupDefaults"]))
        self.assertEqual(
            [{"name": "x"}, {"name": "y"}], [_without_empty(e) for e in after["nodeGroups"]]
        )
        self.assertEqual((), deferred.left_over([owing], ["x", "y"], after, include_shared=True))

    def test_who_was_left_out_takes_both_upgrades_later(self) -> None:
        first, second, third = (
            values({}, x={}, y={}),
            values({"a": 1}, x={}, y={}),
            values({"a": 2}, x={}, y={}),
        )
        one = deferred.of_upgrade("1", first, first, second)
        after = deferred.apply(first, ["x"], [one], include_shared=True)
        self.assertEqual(
            ({"name": "'x'", "a": "1"}, {"name": "'y'"}), (whole(after, "x"), whole(after, "y"))
        )
        left = deferred.left_over([one], ["x"], after, include_shared=True)
        two = deferred.of_upgrade("2", after, second, third)
        last = deferred.apply(after, ["x", "y"], [*left, two], include_shared=True)
        self.assertEqual(third, last)
        self.assertEqual(
            (), deferred.left_over([*left, two], ["x", "y"], last, include_shared=True)
        )

    def test_what_somebody_else_put_into_an_entry_stays(self) -> None:
        live = values({"disk": {"size": 20}}, x={"disk": {"size": 30}}, y={})
        plain = values({"disk": {"size": 20}}, x={}, y={})
        owing = deferred.of_upgrade("1", live, plain, values({"disk": {"size": 50}}, x={}, y={}))
        after = deferred.apply(live, ["x", "y"], [owing], include_shared=True)
        self.assertEqual(values({"disk": {"size": 50}}, x={"disk": {"size": 30}}, y={}), after)

    def test_a_new_group_has_what_the_defaults_do_not_say_yet(self) -> None:
        live = values({}, x={})
        owing = deferred.of_upgrade(
            "1", live, live, values({"disk": {"size": 50, "type": "a"}}, x={})
        )
        entry = deferred.new_nodegroup_entry({"name": "y", "disk": {"type": "b"}}, live, [owing])
        self.assertEqual({"name": "y", "disk": {"size": 50, "type": "b"}}, entry)
        self.assertEqual({"name": "y"}, deferred.new_nodegroup_entry({"name": "y"}, live, []))

    def test_what_all_machines_share_waits_for_a_whole_upgrade(self) -> None:
        live = {**values({}, x={}), "authWebhook": "none"}
        theirs = {**live, "proxy": {"http": "http://p:1"}, "authWebhook": "other"}
        owing = deferred.of_upgrade("1", live, live, theirs)
        self.assertEqual({**live, "authWebhook": "other"}, rollout.keep_machines(theirs, live))
        self.assertEqual(live, deferred.apply(live, ["x"], [owing], include_shared=False))
        after = deferred.apply(live, ["x"], [owing], include_shared=True)
        self.assertEqual({"http": "http://p:1"}, after["proxy"])
        self.assertEqual("none", after["authWebhook"])
        self.assertEqual((owing,), deferred.left_over([owing], ["x"], live, include_shared=False))
        self.assertEqual((), deferred.left_over([owing], ["x"], after, include_shared=True))

    def test_what_is_too_much_for_a_lease_is_refused(self) -> None:
        live = values({}, x={}, y={})
        one = deferred.of_upgrade("1", live, live, values({"text": "a" * 20_000}, x={}, y={}))
        deferred.check_size([one, one])
        with testtools.ExpectedException(errors.InvalidRequest, ".* KiB, at most 128.*x, y.*"):
            deferred.check_size([one, one, one])


def _without_empty(entry: Json) -> Json:
    return {key: value for key, value in entry.items() if value != {}}
