# SPDX-License-Identifier: Apache-2.0
"""Names are valid, bounded and free of collisions, whatever people call things."""

import re

from hypothesis import example, given, strategies
import testtools

from magnum.drivers.k8s_capi_helm.model import names

RFC_1035 = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?\Z")
PROJECT = "4135aa797d4e4bafb979b5490234c4d4"


class TestRelease(testtools.TestCase):
    @given(strategies.text(max_size=255))
    @example("")
    @example("---")
    @example("1st")
    @example("9" * 255)
    @example("Zürich ☃")
    @example("a" * 30 + "-b")
    def test_any_cluster_name_gives_a_name_that_everybody_takes(self, name):
        release = names.release(name)
        self.assertIsNotNone(RFC_1035.match(release), release)
        self.assertLessEqual(len(release), 43)
        self.assertTrue(names.is_release(release))

    def test_people_can_read_whose_it_is_and_no_two_are_the_same(self):
        made = {names.release("My Cluster_1") for _ in range(200)}
        self.assertEqual(200, len(made))
        self.assertEqual({"my-cluster-1"}, {one[:-13] for one in made})

    def test_names_of_other_drivers_are_not_ours(self):
        for text in (
            None,
            "",
            "kube-abcde",
            "047c6319-7abd-4bd9-a033-8c6af0173cd0",
            "demo-ABCDEFGHIJKL",
            "demo_abcdefghijkl",
            "a" * 40 + "-abcdefghijkl",
        ):
            self.assertFalse(names.is_release(text), text)

    def test_names_of_magnum_capi_helm_are(self):
        for text in ("demo-abcdefghijkl", "abcdefghijkl", "1st-0123456789ab", "a-b-c-abcdefghijkl"):
            self.assertTrue(names.is_release(text), text)

    def test_a_name_that_was_cut_at_a_hyphen_is_too(self):
        self.assertTrue(names.is_release("a" * 29 + "--abcdefghijkl"))
        self.assertFalse(names.is_release("-abcdefghijkl"))


class TestOthers(testtools.TestCase):
    def test_what_is_made_for_a_release_has_the_names_that_others_look_for(self):
        self.assertEqual("r-cloud-credentials", names.credential_secret("r"))
        self.assertEqual("r-magnum", names.lease("r"))
        self.assertEqual("r-control-plane", names.kubeadm_control_plane("r"))
        self.assertEqual(
            ["r-ca", "r-etcd", "r-proxy", "r-sa"],
            [names.ca_secret("r", purpose) for purpose in names.CA_PURPOSES],
        )

    def test_namespace_is_the_projects_id_without_punctuation(self):
        dashed = "4135aa79-7d4e-4baf-b979-b5490234c4d4"
        self.assertEqual(f"magnum-{PROJECT}", names.namespace("magnum", PROJECT))
        self.assertEqual(f"magnum-{PROJECT}", names.namespace("magnum", dashed))

    def test_entries_differ_and_older_groups_keep_theirs(self):
        listed = ["default-worker", "GPU_Pool", "gpu-pool", "集群", "Ab", "aB", "a.b.", "x--y"]
        found = names.entries(listed)
        self.assertEqual(listed, list(found))
        self.assertEqual(len(listed), len(set(found.values())))
        fit = {name: entry for name, entry in found.items() if names.is_node_group(entry)}
        self.assertEqual(
            {
                "default-worker": "default-worker",
                "GPU_Pool": "gpu-pool",
                "Ab": "ab",
                "a.b.": "a-b",
                "x--y": "x-y",
            },
            fit,
        )

    def test_names_of_nodegroups(self):
        for good in ("a", "gpu", "1gpu", "gpu-1", "a" * 63):
            self.assertTrue(names.is_node_group(good), good)
        for bad in ("", "-a", "a-", "a--b", "GPU", "g_1", "g.1", "ü", "a" * 64, "a\n"):
            self.assertFalse(names.is_node_group(bad), bad)
