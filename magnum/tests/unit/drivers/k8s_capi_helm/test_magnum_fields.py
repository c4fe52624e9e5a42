# SPDX-License-Identifier: Apache-2.0
"""Every field of Magnum's objects is honoured, refused or harmless, and the table says which."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import jsonschema
from oslo_utils import uuidutils
import testtools

from magnum import objects
from magnum.drivers.k8s_capi_helm import errors, helm_values
from magnum.drivers.k8s_capi_helm.commands.explain import effects
from magnum.drivers.k8s_capi_helm.labels import ChangeTime
from magnum.drivers.k8s_capi_helm.magnum_objects import notices
from magnum.drivers.k8s_capi_helm.magnum_objects.rows import reader
from magnum.drivers.k8s_capi_helm.magnum_objects.validation import validate_cluster
from magnum.drivers.k8s_capi_helm.magnum_objects.validation.fields import Effect, FieldOwner, FIELDS
from magnum.drivers.k8s_capi_helm.model import CloudFacts, Flavor, Image, Json, names
from magnum.drivers.k8s_capi_helm.values.tree import chart_family
from magnum.tests.unit.drivers.k8s_capi_helm import driver_case, test_helm_values
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one
from magnum.tests.unit.drivers.k8s_capi_helm.test_magnum_objects import (
    cluster,
    config,
    group,
    template,
)

OBJECTS = {
    FieldOwner.TEMPLATE: objects.ClusterTemplate,
    FieldOwner.CLUSTER: objects.Cluster,
    FieldOwner.NODE_GROUP: objects.NodeGroup,
}
#: A value of each honoured field that asks for something else than the rows of test_magnum_objects
#: do.
EXAMPLES: dict[tuple[FieldOwner, str], Any] = {
    (FieldOwner.TEMPLATE, "server_type"): "bm",
    (FieldOwner.TEMPLATE, "external_network_id"): "other",
    (FieldOwner.TEMPLATE, "dns_nameserver"): "192.0.2.53",
    (FieldOwner.TEMPLATE, "network_driver"): "cilium",
    (FieldOwner.TEMPLATE, "apiserver_port"): 8443,
    (FieldOwner.TEMPLATE, "http_proxy"): "http://proxy.example.org:3128",
    (FieldOwner.TEMPLATE, "https_proxy"): "http://[2001:db8::1]:3128",
    (FieldOwner.TEMPLATE, "insecure_registry"): "registry.example.org:5000",
    (FieldOwner.CLUSTER, "labels"): {"auto_healing_enabled": "false"},
    (FieldOwner.CLUSTER, "keypair"): "other",
    (FieldOwner.CLUSTER, "fixed_network"): "net",
    (FieldOwner.CLUSTER, "fixed_subnet"): "subnet",
    (FieldOwner.CLUSTER, "master_lb_enabled"): False,
    (FieldOwner.CLUSTER, "floating_ip_enabled"): False,
    (FieldOwner.NODE_GROUP, "flavor_id"): "large",
    (FieldOwner.CLUSTER, "docker_volume_size"): 5,
    (FieldOwner.NODE_GROUP, "node_count"): 3,
    (FieldOwner.NODE_GROUP, "docker_volume_size"): 5,
    (FieldOwner.NODE_GROUP, "labels"): {"boot_volume_size": "5"},
    (FieldOwner.NODE_GROUP, "role"): "ingress",
    (FieldOwner.NODE_GROUP, "node_labels"): {"a": "b"},
    (FieldOwner.NODE_GROUP, "node_taints"): [{"key": "a", "effect": "NoSchedule"}],
}
#: Honoured fields that need another one beside them, or that move something else than values.
ELSEWHERE = {
    (FieldOwner.TEMPLATE, "image_id"): "the question to Glance",
    (FieldOwner.TEMPLATE, "cluster_distro"): "the image's distribution is compared with it",
    (FieldOwner.TEMPLATE, "no_proxy"): "TestValues",
    (FieldOwner.TEMPLATE, "labels"): "a cluster has a copy of them",
    (FieldOwner.CLUSTER, "create_timeout"): "TestWorld",
    (FieldOwner.NODE_GROUP, "image_id"): "tests of nodegroups",
    (FieldOwner.NODE_GROUP, "min_node_count"): "TestValues",
    (FieldOwner.NODE_GROUP, "max_node_count"): "TestValues",
}
#: Of these, an example that needs something beside it, and what that is.
MORE_EXAMPLES: dict[tuple[FieldOwner, str], Any] = {
    (FieldOwner.TEMPLATE, "image_id"): "other",
    (FieldOwner.TEMPLATE, "no_proxy"): ".example.org",
    (FieldOwner.NODE_GROUP, "image_id"): "older",
    (FieldOwner.NODE_GROUP, "min_node_count"): 3,
    (FieldOwner.NODE_GROUP, "max_node_count"): 6,
}
BESIDE: dict[tuple[FieldOwner, str], dict[str, Any]] = {
    (FieldOwner.TEMPLATE, "no_proxy"): {"https_proxy": "http://proxy.example.org:3128"},
    (FieldOwner.NODE_GROUP, "min_node_count"): {"max_node_count": 6},
    (FieldOwner.NODE_GROUP, "max_node_count"): {"min_node_count": 2},
}
#: Honoured fields that move no value of their own.
NO_VALUE = {
    (FieldOwner.TEMPLATE, "cluster_distro"),
    (FieldOwner.TEMPLATE, "labels"),
    (FieldOwner.CLUSTER, "labels"),
    (FieldOwner.CLUSTER, "create_timeout"),
    (FieldOwner.NODE_GROUP, "labels"),
}
#: What Glance has: the image of the rows of test_magnum_objects, and others.
IMAGES = {
    "ubuntu-kube": Image("2b8a4d0a-6d3c-4a7f-8d27-3f0f2f4a9b01", "1.34.4", "ubuntu"),
    "other": Image("2b8a4d0a-6d3c-4a7f-8d27-3f0f2f4a9b02", "1.34.5", "ubuntu"),
    "older": Image("2b8a4d0a-6d3c-4a7f-8d27-3f0f2f4a9b03", "1.34.3", "ubuntu"),
}
#: Values that are refused.
REFUSED: dict[tuple[FieldOwner, str], Any] = {
    (FieldOwner.TEMPLATE, "coe"): "swarm",
    (FieldOwner.TEMPLATE, "registry_enabled"): True,
    (FieldOwner.TEMPLATE, "tls_disabled"): True,
    (FieldOwner.TEMPLATE, "volume_driver"): "rexray",
}
HARMLESS: dict[tuple[FieldOwner, str], Any] = {
    (FieldOwner.TEMPLATE, "docker_storage_driver"): "devicemapper",
    (FieldOwner.CLUSTER, "discovery_url"): "https://evil.example.org",
}


def rows(place: FieldOwner | None = None, **changes: Any) -> tuple[Any, list[Any]]:
    """A cluster and its groups, with one of the objects changed."""
    changed = {place: changes}
    made = cluster(
        cluster_template=template(**changed.get(FieldOwner.TEMPLATE, {})),
        **changed.get(FieldOwner.CLUSTER, {}),
    )
    workers = group(**changed.get(FieldOwner.NODE_GROUP, {}))
    return made, [group("default-master", role="master"), workers]


def pair(place: FieldOwner, name: str) -> tuple[Json, Json]:
    """The values without and with another value of an honoured field, of all nodegroups alike."""
    beside = BESIDE.get((place, name), {})
    before = rows(place, **beside)
    after = rows(place, **beside, **{name: {**EXAMPLES, **MORE_EXAMPLES}[place, name]})
    if place is FieldOwner.NODE_GROUP and name != "role":
        setattr(after[1][0], name, getattr(after[1][1], name))
    for made, _ in (before, after) if name in ("min_node_count", "max_node_count") else ():
        made.labels = {"auto_scaling_enabled": "true"}
    return rendered(*before), rendered(*after)


def rendered(made: Any, groups: list[Any], **options: Any) -> Json:
    request = reader.cluster_request(made, groups, config(**options))
    image = IMAGES[request.image]
    facts = CloudFacts(
        image_id=image.id,
        kubernetes_version=image.kubernetes_version,
        images=IMAGES,
        os_distro="ubuntu",
        flavors={one: Flavor(one, one, 2, 4096, 20) for one in ("small", "large")},
        auth_url="http://k/v3",
        external_network_id=_id(request.external_network),
        fixed_network_id=_id(request.fixed_network),
        fixed_subnet_id=_id(request.fixed_subnet),
    )
    return helm_values.render(request, facts)


def _id(name: str | None) -> str | None:
    """Neutron's id of what has a name; an id is its own."""
    if name is None or uuidutils.is_uuid_like(name):
        return name
    return test_helm_values.network_id(name)


