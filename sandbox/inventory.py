# SPDX-License-Identifier: Apache-2.0
"""All resources of the tenant in every service and on the management cluster."""

from collections.abc import Callable, Iterable
import json
import subprocess
from typing import Any

from sandbox.cloud import seed
from sandbox.state import SandboxError, State

Inventory = dict[str, set[str]]

KUBECTL_TIMEOUT = 60
# What stays in a tenant's namespace on purpose: Kubernetes' own, and the driver's right to it.
STAYS = (
    "configmap/kube-root-ca.crt",
    "serviceaccount/default",
    "role.rbac.authorization.k8s.io/",
    "rolebinding.rbac.authorization.k8s.io/",
    "event/",
    "event.events.k8s.io/",
)


def inventory(state: State) -> Inventory:
    """Everything that a cluster of the demo tenant leaves traces in, by kind.

    Certificates lie in the service project, where Magnum puts them.

    :raises SandboxError: kubectl failed.
    """
    tenant = seed.connect(state, seed.TENANT)
    found = {kind: _names(ask(tenant)) for kind, ask in OPENSTACK.items()}
    if state.get("certificates") == "barbican":
        magnum = seed.connect(state, "admin", user="magnum", project="service")
        found["certificate secrets"] = _names(magnum.key_manager.secrets())
        found["certificate containers"] = _names(magnum.key_manager.containers())
    found["application credentials"] = _names(
        tenant.identity.application_credentials(user=tenant.current_user_id)
    )
    project = "".join(letter for letter in tenant.current_project_id if letter.isalnum())
    found["Kubernetes objects"] = kubernetes_objects(state, f"magnum-{project}")
    return found


def added(before: Inventory, now: Inventory) -> Inventory:
    """What is there now and was not before; kinds with nothing new are left out."""
    new = {kind: names - before.get(kind, set()) for kind, names in now.items()}
    return {kind: names for kind, names in new.items() if names}


def kubernetes_objects(state: State, namespace: str) -> set[str]:
    """``kind/name`` of all objects in a namespace of the management cluster, Secrets too."""
    kinds = _kubectl(state, "api-resources", "--verbs=list", "--namespaced", "-o", "name").split()
    text = _kubectl(state, "get", ",".join(kinds), "-n", namespace, "-o", "name")
    return {name for name in text.split() if not name.startswith(STAYS)}


OPENSTACK: dict[str, Callable[[Any], Iterable[Any]]] = {
    "clusters": lambda cloud: cloud.container_infrastructure_management.clusters(),
    "servers": lambda cloud: cloud.compute.servers(),
    "server groups": lambda cloud: cloud.compute.server_groups(),
    "networks": lambda cloud: cloud.network.networks(project_id=cloud.current_project_id),
    "subnets": lambda cloud: cloud.network.subnets(project_id=cloud.current_project_id),
    "routers": lambda cloud: cloud.network.routers(),
    "ports": lambda cloud: cloud.network.ports(),
    "security groups": lambda cloud: cloud.network.security_groups(),
    "floating IPs": lambda cloud: cloud.network.ips(),
    "load balancers": lambda cloud: cloud.load_balancer.load_balancers(),
    "listeners": lambda cloud: cloud.load_balancer.listeners(),
    "pools": lambda cloud: cloud.load_balancer.pools(),
    "volumes": lambda cloud: cloud.block_storage.volumes(),
    "volume snapshots": lambda cloud: cloud.block_storage.snapshots(),
}


def _names(items: Iterable[Any]) -> set[str]:
    return {f"{item.name or ''} {item.id or ''}".strip() for item in items}


def _kubectl(state: State, *arguments: str) -> str:
    program = f"{state.get('bin_dir')}/kubectl"
    kubeconfig = state.path("management", "kubeconfig")
    done = subprocess.run(
        [program, "--kubeconfig", str(kubeconfig), "--request-timeout=30s", *arguments],
        capture_output=True,
        text=True,
        timeout=KUBECTL_TIMEOUT,
        check=False,
    )
    if done.returncode != 0:
        raise SandboxError(f"kubectl {json.dumps(arguments)}: {done.stderr.strip()}")
    return done.stdout
