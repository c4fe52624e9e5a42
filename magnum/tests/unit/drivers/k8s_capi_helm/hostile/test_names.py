# SPDX-License-Identifier: Apache-2.0
"""Names: of clusters, nodegroups, keys, images and networks, and fields of templates."""

from __future__ import annotations

import re
import types
from typing import Any
import urllib.parse

from hypothesis import strategies as st
import yaml

import magnum.conf
from magnum.drivers.k8s_capi_helm import conf, errors, helm_values, model
from magnum.drivers.k8s_capi_helm.kube.http import request as wire
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader
from magnum.drivers.k8s_capi_helm.magnum_objects.validation import (
    validate_cluster,
    validate_nodegroup,
)
from magnum.drivers.k8s_capi_helm.model import names, secrets
from magnum.tests.unit.drivers.k8s_capi_helm import hostile
from magnum.tests.unit.drivers.k8s_capi_helm import test_helm_values as values

CONF = magnum.conf.CONF
conf.register_opts(CONF)
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
#: Fields of the template, the cluster and its nodegroup that hold a text of somebody.
TEMPLATE = (
    *("image_id", "external_network_id", "dns_nameserver", "network_driver", "cluster_distro"),
    *("http_proxy", "https_proxy", "no_proxy", "insecure_registry", "volume_driver", "name"),
    *("docker_storage_driver", "server_type", "flavor_id", "keypair_id"),
)
CLUSTER = ("name", "keypair", "fixed_network", "fixed_subnet", "discovery_url", "flavor_id")
GROUP = ("name", "flavor_id", "image_id", "role")


def rows(**changes: Any) -> tuple[Any, list[Any]]:
    """A cluster and its nodegroups as Magnum has them; *changes* by "template.image_id" and so."""
    template = types.SimpleNamespace(
        uuid="t",
        name="kube",
        image_id="ubuntu",
        external_network_id="public",
        labels={},
        dns_nameserver="192.0.2.53",
        network_driver="calico",
        cluster_distro="ubuntu",
        http_proxy=None,
        https_proxy=None,
        no_proxy=None,
        insecure_registry=None,
        volume_driver=None,
        docker_storage_driver=None,
        apiserver_port=None,
        server_type="vm",
        flavor_id="7",
        keypair_id=None,
        registry_enabled=False,
        tls_disabled=False,
        coe="kubernetes",
        master_lb_enabled=True,
        floating_ip_enabled=True,
        docker_volume_size=None,
        public=False,
        fixed_network=None,
        fixed_subnet=None,
        driver=None,
        master_flavor_id="7",
        hidden=False,
        tags=None,
        project_id="p1",
    )
    cluster = types.SimpleNamespace(
        uuid="6a4c4a5b-95a4-4a35-8d2f-0b6c3f5f4a11",
        name="prod",
        stack_id="prod-abcdefghijkl",
        project_id="1",
        user_id="2",
        labels={},
        keypair=None,
        fixed_network=None,
        fixed_subnet=None,
        master_lb_enabled=True,
        floating_ip_enabled=True,
        docker_volume_size=None,
        flavor_id="7",
        discovery_url=None,
        cluster_template=template,
        status="CREATE_IN_PROGRESS",
        create_timeout=60,
        master_count=1,
        node_count=1,
        master_flavor_id="7",
    )
    group = types.SimpleNamespace(
        uuid="g",
        name="default-worker",
        flavor_id="7",
        image_id="ubuntu",
        node_count=1,
        labels={},
        role="worker",
        is_default=True,
        min_node_count=0,
        max_node_count=None,
        status="",
        docker_volume_size=None,
        node_labels={},
        node_taints=[],
        cluster_id=cluster.uuid,
        status_reason=None,
        created_at=None,
        updated_at=None,
    )
    master = types.SimpleNamespace(**{**vars(group), "name": "default-master", "role": "master"})
    owners = {"template": template, "cluster": cluster, "group": group}
    for key, value in changes.items():
        owner, _, field = key.partition("__")
        setattr(owners[owner], field, value)
    return cluster, [master, group]