class TestTable(testtools.TestCase):
    def test_every_field_of_magnum_is_in_it_once(self) -> None:
        for place, kind in OBJECTS.items():
            listed = [one.name for one in FIELDS if one.owner is place]
            own = set(kind.fields) - {"created_at", "updated_at"}
            self.assertEqual(sorted(own), sorted(listed), place)

    def test_every_row_has_its_case(self) -> None:
        cases = {
            Effect.HONOURED: {**EXAMPLES, **ELSEWHERE},
            Effect.REFUSED: REFUSED,
            Effect.HARMLESS: HARMLESS,
        }
        for effect, known in cases.items():
            listed = {(one.owner, one.name) for one in FIELDS if one.effect is effect}
            self.assertEqual(listed, set(known), effect)
        self.assertEqual([], [one for one in FIELDS if not one.help.endswith(".")])


class TestEffects(testtools.TestCase):
    """What is on record of the fields; the charts' tests make it and add the objects."""

    def test_every_honoured_field_is_on_record_with_what_it_moves(self) -> None:
        honoured = {
            (str(one.owner), one.name) for one in FIELDS if one.effect is Effect.HONOURED
        } - {(str(owner), name) for owner, name in NO_VALUE}
        self.assertEqual(honoured, set(effects.field_effects()))
        for (owner, name), moved in at_least_one(effects.field_effects().items()):
            before, after = pair(FieldOwner(owner), name)
            changed = set(test_helm_values.leaves(before)) ^ set(test_helm_values.leaves(after))
            self.assertEqual(
                sorted({path.lstrip(".") for path, _ in changed}), list(moved.values), name
            )

    def test_what_is_honoured_says_when_it_can_change(self) -> None:
        for one in at_least_one(FIELDS):
            self.assertEqual(one.effect is Effect.HONOURED, one.change_time is not None, one)

    def test_what_the_objects_do_not_let_change_magnum_does_not_change(self) -> None:
        for one in at_least_one(FIELDS):
            moved = effects.field_effects().get((str(one.owner), one.name), effects.NONE)
            if effects.FIXED in effects.replaced_parts(moved.values):
                self.assertEqual(ChangeTime.NEVER, one.change_time, one.name)


