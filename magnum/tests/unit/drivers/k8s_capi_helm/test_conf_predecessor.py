# SPDX-License-Identifier: Apache-2.0
"""A configuration file of magnum-capi-helm 1.4 is read as it was written.

``predecessor_options.json`` is that package's own listing of its options; a test that has the
package itself (``tox -e adoption``) tells whether it still is.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

from oslo_config import cfg
import testtools

from magnum.drivers.k8s_capi_helm import conf, labels
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one
from magnum.tests.unit.drivers.k8s_capi_helm.test_conf import config

#: Its page is in no chart any more (since 0.20 of the reference's): what the label asks for here is
#: another thing, with another default.
_REPLACED = "[capi_helm_cluster_labels] kube_dashboard_enabled"
LISTED: dict[str, dict[str, Any]] = json.loads(
    (pathlib.Path(__file__).parent / "predecessor_options.json").read_text()
)
del LISTED[_REPLACED]
#: A chart that comes with the package takes the place of one from the network.
OTHER_DEFAULTS = {
    "[capi_helm] helm_chart_repo": "",
    "[capi_helm] helm_chart_name": "",
    "[capi_helm] default_helm_chart_version": "",
}
#: Texts that an option of that name takes, where just any text is none.
EXAMPLES = {
    "app_cred_interface_type": "internal",
    "fixed_subnet_cidr": "10.7.0.0/24",
    "api_master_lb_allowed_cidrs": "192.0.2.0/24,198.51.100.0/24",
    "octavia_provider": "ovn",
    "octavia_lb_algorithm": "SOURCE_IP_PORT",
    "csi_cinder_fstype": "xfs",
    "capi_helm_chart_version": "1.2.3",
    "extra_network_names": "one two",
    "extra_network_name": "one",
}


class TestPredecessor(testtools.TestCase):
    def home(self, place: str) -> tuple[str, str]:
        """Group and name under which an option is read here: an old label is an alias."""
        group, name = place[1:].split("] ")
        if group == conf.LABELS_GROUP.name and name in labels.BY_NAME:
            return group, labels.BY_NAME[name].name
        return group, name

    def examples(self) -> list[tuple[str, str, Any]]:
        """Where an option is written, what, and what is read."""
        found = []
        for place, option in LISTED.items():
            name = self.home(place)[1]
            if option["choices"]:
                text = value = next(one for one in option["choices"] if one != option["default"])
            elif option["type"] == "BoolOpt":
                text, value = str(not option["default"]), not option["default"]
            elif option["type"] == "IntOpt":
                text, value = "7", 7
            elif option["type"] == "ListOpt":
                text, value = "one,two", ["one", "two"]
            else:
                text = value = EXAMPLES.get(name, "example")
            found += [(one, text, value) for one in (place, *option["old"])]
        return found

    def test_every_option_is_known(self) -> None:
        known = {
            f"[{group.name}] {name}"
            for group, options in conf.list_opts()
            for option in options
            for name in (option.name, *(old.name for old in option.deprecated_opts))
        }
        self.assertEqual(set(), set(LISTED) - known)

    def test_every_value_is_read(self) -> None:
        for place, text, value in at_least_one(self.examples()):
            with self.subTest(place=place):
                group, name = place[1:].split("] ")
                written = config(self, f"[{group}]\n{name} = {text}\n")
                listed = next(one for one, old in LISTED.items() if place in (one, *old["old"]))
                home, key = self.home(listed)
                self.assertEqual(value, written[home][key])

    def test_every_label_default_is_usable(self) -> None:
        """All of them at once, as a file that an operator has."""
        lines: dict[str, list[str]] = {}
        for place, text, _ in self.examples():
            if place in LISTED:
                group, name = place[1:].split("] ")
                lines.setdefault(group, []).append(f"{name} = {text}")
        text = "\n".join(f"[{group}]\n" + "\n".join(listed) for group, listed in lines.items())
        written = config(self, text)
        typed = labels.parse({}, conf.label_defaults(written))
        self.assertEqual("10.7.0.0/24", typed.fixed_subnet_cidr)
        self.assertEqual(7, typed.boot_volume_size)
        self.assertEqual(("one", "two"), tuple(typed.extra_network_names))

    def test_defaults_are_the_same(self) -> None:
        empty = config(self)
        for place, option in at_least_one(LISTED.items()):
            with self.subTest(place=place):
                group, name = self.home(place)
                wanted = OTHER_DEFAULTS.get(place, option["default"])
                if place == "[capi_helm] api_resources":
                    wanted = json.dumps(wanted)
                found = empty[group][name]
                # None, "" and, for a size, 0 are ways to say that there is no default.
                self.assertEqual(wanted or None, found or None)

    def test_types_take_what_they_took(self) -> None:
        numbers = [place for place, option in LISTED.items() if option["type"] == "IntOpt"]
        self.assertGreater(len(numbers), 5)
        for place in numbers:
            with self.subTest(place=place):
                group, name = self.home(place)
                written = config(self, f"[{group}]\n{name} = many\n")
                self.assertRaises(
                    cfg.ConfigFileValueError, lambda g=group, n=name, w=written: w[g][n]
                )
