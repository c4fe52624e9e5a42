# SPDX-License-Identifier: Apache-2.0
"""Options: names and meanings of magnum-capi-helm, and defaults of labels from one place."""

from __future__ import annotations

import pathlib

import fixtures
from oslo_config import cfg
import testtools
import yaml

from magnum.drivers.k8s_capi_helm import conf, errors, labels
from magnum.drivers.k8s_capi_helm.conf import settings
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

#: Options of magnum-capi-helm 1.4 and the type of their value.
KNOWN = {
    "kubeconfig_file": str,
    "namespace_prefix": str,
    "helm_chart_repo": str,
    "helm_chart_name": str,
    "default_helm_chart_version": str,
    "minimum_flavor_ram": int,
    "minimum_flavor_vcpus": int,
    "csi_cinder_default_volume_type": type(None),
    "csi_cinder_allowed_topologies": list,
    "app_cred_interface_type": str,
    "api_resources": str,
    "k8s_control_plane_resource_conditions": list,
}


def config(case: testtools.TestCase, text: str = "") -> cfg.ConfigOpts:
    """The options as a service has them that was started with this configuration file."""
    path = pathlib.Path(case.useFixture(fixtures.TempDir()).path) / "magnum.conf"
    path.write_text(text)
    found = cfg.ConfigOpts()
    found.register_opts([cfg.StrOpt("state_path", default="/state")])
    conf.register_opts(found)
    found([], default_config_files=[str(path)])
    return found


class TestOptions(testtools.TestCase):
    def test_known_options(self) -> None:
        group = config(self).capi_helm
        self.assertEqual(KNOWN, {name: type(getattr(group, name)) for name in KNOWN})
        self.assertEqual("magnum", group.namespace_prefix)
        self.assertEqual((2048, 2), (group.minimum_flavor_ram, group.minimum_flavor_vcpus))

    def test_the_settings_are_the_options_with_their_types(self) -> None:
        types = {
            cfg.BoolOpt: "bool",
            cfg.FloatOpt: "float",
            cfg.IntOpt: "int",
            cfg.ListOpt: "list[str]",
            cfg.StrOpt: "str",
        }
        [options] = [found for group, found in conf.list_opts() if str(group) == "capi_helm"]
        wanted = {
            one.name: types[type(one)] + (" | None" if one.default is None else "")
            for one in options
        }
        self.assertEqual(wanted, settings.CapiHelm.__annotations__)

    def test_the_bundled_chart_is_the_default(self) -> None:
        group = config(self).capi_helm
        chosen = (group.helm_chart_repo, group.helm_chart_name, group.default_helm_chart_version)
        self.assertEqual(("", "", ""), chosen)

    def test_charts_are_kept_below_magnums_state(self) -> None:
        self.assertEqual("/state/k8s_capi_helm/charts", config(self).capi_helm.chart_directory)

    def test_helm_ends_before_its_lease(self) -> None:
        group = config(self).capi_helm
        self.assertLess(group.helm_timeout, group.lease_duration)

    def test_the_drivers_role_may_read_the_leases_of_controllers(self) -> None:
        path = pathlib.Path(conf.__file__).parents[1] / "manifests" / "rbac.yaml"
        allowed = [
            name
            for document in yaml.safe_load_all(path.read_text())
            if document["metadata"]["name"].endswith("-everywhere")
            for rule in document.get("rules", ())
            if rule["resources"] == ["leases"]
            for name in rule.get("resourceNames", ())
        ]
        known = [lease.partition("/")[2] for lease in config(self).capi_helm.controller_leases]
        self.assertEqual(known, allowed)

    def test_registering_twice_does_no_harm(self) -> None:
        found = config(self)
        conf.register_opts(found)
        self.assertEqual("magnum", found.capi_helm.namespace_prefix)

    def test_the_other_package_is_named(self) -> None:
        found = cfg.ConfigOpts()
        found.register_opts([cfg.StrOpt("kubeconfig_file", help="theirs")], group="capi_helm")
        error = self.assertRaises(errors.DriverError, conf.register_opts, found)
        self.assertIn("magnum-capi-helm", error.detail)

    def test_every_option_has_full_sentences(self) -> None:
        for _, options in at_least_one(conf.list_opts()):
            for option in options:
                self.assertTrue((option.help or "").endswith("."), option.name)

    def test_times_have_a_least_value(self) -> None:
        found = config(self, "[capi_helm]\nmanagement_read_timeout = 0\n")
        self.assertRaises(
            cfg.ConfigFileValueError, getattr, found.capi_helm, "management_read_timeout"
        )


class TestLabelDefaults(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())

    def test_without_configuration_they_are_the_labels_own(self) -> None:
        texts = conf.label_defaults(config(self))
        self.assertEqual(labels.Labels(), labels.parse({}, texts))

    def test_every_label_has_an_option(self) -> None:
        for label in labels.REGISTRY:
            found = config(self, f"[capi_helm_cluster_labels]\n{label.name} = {label.example}\n")
            texts = conf.label_defaults(found)
            self.assertEqual(
                labels.parse({label.name: label.example}, {}), labels.parse({}, texts), label.name
            )

    def test_an_empty_line_is_no_default(self) -> None:
        empty = [label.name for label in labels.REGISTRY if label.label_type.option == "text"]
        lines = [f"{name} =" for name in empty if getattr(labels.Labels(), name) in (None, ())]
        found = config(self, "\n".join(["[capi_helm_cluster_labels]", *lines, ""]))
        self.assertEqual(labels.Labels(), labels.parse({}, conf.label_defaults(found)))

    def test_old_places_and_names(self) -> None:
        for line, name in (
            ("csi_cinder_fstype = xfs", "csi_cinder_fstype"),
            ("csi_cinder_reclaim_policy = delete", "csi_cinder_reclaim_policy"),
            ("etcd_volume_size = 7", "etcd_blockdevice_size"),
            ("etcd_volume_type = fast", "etcd_blockdevice_volume_type"),
        ):
            texts = conf.label_defaults(config(self, f"[capi_helm]\n{line}\n"))
            found = labels.parse({}, texts)
            self.assertNotEqual(getattr(labels.Labels(), name), getattr(found, name), name)
            self.assertIn(f'Use option "{name}"', self.log.output)

    def test_old_names_of_labels(self) -> None:
        text = "[capi_helm_cluster_labels]\netcd_volume_size = 7\nextra_network_name = san\n"
        found = labels.parse({}, conf.label_defaults(config(self, text)))
        self.assertEqual((7, ("san",)), (found.etcd_blockdevice_size, found.extra_network_names))

    def test_boot_volumes_fall_back_to_magnums_options(self) -> None:
        found = config(self, "[cinder]\ndefault_boot_volume_size = 30\n")
        found.register_opts(
            [cfg.IntOpt("default_boot_volume_size"), cfg.StrOpt("default_boot_volume_type")],
            group="cinder",
        )
        typed = labels.parse({}, conf.label_defaults(found))
        self.assertEqual((30, None), (typed.boot_volume_size, typed.boot_volume_type))

    def test_a_wrong_word_is_refused_by_the_file(self) -> None:
        found = config(self, "[capi_helm_cluster_labels]\ncsi_cinder_reclaim_policy = Recycle\n")
        self.assertRaises(cfg.ConfigFileValueError, conf.label_defaults, found)
