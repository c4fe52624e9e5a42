# SPDX-License-Identifier: Apache-2.0
"""etcd, kube-apiserver and kube-controller-manager of the management cluster.

Authorization is RBAC; users come with tokens or certificates. Of kube-controller-manager run the
garbage collector and what belongs to namespaces and roles: Cluster API relies on them. There is no
scheduler and no node, so a Deployment in the management cluster stays an object.
"""

import os
from pathlib import Path

import yaml

from sandbox import processes
from sandbox.management import binaries
from sandbox.management.api import Api
from sandbox.management.pki import Pki, write_private
from sandbox.state import State

ADMIN = "admin"
#: The user that the driver is, with the rights of the driver's own RBAC manifest.
DRIVER = "magnum"
CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "clusterrole-aggregation-controller",
    "serviceaccount-controller",
)
START_TIMEOUT = 60.0
# For everything in Go but etcd and kube-apiserver, which have the most to do while a sandbox
# starts: collecting garbage twice as often saves a third of their memory.
MEMORY = {"GOGC": "50"}


def kubeconfig(state: State) -> Path:
    """Kubeconfig of the administrator."""
    return state.path("management", "kubeconfig")


def driver_kubeconfig(state: State) -> Path:
    """Kubeconfig of the user ``magnum``."""
    return state.path("management", "driver.kubeconfig")


def url(state: State) -> str:
    """Address of the API server."""
    return f"https://127.0.0.1:{state.port('kube-apiserver')}"


def start(state: State, place: Path) -> Api:
    """Start etcd and kube-apiserver, unless they run, and wait until requests are answered.

    :param place: directory of the programs.
    :raises SandboxError: one of them does not come up; the text ends with its log.
    """
    Pki(state).ensure()
    write_users(state)
    processes.start(state, "etcd", etcd(state, place))
    api = Api(kubeconfig(state))
    processes.start(
        state,
        "kube-apiserver",
        apiserver(state, place),
        ready=api.answers,
        timeout=START_TIMEOUT,
    )
    return api


def start_controller_manager(state: State, place: Path) -> None:
    """Start kube-controller-manager; its controllers begin on their own."""
    argv = controller_manager(state, place)
    processes.start(state, "kube-controller-manager", argv, env={**os.environ, **MEMORY})


def write_users(state: State) -> None:
    """Write the tokens that the API server knows, and each user's kubeconfig."""
    pki = Pki(state)
    groups = {ADMIN: "system:masters", DRIVER: ""}
    lines = [
        f"{pki.token(user)},{user},{user}" + (f',"{group}"' if group else "")
        for user, group in groups.items()
    ]
    write_private(pki.folder / "tokens.csv", "\n".join(lines).encode() + b"\n")
    files = {ADMIN: kubeconfig(state), DRIVER: driver_kubeconfig(state)}
    for user, path in files.items():
        text = yaml.safe_dump(user_kubeconfig(state, user, {"token": pki.token(user)}))
        if not path.exists() or path.read_text() != text:
            write_private(path, text.encode())


def user_kubeconfig(state: State, user: str, identity: dict[str, str]) -> dict[str, object]:
    """A kubeconfig of one user.

    :param identity: what Kubernetes calls AuthInfo: a token, or a certificate with its key.
    """
    cluster = {"server": url(state), "certificate-authority": str(Pki(state).authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "sandbox", "cluster": cluster}],
        "users": [{"name": user, "user": identity}],
        "contexts": [{"name": user, "context": {"cluster": "sandbox", "user": user}}],
        "current-context": user,
    }


def etcd(state: State, place: Path) -> list[str]:
    """Command line of etcd, which only the holder of our client certificate may use."""
    pki = Pki(state)
    clients = f"https://127.0.0.1:{state.port('etcd')}"
    peers = f"http://127.0.0.1:{state.port('etcd-peers')}"
    return [
        binaries.require(place, "etcd"),
        f"--data-dir={state.path('management', 'etcd')}",
        f"--listen-client-urls={clients}",
        f"--advertise-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        "--client-cert-auth",
        f"--trusted-ca-file={pki.authority}",
        f"--cert-file={pki.certificate}",
        f"--key-file={pki.key}",
        # A sandbox survives a killed process without it, and starts faster; not a power cut.
        "--unsafe-no-fsync",
    ]


def apiserver(state: State, place: Path) -> list[str]:
    """Command line of kube-apiserver."""
    pki = Pki(state)
    return [
        binaries.require(place, "kube-apiserver"),
        f"--etcd-servers=https://127.0.0.1:{state.port('etcd')}",
        f"--etcd-cafile={pki.authority}",
        f"--etcd-certfile={pki.certificate}",
        f"--etcd-keyfile={pki.key}",
        "--bind-address=127.0.0.1",
        f"--secure-port={state.port('kube-apiserver')}",
        f"--tls-cert-file={pki.certificate}",
        f"--tls-private-key-file={pki.key}",
        f"--cert-dir={pki.folder}",
        f"--client-ca-file={pki.client_authority}",
        f"--token-auth-file={pki.folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki.service_account_key}",
        f"--service-account-signing-key-file={pki.service_account_key}",
        "--service-cluster-ip-range=10.0.0.0/24",
        # No pod runs here, so there is nobody to hand a service account's token to.
        "--disable-admission-plugins=ServiceAccount",
        "--endpoint-reconciler-type=none",
        "--profiling=false",
    ]


def controller_manager(state: State, place: Path) -> list[str]:
    """Command line of kube-controller-manager."""
    pki = Pki(state)
    return [
        binaries.require(place, "kube-controller-manager"),
        f"--kubeconfig={kubeconfig(state)}",
        f"--service-account-private-key-file={pki.service_account_key}",
        "--bind-address=127.0.0.1",
        f"--secure-port={state.port('kube-controller-manager')}",
        f"--cert-dir={pki.folder}",
        f"--controllers={','.join(CONTROLLERS)}",
        "--leader-elect=false",
    ]
