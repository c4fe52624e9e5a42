# SPDX-License-Identifier: Apache-2.0
"""A process in which eventlet has replaced threads, sockets and pipes, as in Magnum until 22.

``python under_eventlet.py at-once`` lets two threads run helm at once, and prints what happened as
JSON; with names of test modules it runs these.
"""

from __future__ import annotations

import eventlet

eventlet.monkey_patch()

import itertools  # noqa: E402
import json  # noqa: E402
import pathlib  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
import unittest  # noqa: E402

from magnum.drivers.k8s_capi_helm import model  # noqa: E402
from magnum.drivers.k8s_capi_helm.helm import HelmClient  # noqa: E402
from magnum.tests.unit.drivers.k8s_capi_helm.fakes import FakeKube  # noqa: E402

_HELM = """#!/bin/sh
if [ "$1" = version ]; then echo v3.21.4; exit 0; fi
cat > /dev/null
echo "begin $2" >> {directory}/marks
sleep 0.7
echo "end $2" >> {directory}/marks
"""


def at_once() -> dict[str, object]:
    """Two runs of helm, and how long nothing else ran meanwhile, in seconds."""
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        helm = place / "helm"
        helm.write_text(_HELM.format(directory=directory))
        helm.chmod(0o755)
        client = HelmClient(FakeKube(), executable=str(helm), timeout=20)
        client.version()
        chart = model.Chart(path=str(place), name="c", version="1")
        found: list[str] = []

        def run(name: str) -> None:
            try:
                client.check(f"namespace-{name}", name, chart, {"a": 1})
                found.append("ran")
            except BaseException as error:
                found.append(repr(error))

        threads = [threading.Thread(target=run, args=(name,)) for name in ("one", "two")]
        for thread in threads:
            thread.start()
        times = [time.monotonic()]
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.005)
            times.append(time.monotonic())
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        marks = (place / "marks").read_text().split() if (place / "marks").exists() else []
        return {"found": found, "order": marks[::2], "turns": len(times), "longest": max(gaps)}


if __name__ == "__main__":
    if sys.argv[1:] == ["at-once"]:
        sys.stdout.write(json.dumps(at_once()))
    else:
        unittest.main(module=None, argv=["", *sys.argv[1:]])