class TestValues(testtools.TestCase):
    def test_honoured_fields_move_the_values(self) -> None:
        plain = rendered(*rows())
        for (place, name), value in EXAMPLES.items():
            self.assertNotEqual(plain, rendered(*rows(place, **{name: value})), name)

    def test_refused_fields_are_refused_by_name(self) -> None:
        for (place, name), value in REFUSED.items():
            made, groups = rows(place, **{name: value})
            error = self.assertRaises(
                errors.InvalidRequest, validate_cluster.validate_new_cluster, made, groups, config()
            )
            self.assertIn(name, str(error))

    def test_harmless_fields_move_nothing(self) -> None:
        plain = rendered(*rows())
        for (place, name), value in HARMLESS.items():
            made, groups = rows(place, **{name: value})
            self.assertIsNone(validate_cluster.validate_new_cluster(made, groups, config()))
            self.assertEqual(plain, rendered(made, groups), name)

    def test_what_goes_past_the_proxy(self) -> None:
        proxied = {"https_proxy": "http://p:3128", "no_proxy": ".example.org, 10.0.0.0/8"}
        self.assertEqual(
            {"https": "http://p:3128", "noProxy": [".example.org", "10.0.0.0/8"]},
            rendered(*rows(FieldOwner.TEMPLATE, **proxied))["proxy"],
        )

    def test_bounds_are_the_autoscalers(self) -> None:
        made, groups = rows(FieldOwner.NODE_GROUP, min_node_count=2, max_node_count=6)
        made.labels = {"auto_scaling_enabled": "true"}
        [entry] = rendered(made, groups)["nodeGroups"]
        self.assertEqual((2, 6), (entry["machineCountMin"], entry["machineCountMax"]))

    def test_an_insecure_registry_by_scheme(self) -> None:
        plain = {"url": "http://r:5000", "overridePath": False}
        unchecked = {"url": "https://r:5000", "skipVerify": True, "overridePath": False}
        for text, upstream, mirrors in (
            ("r:5000", "https://r:5000", [unchecked, plain]),
            ("http://r:5000/", "http://r:5000", [plain]),
            ("https://r:5000", "https://r:5000", [unchecked]),
        ):
            self.assertEqual(
                {"r:5000": {"upstream": upstream, "mirrors": mirrors}},
                rendered(*rows(FieldOwner.TEMPLATE, insecure_registry=text))["registryMirrors"],
            )

    def test_they_are_in_the_closed_schema_and_in_its_order(self) -> None:
        values = rendered(
            *rows(
                FieldOwner.TEMPLATE,
                external_network_id="1c2a8a7e-5d8a-4c0f-9a3b-5c1f1f0a8f77",
                apiserver_port=8443,
                http_proxy="http://p:3128",
                https_proxy="https://p:3128/",
                no_proxy=".example.org,192.0.2.0/24,2001:db8::/32",
                insecure_registry="http://10.0.0.5:5000",
                dns_nameserver="192.0.2.53",
            )
        )
        below = test_helm_values.defaults("openstack-cluster")
        whole = test_helm_values.laid_over(below, values)
        schema = jsonschema.Draft7Validator(test_helm_values.schema("openstack-cluster"))
        self.assertEqual([], [error.message for error in schema.iter_errors(whole)])
        self.assertEqual([], list(test_helm_values.misplaced(values, below)))

    def test_keypairs_can_be_switched_off(self) -> None:
        self.assertEqual("key1", rendered(*rows())["machineSSHKeyName"])
        self.assertNotIn("machineSSHKeyName", rendered(*rows(), ignore_keypairs=True))


