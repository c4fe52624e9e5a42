# SPDX-License-Identifier: Apache-2.0
"""Everything about a site that can become another, made another."""

from __future__ import annotations

from pathlib import Path
import shutil

from oslo_config import cfg

from magnum.drivers.k8s_capi_helm import conf, labels
from magnum.tests.functional.k8s_capi_helm.adoption import facts
from magnum.tests.functional.k8s_capi_helm.charts import rendering

#: Where things are that have to be found again: another value is another site.
PLACES = ("kubeconfig_file", "namespace_prefix", "chart_directory")
#: Values for options where just any text is none.
OTHERS = {
    "helm_chart_repo": "https://charts.example.org",
    "helm_chart_name": "another-chart",
    "default_helm_chart_version": "9.9.9",
    "csi_cinder_default_volume_type": "brand-new",
    "csi_cinder_allowed_topologies": "topology.cinder.csi.openstack.org/zone=az-2",
    "helm_timeout": "90",
    "controller_leases": "elsewhere/controllers",
    "minimum_flavor_ram": "1024",
    "minimum_flavor_vcpus": "1",
    # A label that may not differ from its example beside the other examples.
    "octavia_provider": "ovn",
    "octavia_lb_algorithm": "SOURCE_IP_PORT",
    "min_node_count": "1",
    "max_node_count": "9",
}


def options() -> dict[str, dict[str, str]]:
    """Every option of the driver with another value than its default."""
    found: dict[str, dict[str, str]] = {
        "cinder": {"default_boot_volume_size": "77", "default_boot_volume_type": "brand-new"}
    }
    for group, listed in conf.list_opts():
        found[group.name] = {
            option.name: other(option) for option in listed if option.name not in PLACES
        }
    return found


def other(option: cfg.Opt) -> str:
    """A text that an option takes and that is not its default."""
    if option.name in OTHERS:
        return OTHERS[option.name]
    if isinstance(option, cfg.BoolOpt):
        return str(not option.default)
    choices = [one for one in getattr(option.type, "choices", None) or () if one != option.default]
    if choices and choices[0]:
        return str(choices[0])
    if option.name in labels.BY_NAME:
        return str(labels.BY_NAME[option.name].example)
    if isinstance(option, cfg.IntOpt | cfg.FloatOpt):
        return str((option.default or 0) + 7)
    return "{}" if option.default == "{}" else "other"


def cloud() -> None:
    """Let the cloud have other things behind the same names, and other names."""
    found = facts.read()
    found["images"]["ubuntu-kube"] = {
        "id": "00000000-aaaa-4bbb-8ccc-000000000000",
        "kube_version": "1.35.1",
        "os_distro": "ubuntu",
    }
    for flavor in found["flavors"].values():
        flavor.update(id=f"new-{flavor['id']}", ram=flavor["ram"] * 2, vcpus=flavor["vcpus"] * 2)
    # The site's labels name one of before, and a new nodegroup asks for that.
    found["volume_types"] = ["brand-new", *found["volume_types"]]
    found["external_network"]["id"] = "00000000-dddd-4eee-8fff-000000000000"
    facts.write(found)


def charts(directory: Path, *, changed: bool) -> Path:
    """Charts as a package of the driver has them.

    :param changed: those of a later package, with which every machine and the Cluster would be
        others, and one more object there.
    """
    shutil.copytree(rendering.CHARTS, directory, symlinks=True)
    if changed:
        chart = directory / "openstack-cluster"
        metadata = (chart / "Chart.yaml").read_text()
        own, _, rest = metadata.partition("\nversion: ")
        (chart / "Chart.yaml").write_text(f"{own}\nversion: 9.9.8\n{rest.partition(chr(10))[2]}")
        for script in (chart / "files" / "machine").iterdir():
            script.write_text(f"{script.read_text()}# later\n")
        (chart / "templates" / "later.yaml").write_text(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-later\n"
        )
        cluster = chart / "templates" / "cluster" / "cluster.yaml"
        cluster.write_text(cluster.read_text().replace("\nspec:\n", "\nspec:\n  paused: true\n", 1))
    return directory
