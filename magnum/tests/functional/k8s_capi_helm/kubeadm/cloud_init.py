# SPDX-License-Identifier: Apache-2.0
"""The real cloud-init reads bootstrap data: its Jinja, its schema, its modules that write files.

It is Debian's package, unpacked below the cache, with the system's Python.
https://cloudinit.readthedocs.io/en/latest/explanation/format.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import json
from pathlib import Path
import subprocess
from typing import Any

from sandbox import debian

PACKAGE = "cloud-init"
LIBRARIES = "usr/lib/python3/dist-packages"
PYTHON = "/usr/bin/python3"
READER = Path(__file__).with_name("cloud_init_reader.py")
TIMEOUT = 300.0


@dataclass(frozen=True)
class Reading:
    """What cloud-init makes of one text.

    :ivar problems: what its schema says, and what it warns of.
    :ivar script: of the commands that it runs.
    """

    problems: list[str]
    script: str


def read(texts: Sequence[str], facts: Mapping[str, Any], roots: Sequence[Path]) -> list[Reading]:
    """Let cloud-init read texts and write the files of each below a directory.

    :raises SandboxError: cloud-init cannot be had here.
    """
    place = debian.tree(PACKAGE, f"{LIBRARIES}/cloudinit/version.py", instead="without its tests")
    pairs = [[text, str(root)] for text, root in zip(texts, roots, strict=True)]
    done = subprocess.run(
        [PYTHON, READER],
        env={"PYTHONPATH": str(place / LIBRARIES)},
        input=json.dumps({"facts": facts, "texts": pairs}),
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Reading(**one) for one in json.loads(done.stdout)]
