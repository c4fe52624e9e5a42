# SPDX-License-Identifier: Apache-2.0
"""What operators add to the set-up of machines: theirs wins, and a role's own moves that role."""

from __future__ import annotations

import unittest

from magnum.tests.functional.k8s_capi_helm.charts import machines, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one


class OwnSetupTest(unittest.TestCase):
    def kubelet(self, registration: Object) -> dict[str, str]:
        return machines.flags(registration["kubeletExtraArgs"])

    def test_the_nearer_flag_of_the_kubelet_wins(self) -> None:
        joining = {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": {"d": "4"}}}}
        objects = machines.plain(
            kubelet={"extraArgs": {"a": "1", "b": "1", "c": "1", "d": "1"}},
            nodeGroupDefaults={"kubeletExtraArgs": {"b": "2", "c": "2", "d": "2"}},
            nodeGroups__0__kubeletExtraArgs={"c": "3", "d": "3"},
            nodeGroups__0__kubeadmConfigSpec=joining,
            controlPlane__kubeletExtraArgs={"b": "5"},
        )
        flags = self.kubelet(machines.worker(objects)["joinConfiguration"]["nodeRegistration"])
        self.assertEqual({"a": "1", "b": "2", "c": "3", "d": "4"}, {k: flags[k] for k in "abcd"})
        for phase in ("initConfiguration", "joinConfiguration"):
            flags = self.kubelet(machines.control_plane(objects)[phase]["nodeRegistration"])
            self.assertEqual({"a": "1", "b": "5"}, {key: flags[key] for key in "ab"})

    def test_labels_of_all_places_are_one_flag(self) -> None:
        def own(text: str) -> Object:
            return {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": text}}}

        for flags in ({"node-labels": "d=4"}, [{"name": "node-labels", "value": "d=4"}]):
            objects = machines.plain(
                nodeGroups__0__nodeLabels={"a": "1"},
                kubelet={"extraArgs": {"node-labels": "b=2"}},
                nodeGroups__0__kubeletExtraArgs={"node-labels": "c=3"},
                nodeGroups__0__kubeadmConfigSpec=own(flags),  # type: ignore[arg-type]
            )
            found = self.kubelet(machines.worker(objects)["joinConfiguration"]["nodeRegistration"])
            self.assertEqual(
                "a=1,capi.stackhpc.com/node-group=workers,b=2,c=3,d=4", found["node-labels"]
            )

    def test_labels_of_the_control_plane(self) -> None:
        spec = machines.control_plane(
            machines.plain(controlPlane__nodeLabels={"example.org/rack": "07"})
        )
        for phase in ("initConfiguration", "joinConfiguration"):
            flags = self.kubelet(spec[phase]["nodeRegistration"])
            self.assertEqual("example.org/rack=07", flags["node-labels"])

    def test_ones_own_words_win_and_lists_come_after(self) -> None:
        objects = machines.rendered(
            "own-machine-setup",
            trustedCAs=rendering.scenarios(rendering.CLUSTER)["behind-a-proxy"].values[
                "trustedCAs"
            ],
        )
        for spec in machines.both(objects):
            self.assertEqual(
                b"This control plane has its own.\n", machines.files(spec)["/etc/motd"]
            )
            self.assertEqual("update-ca-certificates", spec["preKubeadmCommands"][0])
            self.assertEqual(
                ["modprobe nfs", "echo 'it''s here' > /run/house"], spec["preKubeadmCommands"][-2:]
            )
            self.assertEqual(["rm /run/house"], spec["postKubeadmCommands"])
            joining = spec["joinConfiguration"]
            self.assertEqual({"directory": "/etc/house/patches"}, joining["patches"])
            self.assertEqual("Never", joining["nodeRegistration"]["imagePullPolicy"])
            self.assertEqual(["NumCPU"], joining["nodeRegistration"]["ignorePreflightErrors"])
            self.assertEqual([["LABEL=house", "/var/house"]], spec["mounts"])
        first = machines.control_plane(objects)["initConfiguration"]
        self.assertEqual([], first["nodeRegistration"]["taints"])
        self.assertEqual(["addon/coredns"], first["skipPhases"])

    def test_phases_are_skipped_for_the_chart_and_for_oneself(self) -> None:
        own = {"initConfiguration": {"skipPhases": ["addon/coredns"]}}
        objects = machines.plain(
            addons={"enabled": True, "cni": {"type": "cilium"}}, controlPlane__kubeadmConfigSpec=own
        )
        self.assertEqual(
            ["addon/kube-proxy", "addon/coredns"],
            machines.control_plane(objects)["initConfiguration"]["skipPhases"],
        )

    def test_a_name_of_ones_own(self) -> None:
        for distro in ("ubuntu", "flatcar"):
            own = {"joinConfiguration": {"nodeRegistration": {"name": "{{ ds.meta_data.name }}"}}}
            objects = machines.plain(osDistro=distro, nodeGroups__0__kubeadmConfigSpec=own)
            registration = machines.worker(objects)["joinConfiguration"]["nodeRegistration"]
            self.assertEqual("{{ ds.meta_data.name }}", registration["name"])

    def test_a_file_in_place_of_the_charts(self) -> None:
        path = "/etc/systemd/system/kubelet.service.d/proxy.conf"
        for change in (
            {"additionalFiles": [{"path": path, "content": "mine\n"}]},
            {
                "controlPlane__kubeadmConfigSpec": {"files": [{"path": path, "content": "mine"}]},
                "nodeGroupDefaults": {
                    "kubeadmConfigSpec": {"files": [{"path": path, "content": "mine"}]}
                },
            },
        ):
            for spec in at_least_one(machines.both(machines.rendered(**change))):
                self.assertEqual(b"mine\n", machines.files(spec)[path])
                self.assertIn("/etc/kubernetes/proxy.env", machines.files(spec))

    def test_a_file_that_is_asked_for_twice_comes_once(self) -> None:
        given = [{"path": "/etc/a", "content": "same"}]
        objects = machines.plain(
            additionalFiles=given, nodeGroups__0__kubeadmConfigSpec={"files": given}
        )
        self.assertEqual({"/etc/a"}, set(machines.files(machines.worker(objects))))

    def test_null_says_nothing(self) -> None:
        keys = ("nodeLabels", "kubeletExtraArgs", "kubeadmConfigSpec")
        nothing = dict.fromkeys(
            (
                *("proxy", "kubelet", "registryAuth", "registryMirrors", "trustedCAs"),
                *("additionalPackages", "additionalFiles"),
                *(
                    f"{place}__{key}"
                    for key in keys
                    for place in ("nodeGroups__0", "nodeGroupDefaults")
                ),
                *(f"controlPlane__{key}" for key in keys[:2]),
            )
        )
        self.assertEqual(machines.plain(), machines.rendered(**nothing))

    def test_etcds_disk_and_ones_own_stand_beside_each_other(self) -> None:
        own = {
            "diskSetup": {"filesystems": [{"device": "/dev/vdd", "filesystem": "xfs"}]},
            "mounts": [["LABEL=own", "/var/own"]],
            "joinConfiguration": {"nodeRegistration": {"ignorePreflightErrors": ["NumCPU"]}},
        }
        spec = machines.control_plane(
            machines.plain(etcd__blockDevice={"size": 10}, controlPlane__kubeadmConfigSpec=own)
        )
        self.assertEqual(
            ["/dev/disk/openstack/by-tag/etcd", "/dev/vdd"],
            [one["device"] for one in spec["diskSetup"]["filesystems"]],
        )
        self.assertEqual(["LABEL=etcd_disk", "LABEL=own"], [one[0] for one in spec["mounts"]])
        self.assertEqual(
            ["DirAvailable--var-lib-etcd", "NumCPU"],
            spec["joinConfiguration"]["nodeRegistration"]["ignorePreflightErrors"],
        )

    def test_what_is_empty_says_nothing(self) -> None:
        empty = {
            "joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": {}}, "patches": {}},
            **{key: [] for key in ("files", "preKubeadmCommands", "users", "mounts")},
            **{key: {} for key in ("ntp", "diskSetup", "ignition")},
        }
        self.assertEqual(
            machines.plain(),
            machines.plain(
                controlPlane__kubeadmConfigSpec=empty,
                nodeGroupDefaults={"kubeadmConfigSpec": empty},
                nodeGroups__0__kubeadmConfigSpec=empty,
            ),
        )

    def test_maps_and_lists_of_flags_are_the_same(self) -> None:
        def of(flags: object, core: str) -> list[Object]:
            own = {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": flags}}}
            return machines.plain(nodeGroups__0__kubeadmConfigSpec=own, apiVersions={"core": core})

        for core in ("v1beta1", "v1beta2"):
            self.assertEqual(
                of({"v": "4", "a": "b"}, core),
                of([{"name": "v", "value": "4"}, {"name": "a", "value": "b"}], core),
            )

    def test_what_concerns_one_role_leaves_the_other_alone(self) -> None:
        before = machines.names(machines.plain())
        own = {"preKubeadmCommands": ["true"]}
        for change, moved in (
            ({"controlPlane__kubeadmConfigSpec": own}, "control plane"),
            ({"controlPlane__kubeletExtraArgs": {"v": "2"}}, "control plane"),
            ({"nodeGroupDefaults": {"kubeadmConfigSpec": own}}, "workers"),
            ({"nodeGroups__0__kubeletExtraArgs": {"v": "2"}}, "workers"),
        ):
            after = machines.names(machines.plain(**change))
            with self.subTest(change=change):
                self.assertEqual([moved], [role for role in before if before[role] != after[role]])

    def test_what_concerns_machines_of_both_roles_moves_both(self) -> None:
        before = machines.names(machines.plain())
        for change in (
            {"registryMirrors": {"a.org": ["https://b.org"]}},
            {"kubelet": {"extraArgs": {"v": "2"}}},
            {"additionalPackages": ["vim"]},
            {"additionalFiles": [{"path": "/a", "content": "b"}]},
            {"proxy": {"https": "http://p:1"}},
            {"global": {"imageRegistryPrefix": "registry.example.org/mirror"}},
        ):
            after = machines.names(machines.plain(**change))
            with self.subTest(change=change):
                self.assertTrue(all(before[role] != after[role] for role in before))
