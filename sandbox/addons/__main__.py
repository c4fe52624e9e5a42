# SPDX-License-Identifier: Apache-2.0
"""``python -m sandbox.addons``: run the simulated addon provider until a signal."""

import argparse
import logging
import os
import sys
import time

import kopf

from sandbox.addons.objects import Objects
from sandbox.addons.operator import Operator, Options

LOG = logging.getLogger(__name__)
RESTART_SECONDS = 1.0


def main() -> None:
    """Read the options and run the operator on the cluster that ``$KUBECONFIG`` names."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.addons", description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="port of /healthz on loopback")
    parser.add_argument(
        "--install", type=float, default=Options.install, help="seconds that a Helm run takes"
    )
    parser.add_argument(
        "--retry",
        type=float,
        default=Options.retry,
        help="seconds between two checks of a waiting addon",
    )
    arguments = parser.parse_args()
    registry = kopf.OperatorRegistry()
    Operator(Objects(), Options(arguments.install, arguments.retry)).register(registry)
    kopf.configure(verbose=False)
    try:
        kopf.run(
            registry=registry,
            standalone=True,
            clusterwide=True,
            liveness_endpoint=f"http://127.0.0.1:{arguments.port}/healthz",
        )
    except Exception:
        # kopf gives up when the API server was away and comes back; a Deployment starts it again.
        LOG.exception("The addon provider ends and is started again.")
        time.sleep(RESTART_SECONDS)
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606


if __name__ == "__main__":
    main()
