# SPDX-License-Identifier: Apache-2.0
"""A process with metrics, as a conductor's worker has them: ``DIRECTORY PORT [eventlet] [fork]``.

It lives until its standard input ends or it is killed, and says in ``DIRECTORY/turns-PID`` how
often one of its other threads has had its turn. With ``eventlet`` all of these are in one native
thread; with ``fork`` a child that is forked after the start has metrics, too.
"""

from __future__ import annotations

import sys

if "eventlet" in sys.argv:
    import eventlet

    eventlet.monkey_patch()

import os
import pathlib
import time

from magnum.drivers.k8s_capi_helm.metrics import exposition, record
from magnum.drivers.k8s_capi_helm.model import clock


def live(directory: pathlib.Path, port: int) -> None:
    """Count turns, until whoever has started this process ends or removes the directory."""
    parent, turns = os.getppid(), 0
    exposition.start_exposition(str(directory), port, clock.utc_now)
    while os.getppid() == parent and directory.is_dir():
        turns += 1
        (directory / f"turns-{os.getpid()}").write_text(str(turns))
        time.sleep(0.02)


if __name__ == "__main__":
    place, first_port = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    record.api_request("management", 200)
    if "fork" in sys.argv:
        exposition.start_exposition(str(place), first_port, clock.utc_now)
        while not list(place.glob("*.prom")):
            time.sleep(0.02)
        if os.fork() == 0:
            record.api_request("management", 503)
            live(place, first_port)
            os._exit(0)
    live(place, first_port)
