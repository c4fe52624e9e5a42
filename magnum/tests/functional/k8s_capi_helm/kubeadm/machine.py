# SPDX-License-Identifier: Apache-2.0
"""A directory in place of a machine: bootstrap data is written there, and its commands run.

Commands of the machine's system that would change this one are replaced by some that do nothing.
kubeadm is the real one: it validates its file, and then does what it is told as a dry run into
another directory.
https://kubernetes.io/docs/reference/setup-tools/kubeadm/kubeadm-init/
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
import json
import os
from pathlib import Path
import re
import shutil
import subprocess
import urllib.parse

import jinja2
import yaml

from magnum.tests.functional.k8s_capi_helm.kubeadm.bootstrap_data import BootstrapData

HOSTNAME = "demo-machine-abcde"
#: What cloud-init knows of a machine.
#: https://cloudinit.readthedocs.io/en/latest/explanation/instancedata.html
FACTS = {
    "v1": {"local_hostname": HOSTNAME},
    "ds": {"meta_data": {"name": HOSTNAME, "uuid": "00000000-0000-4000-8000-00000000000a"}},
}
TIMEOUT = 120.0
#: What is written when a machine is set up: a command that fails need not end the script.
#: https://cluster-api.sigs.k8s.io/developer/providers/contracts/bootstrap-config
SUCCESS = "run/cluster-api/bootstrap-success.complete"
#: Directories of the image; the last one is that of a scenario's own image.
FOLDERS = ("etc/containerd", "run/metadata", "tmp", "etc/house/patches")
#: Programs of the machine's system; kubectl would need the API server.
REPLACED = (
    *("apt-get", "kubectl", "modprobe", "mount", "systemctl", "umount", "update-ca-certificates"),
)
#: An absolute path to what belongs to the machine.
OWN_PATH = re.compile(r"(?<![\w.])/(?=(?:etc|opt|run|tmp|usr/share|var)/)")
CONTAINERD = 'version = 2\nimports = []\n[plugins."io.containerd.grpc.v1.cri".registry]\n'
#: Phases that a dry run leaves out: all look at the machine, and those of a join also make RSA
#: keys, for a ClusterConfiguration of kubeadm's own.
SKIPPED = {
    "init": "preflight",
    "join": "preflight,wait-control-plane,control-plane-prepare/certs,control-plane-prepare/"
    "kubeconfig",
}
#: Takes ``kubeadm init --config FILE`` apart: the file is validated as it is. The dry run has other
#: keys, if none are chosen: RSA keys take most of the time. It finds patches below the directory.
WRAPPER = """#!/bin/sh
set -e
verb=$1 file=$3
shift 3
{program} config validate --config "$file"
if ! grep -q '^encryptionAlgorithm:' "$file"; then
    sed -i 's/^kind: ClusterConfiguration$/&\\nencryptionAlgorithm: ECDSA-P256/' "$file"
fi
sed -i 's#^\\( *directory: \\)/#\\1{root}/#' "$file"
exec {program} "$verb" --config "$file" "$@" --dry-run --skip-phases={skipped}
"""


@dataclass(frozen=True)
class Outcome:
    """What became of a machine.

    :ivar is_set_up: whether kubeadm has come to its end.
    :ivar written: the directory into which kubeadm wrote what it would write.
    """

    returncode: int
    is_set_up: bool
    output: str
    written: Path

    def text(self, name: str) -> str:
        """One of the files that kubeadm wrote, like kube-apiserver.yaml."""
        return (self.written / name).read_text()


def set_up(made: BootstrapData, place: Path, kubeadm: str) -> Outcome:
    """Set a machine up.

    :param place: an empty directory.
    :param kubeadm: the real program.
    """
    root, programs, written = place / "root", place / "bin", place / "written"
    for folder in (*(root / name for name in FOLDERS), programs, written):
        folder.mkdir(parents=True)
    (root / "etc/containerd/config.toml").write_text(CONTAINERD)
    name = f"COREOS_OPENSTACK_HOSTNAME={HOSTNAME}.example.org\n"
    (root / "run/metadata/flatcar").write_text(name)
    for program in REPLACED:
        _write_program(programs / program, "#!/bin/sh\n")
    skipped = SKIPPED["init" if made.kind == "init" else "join"]
    _write_program(
        programs / "kubeadm", WRAPPER.format(program=kubeadm, skipped=skipped, root=root)
    )
    script = write_files(made, root)
    for path in [one for one in root.rglob("*.sh") if one.is_file()]:
        path.write_text(below(root, path.read_text()))
    keys = root / "etc/kubernetes/pki"
    if keys.exists():  # kubeadm looks for them where a dry run writes
        shutil.copytree(keys, written, dirs_exist_ok=True)
    done = subprocess.run(
        ["/bin/bash", "-e", "-c", below(root, script)],
        env={
            "PATH": f"{programs}:{os.environ['PATH']}",
            "KUBEADM_INIT_DRYRUN_DIR": str(written),
            "KUBEADM_JOIN_DRYRUN_DIR": str(written),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    is_set_up = (root / SUCCESS).exists()
    return Outcome(done.returncode, is_set_up, done.stdout, written)


def below(root: Path, script: str) -> str:
    """A script that works below a directory."""
    return OWN_PATH.sub(f"{root}/", script)


def with_facts(text: str) -> str:
    """A text with what cloud-init knows of the machine."""
    environment = jinja2.Environment(autoescape=False, trim_blocks=True)
    return environment.from_string(text).render(**FACTS, **FACTS["v1"])


def write_files(made: BootstrapData, root: Path) -> str:
    """Write the files of a machine below a directory, and return the script that runs then."""
    if made.format == "ignition":
        for one in json.loads(made.data)["storage"]["files"]:
            source = one["contents"].get("source", "data:,")
            _write(root, one["path"], _data(source), one.get("mode", 0o644))
        return (root / "etc/kubeadm.sh").read_text()
    found = yaml.safe_load(with_facts(made.data))
    for one in found["write_files"]:
        content = one["content"].encode()
        if one.get("encoding") == "base64":
            content = base64.b64decode(content)
        mode = one.get("permissions", "0644")
        _write(root, one["path"], content, int(mode, 8), add=one.get("append", False))
    return "\n".join([*found.get("bootcmd", []), *found["runcmd"]])


def _data(url: str) -> bytes:
    """The content of a data URL. https://www.rfc-editor.org/rfc/rfc2397"""
    kind, _, text = url.removeprefix("data:").partition(",")
    found = urllib.parse.unquote_to_bytes(text)
    return base64.b64decode(found) if kind.endswith(";base64") else found


def _write(root: Path, path: str, content: bytes, mode: int, *, add: bool = False) -> None:
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("ab" if add else "wb") as file:
        file.write(content)
    target.chmod(mode)


def _write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
