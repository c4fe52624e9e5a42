# SPDX-License-Identifier: Apache-2.0
"""The machine templates: image, disks, ports and what else a server has."""

from __future__ import annotations

from typing import Any
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.infrastructure import (
    machines,
    rendered,
    template_names,
    VERSIONS,
)
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Values
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

#: The one template that an image's name may have.
_VERSION = "{{ .Values.kubernetesVersion }}"


class MachineTest(unittest.TestCase):
    def both(self, **change: Any) -> tuple[Any, Any]:
        """Machines of the control plane and of the group, which say the same."""
        found = machines(
            rendered(
                **{f"controlPlane__{key}": value for key, value in change.items()},
                **{f"nodeGroups__0__{key}": value for key, value in change.items()},
            )
        )
        return found["control-plane"], found["g"]

    def test_the_nearest_image_wins_and_an_id_before_a_name(self) -> None:
        every = {"machineImageId": rendering.openstack_id(4), "machineImage": "3"}
        for own, wanted in (
            (
                {"machineImageId": rendering.openstack_id(1), "machineImage": "2"},
                {"id": rendering.openstack_id(1)},
            ),
            ({"machineImage": "2"}, {"filter": {"name": "2"}}),
            ({}, {"id": rendering.openstack_id(4)}),
        ):
            found = machines(
                rendered(
                    **every,
                    **{f"controlPlane__{key}": value for key, value in own.items()},
                    **{f"nodeGroups__0__{key}": value for key, value in own.items()},
                )
            )
            self.assertEqual({"control-plane", "g"}, set(found))
            for spec in found.values():
                self.assertEqual(wanted, spec["image"])
        found = machines(rendered(machineImageId=None, machineImage="3"))
        self.assertEqual({"filter": {"name": "3"}}, found["g"]["image"])

    def test_a_group_takes_its_image_before_the_defaults(self) -> None:
        found = machines(
            rendered(nodeGroupDefaults__machineImage="a", nodeGroups__0__machineImage="b")
        )
        self.assertEqual({"filter": {"name": "b"}}, found["g"]["image"])
        found = machines(
            rendered(
                nodeGroupDefaults__machineImageId=rendering.openstack_id(1),
                nodeGroups__0__machineImageId="",
                nodeGroups__0__machineImage="b",
            )
        )
        self.assertEqual({"filter": {"name": "b"}}, found["g"]["image"])

    def test_the_cluster_s_version_in_an_image_s_name_is_filled_in(self) -> None:
        for version, name, wanted in (
            ("1.33.4", f"u-{_VERSION}", "u-1.33.4"),
            ("v1.33.4", f"u-{_VERSION}", "u-v1.33.4"),
            ("1.33.4", "u-v{{.Values.kubernetesVersion}}-x", "u-v1.33.4-x"),
            ("v1.33.4", f"u-v{_VERSION}", "u-v1.33.4"),
            ("1.33.4", f"{_VERSION}v{_VERSION}", "1.33.4v1.33.4"),
            ("1.33.4", "$1 ${0} {{  .Values.kubernetesVersion }} ", "$1 ${0} 1.33.4 "),
        ):
            for change in (
                {"machineImageId": None, "machineImage": name},
                {"nodeGroupDefaults__machineImage": name, "controlPlane__machineImage": name},
            ):
                found = machines(rendered(kubernetesVersion=version, **change))
                with self.subTest(version=version, change=change):
                    for spec in at_least_one(found.values()):
                        self.assertEqual({"filter": {"name": wanted}}, spec["image"])

    def test_a_filled_in_image_is_that_of_its_full_name(self) -> None:
        """Replacing the template by its result, or the reverse, replaces no machine."""
        names = [
            {rendering.identity(one) for one in rendered(machineImageId=None, machineImage=name)}
            for name in ("u-v1.33.4", f"u-v{_VERSION}")
        ]
        self.assertEqual(*names)

    def test_an_image_s_version_matters_only_where_the_image_is_used(self) -> None:
        found = machines(
            rendered(
                machineImageId=None,
                machineImage=f"u-v{_VERSION}",
                nodeGroups__0__machineImage="old",
                nodeGroups__0__kubernetesVersion="1.33.3",
            )
        )
        self.assertEqual({"filter": {"name": "old"}}, found["g"]["image"])
        self.assertEqual({"filter": {"name": "u-v1.33.4"}}, found["control-plane"]["image"])

    def test_metadata_of_the_control_plane_stays_with_it(self) -> None:
        found = machines(
            rendered(machineMetadata={"a": "1", "b": "1"}, controlPlane__machineMetadata={"b": "2"})
        )
        self.assertEqual(
            [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}],
            found["control-plane"]["serverMetadata"],
        )
        self.assertEqual(
            [{"key": "a", "value": "1"}, {"key": "b", "value": "1"}], found["g"]["serverMetadata"]
        )

    def test_a_local_disk_has_nothing_of_cinders(self) -> None:
        for spec in at_least_one(
            self.both(additionalBlockDevices={"a": {"size": 1, "type": "Local"}})
        ):
            (disk,) = spec["additionalBlockDevices"]
            self.assertEqual({"name": "a", "sizeGiB": 1, "storage": {"type": "Local"}}, disk)
            self.assertIs(True, spec["configDrive"], "the disk is found by its tag")

    def test_a_volume_is_in_the_servers_zone_unless_told(self) -> None:
        disks = {"a": {"size": 1}, "b": {"size": 2, "availabilityZone": "1e3"}}
        for spec in at_least_one(self.both(additionalBlockDevices=disks)):
            zones = [
                disk["storage"]["volume"]["availabilityZone"]
                for disk in spec["additionalBlockDevices"]
            ]
            self.assertEqual([{"from": "Machine"}, {"from": "Name", "name": "1e3"}], zones)

    def test_a_config_drive_if_asked_for(self) -> None:
        for wanted in (True, False):
            for spec in at_least_one(self.both(machineConfigDrive=wanted)):
                self.assertIs(wanted, spec.get("configDrive", False))

    def test_a_server_group_by_id_or_name(self) -> None:
        for spec in at_least_one(self.both(serverGroupId=rendering.openstack_id(1))):
            self.assertEqual({"id": rendering.openstack_id(1)}, spec["serverGroup"])
        for spec in self.both(serverGroupName="1"):
            self.assertEqual({"filter": {"name": "1"}}, spec["serverGroup"])

    def test_sizes_and_metadata_may_come_as_text_and_as_numbers(self) -> None:
        for number, text in ((20, "20"), (10000000, "10000000")):
            disks = {"d": {"size": number}}, {"d": {"size": text}}
            for one, two in at_least_one(
                zip(
                    self.both(
                        machineRootVolume={"diskSize": number},
                        additionalBlockDevices=disks[0],
                        machineMetadata={"a": number, "b": True},
                    ),
                    self.both(
                        machineRootVolume={"diskSize": text},
                        additionalBlockDevices=disks[1],
                        machineMetadata={"a": text, "b": "true"},
                    ),
                    strict=True,
                )
            ):
                self.assertEqual(one, two)
                self.assertEqual(number, one["rootVolume"]["sizeGiB"])
        for spec in self.both(machineRootVolume={"diskSize": "0"}):
            self.assertNotIn("rootVolume", spec)

    def test_hints_keep_their_type(self) -> None:
        for spec in at_least_one(self.both(schedulerHints={"a": "1", "b": 1, "c": False})):
            self.assertEqual(
                [
                    {"name": "a", "value": {"type": "String", "string": "1"}},
                    {"name": "b", "value": {"type": "Number", "number": 1}},
                    {"name": "c", "value": {"type": "Bool", "bool": False}},
                ],
                spec["schedulerHintAdditionalProperties"],
            )

    def test_old_spellings_of_ports_are_the_same_machine(self) -> None:
        network = {"name": "a", "tags": ["b", "c"]}
        now: list[Values] = [
            {"network": {"filter": network}, "hostID": "h"},
            {"securityGroups": [{"filter": network}, {"id": rendering.openstack_id(1)}]},
            {
                "network": {"filter": network},
                "fixedIPs": [{"subnet": {"filter": network}, "ipAddress": "10.0.0.1"}],
            },
        ]
        then: list[Values] = [
            {"network": {"name": "a", "tags": "b,c"}, "hostId": "h"},
            {"securityGroupFilters": [network, {"id": rendering.openstack_id(1)}]},
            {
                "network": network,
                "fixedIPs": [{"subnet": network, "ipAddress": "10.0.0.1"}],
            },
        ]
        for version in VERSIONS:
            names = {
                str(
                    template_names(
                        rendered(
                            apiVersions__infrastructure=version,
                            nodeGroups__0__machineNetworking={"ports": ports},
                        )
                    )
                )
                for ports in (now, then)
            }
            self.assertEqual(1, len(names))
        for spec, port in zip(
            self.both(machineNetworking={"ports": then}), (now, now), strict=True
        ):
            self.assertEqual(port, spec["ports"])

    def test_no_group_is_not_the_same_as_nothing_said_of_groups(self) -> None:
        ports: list[Values] = [{}, {"securityGroups": []}]
        for spec in at_least_one(self.both(machineNetworking={"ports": ports})):
            self.assertEqual(ports, spec["ports"])

    def test_what_is_off_is_not_said(self) -> None:
        nothing = {
            "machineNetworking": {"ports": [], "trunk": False, "securityGroups": []},
            "schedulerHints": {},
            "machineTags": [],
            "machineConfigDrive": False,
            "additionalBlockDevices": {},
            "serverGroupName": "",
        }
        for spec in at_least_one(self.both(**nothing)):
            self.assertEqual({"flavor", "image"}, set(spec))