class TestFields(hostile.HostileCase):
    """A field of a template, cluster or nodegroup has a hostile text."""

    @hostile.given(
        st.sampled_from(
            [f"template__{one}" for one in TEMPLATE]
            + [f"cluster__{one}" for one in CLUSTER]
            + [f"group__{one}" for one in GROUP]
        ),
        hostile.spoiled,
        examples=6,
    )
    def test_a_field_is_refused_or_arrives_whole(self, field: str, text: str) -> None:
        cluster, groups = rows(**{field: text})
        try:
            validate_cluster.validate_new_cluster(cluster, groups, CONF)
            for row in groups:
                validate_nodegroup.validate_new_nodegroup(row, cluster, CONF)
            request = reader.cluster_request(cluster, groups, CONF)
            facts = values.FACTS
            flavors = dict.fromkeys(("7", text), facts.flavors["7"])
            known = {text: model.Image("image-9", "1.34.4", "ubuntu")}
            facts = values.dataclasses.replace(facts, flavors=flavors, images=known)
            found = helm_values.render(request, facts)
        except errors.DriverError as error:
            self.assert_sentence(error)
            return
        self.assert_same_as_text(found)
        same, _ = rows()
        before = helm_values.render(reader.cluster_request(same, rows()[1], CONF), facts)
        keys = {path for path, _ in values.leaves(found)}
        strange = {one for one in keys if text and len(text) > 3 and text in one}
        if field != "group__name":
            self.assertEqual(
                set(), {one for one in strange if one not in set(dict(values.leaves(before)))}
            )
        # What the addon provider reads as templates.
        for leaf in {leaf for _, leaf in values.leaves(found["addons"]) if isinstance(leaf, str)}:
            for mark in ("{{", "{%", "{#"):
                self.assertNotIn(mark, leaf, (field, text))

    @hostile.given(hostile.spoiled, hostile.texts, hostile.texts, examples=4)
    def test_labels_and_taints_of_nodes(self, key: str, value: str, effect: str) -> None:
        for marks in (
            {"node_labels": {key: value}, "node_taints": []},
            {"node_labels": {}, "node_taints": [{"key": key, "value": value, "effect": effect}]},
            {"node_labels": {}, "node_taints": [{"key": key, "effect": "NoSchedule"}]},
        ):
            row = types.SimpleNamespace(name="more", role="worker", **marks)
            try:
                validate_nodegroup.validate_details(row)
            except errors.DriverError as error:
                self.assert_sentence(error, "more")
                continue
            self.assertRegex(key, r"\A[A-Za-z0-9._/-]{1,317}\Z")
            if len(row.node_taints) == 0 or "value" in row.node_taints[0]:
                self.assertRegex(value, r"\A[A-Za-z0-9._-]{0,63}\Z")


class TestComputedNames(hostile.HostileCase):
    """Names that the driver makes out of others'."""

    @hostile.given(hostile.spoiled, examples=4)
    def test_a_release(self, text: str) -> None:
        release = names.release(text)
        self.assertRegex(release, r"\A[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
        self.assertTrue(names.is_release(release))
        self.assertLessEqual(len(release), 43)

    @hostile.given(hostile.spoiled, examples=4)
    def test_a_nodegroup(self, text: str) -> None:
        if names.is_node_group(text):
            self.assertTrue(_NAME.fullmatch(text))
            self.assertLessEqual(len(text), 63)

    @hostile.given(hostile.spoiled, hostile.spoiled, examples=4)
    def test_a_path_keeps_its_parts(self, namespace: str, name: str) -> None:
        try:
            found = wire.path(names.SECRET, "v1", namespace, name)
        except UnicodeEncodeError:
            # Not to be had from JSON that is UTF-8; nothing was sent.
            return
        parts = found.split("/")
        self.assertEqual(["", "api", "v1", "namespaces"], parts[:4])
        self.assertEqual(7, len(parts), found)
        self.assertEqual([namespace, name], [urllib.parse.unquote(parts[i]) for i in (4, 6)])
        self.assertNotRegex(found, r"[\s?#]")

    @hostile.given(hostile.texts, hostile.texts, hostile.texts, examples=2)
    def test_the_credential_is_yaml_of_one_cloud(
        self, auth_url: str, secret: str, region: str
    ) -> None:
        text = secrets.clouds_yaml(
            model.ApplicationCredential("id", secret, "name"),
            auth_url=auth_url,
            region=region,
            interface="public",
            verify=True,
        )
        [cloud] = yaml.safe_load(text)["clouds"].values()
        self.assertEqual(secret, cloud["auth"]["application_credential_secret"])
        self.assertEqual(auth_url, cloud["auth"]["auth_url"])