class TestFamilies(testtools.TestCase):
    def refused(self, **changes: Any) -> str:
        values = rendered(*rows(FieldOwner.TEMPLATE, **changes))
        self.assertIsNone(chart_family.check_family(values, names.CHART_FAMILY))
        error = self.assertRaises(errors.InvalidRequest, chart_family.check_family, values, "")
        # What a cluster has already was no part of this request.
        self.assertIsNone(chart_family.check_family(values, "", json.loads(json.dumps(values))))
        return str(error)

    def test_what_a_foreign_chart_cannot_do(self) -> None:
        self.assertIn("http_proxy", self.refused(http_proxy="http://p:3128"))
        self.assertIn("apiserver_port", self.refused(apiserver_port=8443))

    def test_what_it_can_do(self) -> None:
        values = rendered(*rows(FieldOwner.TEMPLATE, insecure_registry="r:5000"))
        self.assertIsNone(chart_family.check_family(values, ""))


class TestNotices(testtools.TestCase):
    def told(self, live: Json | None, **changes: Any) -> str:
        made = cluster(cluster_template=template(**changes))
        return " ".join(notices.field_notices(made, config(), live))

    def test_what_a_cluster_keeps(self) -> None:
        live = {
            "addons": {"cni": {"type": "calico"}},
            "apiServer": {"port": 6443},
            "machineSSHKeyName": "key1",
        }
        self.assertEqual("", self.told(live))
        self.assertIn("keeps 'calico'", self.told(live, network_driver="cilium"))
        self.assertIn("8443, and the cluster keeps 6443", self.told(live, apiserver_port=8443))
        without = {**live, "machineSSHKeyName": None}
        self.assertIn("keypair 'key1' is not used", self.told(without))

    def test_nothing_is_said_of_what_is_not_known(self) -> None:
        self.assertEqual("", self.told(None, apiserver_port=8443))

    def test_storage_of_docker(self) -> None:
        self.assertEqual("", self.told({}, docker_storage_driver="overlay2"))
        self.assertIn("'devicemapper'", self.told({}, docker_storage_driver="devicemapper"))


