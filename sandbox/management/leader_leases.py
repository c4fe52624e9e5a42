# SPDX-License-Identifier: Apache-2.0
"""Simulates the leader election of the managers.

Outside of a pod none takes part in one: controller-runtime finds the namespace of its Lease only
there. So these Leases are renewed here, under the names and in the namespaces that clusterctl's
manifests give them, as long as the manager that a Lease is about says that it is ready, and was not
started to do nothing.
"""

import argparse
import datetime
import logging
from pathlib import Path
import time

from sandbox.management import controllers, server
from sandbox.management.api import Api
from sandbox.state import SandboxError, State

LOG = logging.getLogger(__name__)
#: Namespace and name of each manager's Lease.
LEASES = {
    "capi-core": ("capi-system", "controller-leader-election-capi"),
    "capi-bootstrap-kubeadm": (
        "capi-kubeadm-bootstrap-system",
        "kubeadm-bootstrap-manager-leader-election-capi",
    ),
    "capi-controlplane-kubeadm": (
        "capi-kubeadm-control-plane-system",
        "kubeadm-control-plane-manager-leader-election-capi",
    ),
    controllers.CAPO: ("capo-system", "controller-leader-election-capo"),
}
#: Seconds for which a Lease is good, and between two renewals: 15 and 2 in a pod.
DURATION, PERIOD = 15, 3.0


def open_namespaces(api: Api) -> None:
    """Make the namespaces in which the managers would run.

    :raises SandboxError: the API server refuses, or cannot be reached.
    """
    for namespace, _ in LEASES.values():
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})


def renew(state: State, api: Api, now: datetime.datetime) -> list[str]:
    """One round; returns the managers whose Leases were renewed.

    :raises SandboxError: the API server refuses, or cannot be reached.
    """
    alive = [
        name
        for name in LEASES
        if controllers.healthy(state, name) and not controllers.is_idle(state, name)
    ]
    for name in alive:
        namespace, lease = LEASES[name]
        api.apply(
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": lease, "namespace": namespace},
                "spec": {
                    "holderIdentity": name,
                    "leaseDurationSeconds": DURATION,
                    "renewTime": f"{now:%Y-%m-%dT%H:%M:%S.%fZ}",
                },
            }
        )
    return alive


def main() -> None:
    """Renew until a signal comes."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.management.leader_leases")
    parser.add_argument("--dir", type=Path, required=True, help="directory of the sandbox")
    state = State(parser.parse_args().dir)
    api = Api(server.kubeconfig(state))
    while True:
        try:
            open_namespaces(api)
            break
        except SandboxError as error:
            LOG.warning("There is no namespace for Leases yet: %s", error)
        time.sleep(PERIOD)
    while True:
        try:
            renew(state, api, datetime.datetime.now(datetime.UTC))
        except SandboxError as error:
            LOG.warning("Leases are not renewed now: %s", error)
        time.sleep(PERIOD)


if __name__ == "__main__":
    main()
