# SPDX-License-Identifier: Apache-2.0
"""What a machine makes of a kubeadm config: its files as they arrive, its commands as they run.

Cluster API writes the files into a cloud-config, which cloud-init takes for a Jinja template and
then for YAML. Commands go to a shell.
Source: https://github.com/kubernetes-sigs/cluster-api/tree/main/bootstrap/kubeadm/pkg/cloudinit
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
import subprocess
import textwrap
from typing import Any

import jinja2
import yaml

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object

HOSTNAME = "demo-md-0-abcde"
CONTAINERD = rendering.CLUSTER / "files" / "machine" / "containerd.sh"
PROXY = rendering.CLUSTER / "files" / "machine" / "proxy.sh"
#: What requires containerd, as kubeadm's own service may on Flatcar, must not be stopped by it.
RESTART = "systemctl restart --job-mode=ignore-dependencies containerd"


def rendered(scenario: str = "behind-a-proxy", /, **change: Any) -> list[Object]:
    """Objects of a scenario with other values; "__" stands for a dot."""
    values = rendering.scenarios(rendering.CLUSTER)[scenario].values
    dotted = {path.replace("__", "."): value for path, value in change.items()}
    return rendering.render(rendering.CLUSTER, rendering.changed(values, dotted))


def plain(**change: Any) -> list[Object]:
    """Objects of a cluster that asks for nothing but what is given."""
    nothing: dict[str, Any] = {"proxy": {}, "trustedCAs": {}, "additionalPackages": []}
    return rendered(**{**nothing, **change})


def control_plane(objects: list[Object]) -> Object:
    """kubeadmConfigSpec of the control plane."""
    found: Object = rendering.only(objects, "KubeadmControlPlane")["spec"]["kubeadmConfigSpec"]
    return found


def worker(objects: list[Object]) -> Object:
    """The same of the first node group."""
    template = rendering.by_kind(objects, "KubeadmConfigTemplate")[0]
    found: Object = template["spec"]["template"]["spec"]
    return found


def files(spec: Object, objects: Sequence[Object] = ()) -> dict[str, bytes]:
    """Files on a machine by path. Those of a Secret come from the objects that hold it.

    :raises ValueError: two files have one path.
    """
    secrets = {
        found["metadata"]["name"]: found.get("stringData", {})
        for found in rendering.by_kind(objects, "Secret")
    }
    written: dict[str, bytes] = {}
    for one in spec.get("files", []):
        if "contentFrom" in one:
            source = one["contentFrom"]["secret"]
            one = {**one, "content": secrets.get(source["name"], {}).get(source["key"], "")}
        found = yaml.safe_load(_filled_in(_cloud_config(one)))["write_files"][0]
        if found["path"] in written:
            raise ValueError(f"two files {found['path']}")
        text = found["content"]
        written[found["path"]] = (
            base64.b64decode(text) if found.get("encoding") == "base64" else text.encode()
        )
    return written


def _cloud_config(one: Object) -> str:
    lines = ["#cloud-config", "write_files:", f"-   path: {one['path']}"]
    lines += [f'    encoding: "{one["encoding"]}"'] if "encoding" in one else []
    lines += ["    content: |", textwrap.indent(one["content"], " " * 6, lambda line: True)]
    return "\n".join([*lines, "runcmd: []"])


def _filled_in(text: str) -> str:
    environment = jinja2.Environment(autoescape=False, trim_blocks=True)
    return environment.from_string(text).render(local_hostname=HOSTNAME)


def run(script: str, root: Path, *arguments: str) -> None:
    """Run a script of the chart with a directory in place of the machine's root.

    :raises subprocess.CalledProcessError: it failed.
    """
    for directory in ("/etc/", "/run/", "/usr/share/"):
        script = script.replace(directory, f"{root}{directory}")
    subprocess.run(["/bin/sh", "-s", *arguments], input=script, text=True, check=True)


def words(command: str) -> list[str]:
    """What a shell makes of a command: the words of its last program, which is not run."""
    quoted = command.rpartition("apt-get ")[2]
    said = subprocess.run(
        ["/bin/sh", "-c", f"printf '%s\\n' {quoted}"], capture_output=True, text=True, check=True
    )
    return said.stdout.splitlines()


def flags(arguments: Any) -> dict[str, str]:
    """Flags of either API version as a map."""
    if isinstance(arguments, list):
        return {one["name"]: one["value"] for one in arguments}
    return dict(arguments)


def both(objects: list[Object]) -> list[Object]:
    """The kubeadm configs of a control plane machine and of a worker."""
    return [control_plane(objects), worker(objects)]


def names(objects: list[Object]) -> dict[str, set[str]]:
    """Names of the bootstrap templates, and what of the control plane replaces its machines."""
    return {
        "workers": {
            found["metadata"]["name"]
            for found in rendering.by_kind(objects, "KubeadmConfigTemplate")
        },
        "control plane": {str(control_plane(objects))},
    }


def as_maps(spec: Any) -> Any:
    """A kubeadm config with its flags as maps, as v1beta1 has them."""
    if isinstance(spec, dict):
        return {
            key: flags(value) if key.endswith(("extraArgs", "ExtraArgs")) else as_maps(value)
            for key, value in spec.items()
        }
    return [as_maps(one) for one in spec] if isinstance(spec, list) else spec
