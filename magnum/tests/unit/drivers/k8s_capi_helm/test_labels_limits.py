# SPDX-License-Identifier: Apache-2.0
"""How many labels there may be, and what those of clusters from before that cost in each pass."""

from __future__ import annotations

import json

import testtools

from magnum.drivers.k8s_capi_helm import errors, labels
from magnum.drivers.k8s_capi_helm.errors import column_limits
from magnum.drivers.k8s_capi_helm.labels.value_types import limits
from magnum.tests.unit.drivers.k8s_capi_helm.call_counts import calls
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase


def strange(count: int, beginning: str = "boot_volume_siz") -> dict[str, str]:
    """Unknown labels; by default each nearly one that there is."""
    return {f"{beginning}{number}": "1" for number in range(count)}


class TestNotices(testtools.TestCase):
    def test_ten_thousand_unknown_labels_cost_what_fifty_cost(self) -> None:
        for beginning in ("boot_volume_siz", "zz", "x" * 3000):
            some, many = strange(50, beginning), strange(10_000, beginning)
            for one in (some, many):
                labels.notices(one)
            steps = [calls(lambda one=one: labels.notices(one)) for one in (some, many)]
            self.assertLess(steps[1], steps[0] + 200, beginning)

    def test_what_was_looked_up_is_remembered(self) -> None:
        texts = strange(50, "boot_volume_sizz")
        first, second = (calls(lambda: labels.notices(texts)) for _ in range(2))
        self.assertLess(10 * second, first)

    def test_a_name_of_a_megabyte_is_not_compared_and_not_said_whole(self) -> None:
        [said] = labels.notices({"x" * (1 << 20): "1"})
        self.assertLess(len(said), 200)

    def test_so_many_are_named_and_the_rest_is_counted(self) -> None:
        [said] = labels.notices(strange(70, "zz"))
        self.assertTrue(said.endswith(" and 20 more."), said)

    def test_nodegroups_by_the_hundred(self) -> None:
        groups = {f"group-{number}": strange(200, f"zz{number}-") for number in range(300)}
        found = list(labels.nodegroup_notices(groups, {}))
        self.assertLess(sum(len(one) for one in found), 10_000)
        copies = {f"group-{number}": strange(200) for number in range(300)}
        self.assertEqual([], list(labels.nodegroup_notices(copies, strange(200))))


class TestRefusals(testtools.TestCase):
    def refused(self, texts: dict[str, str]) -> str:
        error = self.assertRaises(errors.InvalidRequest, labels.check_new, texts, "The cluster")
        return str(error)

    def test_the_number(self) -> None:
        labels.check_new(strange(limits.MOST), "The cluster")
        self.assertIn("257 labels, and at most 256", self.refused(strange(limits.MOST + 1)))

    def test_the_size_is_that_of_the_column(self) -> None:
        for character in 'xé😀"':
            size = len(json.dumps(character)) - 2
            most = (column_limits.LABELS - len('{"a": ""}')) // size
            labels.check_new({"a": character * most}, "The cluster")
            said = self.refused({"a": character * (most + 1)})
            self.assertIn(f"at most {column_limits.LABELS}", said)
            self.assertIn("'a'", said)

    def test_every_label_that_a_driver_knows_can_be_had_at_once(self) -> None:
        self.assertGreater(limits.MOST, len(labels.BY_NAME) + 100)


class TestDriver(DriverCase):
    """Through Magnum's conductor."""

    def test_a_new_cluster_is_refused_before_anything_is_made(self) -> None:
        cluster = self.create(labels=strange(257))
        self.assertEqual("CREATE_FAILED", cluster.status)
        self.assertIn("at most 256", cluster.status_reason)
        self.assertEqual([], self.left())

    def test_a_new_nodegroup_is_refused_alone(self) -> None:
        self.made()
        self.add_group("more", labels=strange(257))
        self.assertEqual("CREATE_FAILED", self.group("more").status)
        self.assertIn("Nodegroup 'more' has 257 labels", self.group("more").status_reason)
        self.add_group("marked", node_labels={f"a{number}": "b" for number in range(257)})
        self.assertIn("257 entries in node_labels", self.group("marked").status_reason)

    def test_what_a_nodegroup_has_of_its_cluster_does_not_count(self) -> None:
        """A cluster from before, or one that was upgraded, may have more than a new one."""
        self.made()
        cluster = self.cluster()
        cluster.labels = strange(300)
        cluster.save()
        self.add_group("more", labels={**strange(300), "boot_volume_size": "20"})
        self.assertEqual("CREATE_IN_PROGRESS", self.group("more").status)
        self.add_group("most", labels={**strange(300), **strange(257, "zz")})
        self.assertIn("Nodegroup 'most' has 257 labels", self.group("most").status_reason)

    def test_a_template_that_brings_too_many_is_refused(self) -> None:
        self.made(labels=strange(200))
        template = self._template(uuid="t" * 36, labels=strange(400, "zz"))
        self.assertIn("600 labels, and at most 512", self.upgrade(template))
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)

    def test_a_cluster_that_has_too_many_from_before_lives_on(self) -> None:
        self.made()
        cluster = self.cluster()
        # As many as a column of TEXT holds on MariaDB.
        cluster.labels = strange(2_000)
        cluster.save()
        self.health_task()
        self.assertIn("and 1900 more.", self.cluster().health_status_reason["notice"])
        self.resize(2)
        self.capi_converges()
        self.status_task(2)
        self.assertEqual("UPDATE_COMPLETE", self.cluster().status)
        self.assertEqual("", self.upgrade(self._template(uuid="t" * 36)))