class TextTest(unittest.TestCase):
    def test_text_that_looks_like_something_else_arrives(self) -> None:
        for text in ("1e3", "0x10", "yes", "null", "~", "2026-11-21", "a: b", "0123", "Köln #1"):
            disk = {"size": 1, "volumeType": text, "availabilityZone": "1_000"}
            rule = {"name": text, "direction": "ingress", "description": text, "etherType": "IPv4"}
            port = {"description": text, "network": {"name": text}, "tags": [text]}
            machine = {
                "serverGroupName": text,
                "machineImage": text,
                "machineTags": [text],
                "schedulerHints": {text: text},
                "additionalBlockDevices": {"1e3": disk},
                "machineNetworking": {"ports": [port, {}], "securityGroups": [{"name": text}]},
            }
            objects = rendered(
                clusterTags=[text],
                clusterNetworking__allNodesSecurityGroupRules=[rule],
                clusterNetworking__routerFilter={"name": text, "tags": [text]},
                apiServer__loadBalancerFlavor=text,
                apiServer__loadBalancerAvailabilityZone=text,
                **{f"controlPlane__{key}": value for key, value in machine.items()},
            )
            with self.subTest(text=text):
                spec = rendering.only(objects, "OpenStackCluster")["spec"]
                self.assertEqual([text], spec["tags"])
                self.assertEqual(
                    [rule], spec["managedSecurityGroups"]["allNodesSecurityGroupRules"]
                )
                self.assertEqual({"filter": {"name": text, "tags": [text]}}, spec["router"])
                self.assertEqual(
                    (text, text),
                    tuple(
                        spec["apiServerLoadBalancer"][key] for key in ("flavor", "availabilityZone")
                    ),
                )
                found = machines(objects)["control-plane"]
                self.assertEqual({"filter": {"name": text}}, found["serverGroup"])
                self.assertEqual({"filter": {"name": text}}, found["image"])
                self.assertEqual([text], found["tags"])
                (hint,) = found["schedulerHintAdditionalProperties"]
                self.assertEqual((text, text), (hint["name"], hint["value"]["string"]))
                (device,) = found["additionalBlockDevices"]
                self.assertEqual("1e3", device["name"])
                self.assertEqual(text, device["storage"]["volume"]["type"])
                self.assertEqual([{"filter": {"name": text}}], found["securityGroups"])
                first, _ = found["ports"]
                self.assertEqual({**port, "network": {"filter": {"name": text}}}, first)
