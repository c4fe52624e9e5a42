# SPDX-License-Identifier: Apache-2.0
"""Three-way merges, versions that may follow each other, and pins."""

from __future__ import annotations

import copy
import datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import testtools

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.model import Operation, Verb
from magnum.drivers.k8s_capi_helm.values.tree.live import CONTROL_PLANE
from magnum.drivers.k8s_capi_helm.values.upgrade import upgrade, version_skew
from magnum.drivers.k8s_capi_helm.values.upgrade.upgrade_nodegroups import waiting_for_control_plane

START = datetime.datetime(2026, 11, 21, tzinfo=datetime.timezone.utc)
TEXTS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"))
TREES = st.recursive(
    st.integers(0, 3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


def live(**changes: Any) -> dict[str, Any]:
    """Values of a release."""
    return {
        "kubernetesVersion": "1.34.4",
        "machineImageId": "old",
        "osDistro": "ubuntu",
        "controlPlane": {"machineCount": 3},
        "nodeGroups": [{"name": "a", "machineCount": 1}, {"name": "b", "machineCount": 2}],
        "addons": {"openstack": {"csiCinder": {"defaultStorageClass": {"name": "fast"}}}},
        **changes,
    }


def render(**changes: Any) -> dict[str, Any]:
    """Values of a render with the new image."""
    return {**live(), "kubernetesVersion": "1.35.0", "machineImageId": "new", **changes}


class TestLabels(testtools.TestCase):
    def test_who_wins(self) -> None:
        for old, new, own, wanted in (
            ("x", "y", "x", "y"),
            ("x", "y", "z", "z"),
            ("x", "y", None, None),
            ("x", None, "x", None),
            ("x", None, "z", "z"),
            (None, "y", None, "y"),
            (None, "y", "z", "z"),
            (None, None, "z", "z"),
        ):
            texts = [{} if one is None else {"calico_tag": one} for one in (old, new, own, wanted)]
            merged = upgrade.merged_labels(*texts[:3])
            self.assertEqual(texts[3], merged, (old, new, own))

    def test_the_version_goes_with_the_image(self) -> None:
        for old, new, own in ((None, None, "x"), ("x", None, "z"), ("x", "y", "z"), ("x", "y", "")):
            texts = [{"kube_tag": one} if one else {} for one in (old, new, own)]
            self.assertEqual(texts[1], upgrade.merged_labels(*texts), (old, new, own))

    def test_a_label_by_its_other_name_is_the_same_label(self) -> None:
        own = {"master_lb_allowed_cidrs": "10.0.0.0/8"}
        new = {"api_master_lb_allowed_cidrs": "0.0.0.0/0"}
        self.assertEqual(own, upgrade.merged_labels({}, new, own))
        self.assertEqual(new, upgrade.merged_labels(own, new, own))

    def test_what_is_made_with_the_cluster_stays(self) -> None:
        self.assertEqual(
            {"octavia_provider": "amphora"},
            upgrade.merged_labels(
                {"octavia_provider": "amphora"},
                {"octavia_provider": "ovn", "fixed_subnet_cidr": "10.1.0.0/24"},
                {"octavia_provider": "amphora"},
            ),
        )

    @given(TEXTS, TEXTS)
    def test_the_same_template_changes_nothing(self, old: Any, own: Any) -> None:
        self.assertEqual(own, upgrade.merged_labels(old, old, own))

    @given(TEXTS, TEXTS, TEXTS)
    def test_a_second_time_changes_nothing(self, old: Any, new: Any, own: Any) -> None:
        once = upgrade.merged_labels(old, new, own)
        self.assertEqual(once, upgrade.merged_labels(new, new, once))


class TestVersions(testtools.TestCase):
    def test_a_control_plane_goes_one_minor_release_up(self) -> None:
        for current, wanted in (
            ("1.34.4", "1.34.4"),
            ("1.34.4", "v1.34.5"),
            ("v1.34.4", "1.35.0"),
            ("1.9.4", "1.10.0"),
        ):
            self.assertIsNone(version_skew.check_control_plane(current, wanted, {}))

    def test_refusals_name_both_versions(self) -> None:
        for current, wanted, words in (
            ("1.34.4", "1.34.3", "downgraded"),
            ("1.34.4", "1.33.9", "downgraded"),
            ("1.34.4", "1.36.0", "v1.35 first"),
            ("1.34.4", "2.0.0", "skips a minor release"),
            ("1.34.4", "latest", "expected one like v1.36.3"),
        ):
            error = self.assertRaises(
                errors.InvalidRequest, version_skew.check_control_plane, current, wanted, {}
            )
            self.assertIn(words, str(error))
            self.assertIn(wanted, str(error))

    def test_a_nodegroup_that_stays_must_not_be_too_old(self) -> None:
        version_skew.check_control_plane("1.34.4", "1.35.0", {"a": "1.32.0"})
        error = self.assertRaises(
            errors.InvalidRequest,
            version_skew.check_control_plane,
            "1.34.4",
            "1.35.0",
            {"a": "1.32.0", "b": "1.31.9"},
        )
        self.assertIn("'b'", str(error))

    def test_a_nodegroup_alone(self) -> None:
        version_skew.check_nodegroup_version("a", "1.33.1", "1.34.4", "1.34.4")
        for wanted, words in (("1.33.0", "downgraded"), ("1.34.5", "Upgrade the cluster first")):
            error = self.assertRaises(
                errors.InvalidRequest,
                version_skew.check_nodegroup_version,
                "a",
                "1.33.1",
                wanted,
                "1.34.4",
            )
            self.assertIn(words, str(error))

    def test_of_live_values(self) -> None:
        values = live(controlPlane={"kubernetesVersion": "v1.35.0"})
        values["nodeGroups"][0]["kubernetesVersion"] = "1.33.0"
        self.assertEqual(
            {CONTROL_PLANE: "v1.35.0", "a": "1.33.0", "b": "1.34.4"}, upgrade.versions(values)
        )


class TestValues(testtools.TestCase):
    def test_every_group_is_pinned_to_what_it_runs(self) -> None:
        own = live()
        own["nodeGroups"][0].update(kubernetesVersion="1.33.0", machineImage="by-name")
        after = upgrade.initial_values(own, render(), render())
        first, second = after["nodeGroups"]
        self.assertEqual(
            {
                "name": "a",
                "machineCount": 1,
                "kubernetesVersion": "1.33.0",
                "machineImageId": "old",
                "machineImage": "by-name",
            },
            first,
        )
        self.assertEqual(("1.34.4", "old"), (second["kubernetesVersion"], second["machineImageId"]))

    def test_a_control_plane_of_its_own_follows_the_cluster(self) -> None:
        own = live(controlPlane={"machineCount": 3, "machineImageId": "old"}, machineImage="name")
        after = upgrade.initial_values(own, render(), render())
        self.assertEqual(({"machineCount": 3}, "new"), (after["controlPlane"], _image(after)))
        self.assertNotIn("machineImage", after)

    def test_only_what_the_labels_changed_is_carried_over(self) -> None:
        own = live(etcd={"extraArgs": {"a": "operator"}}, authWebhook="none")
        base = render(authWebhook="other", monitoring=False, etcd={})
        theirs = render(authWebhook="other", monitoring=True, etcd={"blockDevice": {"size": 5}})
        after = upgrade.initial_values(own, base, theirs)
        self.assertEqual("none", after["authWebhook"])
        self.assertIs(True, after["monitoring"])
        self.assertEqual(
            {"extraArgs": {"a": "operator"}, "blockDevice": {"size": 5}}, after["etcd"]
        )

    def test_what_a_label_took_away_goes(self) -> None:
        own = live(etcd={"blockDevice": {"size": 5}})
        base = render(etcd={"blockDevice": {"size": 5}})
        self.assertNotIn("etcd", upgrade.initial_values(own, base, render()))

    @given(TREES, TREES)
    def test_without_a_difference_nothing_but_the_software_moves(
        self, mine: Any, all_: Any
    ) -> None:
        own = live(x=mine)
        after = upgrade.initial_values(own, render(x=all_), render(x=all_))
        back = upgrade.unpin_nodegroups(after, ["a", "b"], 1, include_shared=True)
        self.assertEqual({**own, "kubernetesVersion": "1.35.0", "machineImageId": "new"}, back)

    def test_nothing_is_changed_in_what_was_given(self) -> None:
        own, base, theirs = live(), render(x={"a": 1}), render(x={"a": 2})
        before = copy.deepcopy((own, base, theirs))
        after = upgrade.initial_values(own, base, theirs)
        upgrade.unpin_nodegroups(after, ["a"], 2, include_shared=True)
        upgrade.upgrade_nodegroup(own, "a", "1.34.4", "other", 2)
        self.assertEqual(before, (own, base, theirs))

    def test_one_group_moves_and_comes_back(self) -> None:
        away = upgrade.upgrade_nodegroup(live(), "a", "1.34.4", "other", 2)
        self.assertEqual(
            {
                "name": "a",
                "machineCount": 1,
                "kubernetesVersion": "1.34.4",
                "machineImageId": "other",
                "rolloutStrategy": {"rollingUpdate": {"maxUnavailable": 2}},
            },
            away["nodeGroups"][0],
        )
        self.assertEqual(live(), upgrade.upgrade_nodegroup(away, "a", "1.34.4", "old", 1))

    def test_a_strategy_of_somebody_else_stays(self) -> None:
        given = {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}
        own = live()
        own["nodeGroups"][0]["rolloutStrategy"] = given
        after = upgrade.upgrade_nodegroup(own, "a", "1.34.4", "old", 1)
        self.assertEqual(given, after["nodeGroups"][0]["rolloutStrategy"])
        after = upgrade.upgrade_nodegroup(own, "a", "1.34.4", "old", 2)
        self.assertEqual(
            {"rollingUpdate": {"maxUnavailable": 2, "maxSurge": 1}},
            after["nodeGroups"][0]["rolloutStrategy"],
        )

    def test_storage_classes_are_added_and_never_changed(self) -> None:
        theirs = render(
            addons={
                "openstack": {
                    "csiCinder": {
                        "defaultStorageClass": {"name": "new", "isClusterDefault": True},
                        "additionalStorageClasses": [{"name": "fast", "fstype": "xfs"}],
                    }
                }
            }
        )
        after = upgrade.initial_values(live(), theirs, theirs)
        self.assertEqual(
            {
                "defaultStorageClass": {"name": "fast"},
                "additionalStorageClasses": [{"name": "new"}],
            },
            after["addons"]["openstack"]["csiCinder"],
        )


class TestHeld(testtools.TestCase):
    def operation(self, *groups: str, accepted: bool = True) -> Operation:
        return Operation("1", Verb.UPGRADE, START, groups, is_accepted=accepted)

    def test_pinned_groups_of_the_upgrade(self) -> None:
        values = upgrade.initial_values(live(), render(), render())
        self.assertEqual(
            ("a",),
            waiting_for_control_plane(values, self.operation(CONTROL_PLANE, "a"), ()),
        )
        rest = upgrade.unpin_nodegroups(values, ["a"], 1, include_shared=True)
        self.assertEqual(
            (),
            waiting_for_control_plane(rest, self.operation(CONTROL_PLANE, "a"), ()),
        )

    def test_nobody_before_helm_took_it_and_nobody_without_the_control_plane(self) -> None:
        values = upgrade.initial_values(live(), render(), render())
        for operation in (
            self.operation(CONTROL_PLANE, "a", accepted=False),
            self.operation("a"),
        ):
            self.assertEqual((), waiting_for_control_plane(values, operation, ()))


def _image(values: dict[str, Any]) -> str:
    return str(values["machineImageId"])