class TestWorld(driver_case.DriverCase):
    """Through Magnum's conductor."""

    def values(self) -> Json:
        found: Json = self.helm.live(driver_case.NAMESPACE, driver_case.RELEASE).values
        return found

    def test_the_create_timeout_is_the_deadline(self) -> None:
        self.create()
        record = self.ports.leases.read(driver_case.NAMESPACE, driver_case.RELEASE)
        [operation] = record.operations
        self.assertEqual(3600, (operation.deadline - operation.started_at).total_seconds())

    def test_a_foreign_chart_is_asked_for_nothing_it_cannot_do(self) -> None:
        charts = self.ports.charts
        foreign = dataclasses.replace(charts.for_new_cluster(None), family="")
        self.ports = dataclasses.replace(self.ports, charts=Charts(foreign))
        self.template.http_proxy = "http://proxy:3128"
        self.template.save()
        made = self.create()
        self.assertEqual("CREATE_FAILED", made.status)
        self.assertIn("http_proxy", made.status_reason)
        self.assertEqual([], self.left())

    def test_an_upgrade_takes_proxy_and_registry_of_its_template(self) -> None:
        self.made()
        new = self._template(
            uuid="22222222-2222-4333-8444-555555555555",
            http_proxy="http://proxy:3128",
            insecure_registry="r:5000",
            dns_nameserver="192.0.2.53",
            apiserver_port=8443,
        )
        self.assertEqual("", self.upgrade(new))
        self.assertNotIn("proxy", self.values(), "it reaches nodegroups, too, so it waits")
        self.capi_converges()
        self.status_task()
        values = self.values()
        self.assertEqual({"http": "http://proxy:3128"}, values["proxy"])
        self.assertIn("r:5000", values["registryMirrors"])
        self.assertNotIn("port", values["apiServer"])
        self.health_task()
        self.assertIn("keeps 6443", self.cluster().health_status_reason["notice"])

    def test_an_upgrade_is_refused_for_what_is_new_in_its_template(self) -> None:
        self.made()
        new = self._template(uuid="22222222-2222-4333-8444-555555555555", registry_enabled=True)
        self.assertIn("'registry_enabled'", self.upgrade(new))
        self.assertEqual("CREATE_COMPLETE", self.cluster().status)

    def test_an_upgrade_keeps_the_distribution(self) -> None:
        self.made()
        self.cloud.distro = "flatcar"
        new = self._template(uuid="22222222-2222-4333-8444-555555555555", cluster_distro="flatcar")
        self.assertIn("The image has another distribution than the cluster", self.upgrade(new))
        self.assertEqual("ubuntu", self.values()["osDistro"])


class TestUpgrade(testtools.TestCase):
    def test_what_an_older_driver_let_pass_keeps_no_cluster_from_its_upgrades(self) -> None:
        old = {"registry_enabled": True, "http_proxy": "proxy:3128", "no_proxy": "a"}
        kind = {"driver": None}
        made, _ = rows(FieldOwner.TEMPLATE, **old)
        self.assertIsNone(validate_cluster.validate_upgrade(made, template(**old, **kind)))
        other = template(**{**old, "http_proxy": "proxy:3129"}, **kind)
        error = self.assertRaises(
            errors.InvalidRequest, validate_cluster.validate_upgrade, made, other
        )
        self.assertIn("proxy:3129", str(error))


class Charts:
    """A store with one chart."""

    def __init__(self, chart: Any) -> None:
        self.chart = chart

    def for_new_cluster(self, version: str | None, **place: Any) -> Any:
        return self.chart
