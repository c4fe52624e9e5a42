# SPDX-License-Identifier: Apache-2.0
"""The real cluster-api-janitor-openstack, from a checkout that ``$JANITOR`` names.

Nothing of it is part of this project, and without a checkout a sandbox has none. It has a service
account with the role of its own chart and no other right, and the environment of its own
Deployment. Releases up to 0.14 are a program in Python, which runs in an environment with its own
requirements (``tox -e janitor``); what comes after them is one in Go, which is built. That one
reads Secrets through a cache, and 0.14.0-9 with the role of its own chart deletes nothing: it may
not list them. So it has that right besides, as the page about deletions tells an operator to grant
it.
https://github.com/azimuth-cloud/cluster-api-janitor-openstack
"""

import os
from pathlib import Path
import signal
import urllib.error
import urllib.request

from sandbox import processes, progress
from sandbox.management import binaries, gomodules
from sandbox.management.connection import Document
from sandbox.management.operator_checkout import OperatorCheckout
from sandbox.state import State

NAME = "janitor"
CHECKOUT = OperatorCheckout(
    release="cluster-api-janitor-openstack",
    namespace="janitor",
    variable="JANITOR",
    marker="chart/Chart.yaml",
    python_variable="K8S_CAPI_HELM_JANITOR_PYTHON",
    environment="janitor",
)
#: The real one waits a minute after an error; a sandbox is made for a short wait.
RETRY = {"CAPI_JANITOR_RETRY_DEFAULT_DELAY": "5"}
START_TIMEOUT = 120.0
# A proxy that the environment names has no way to our loopback.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def start(state: State) -> None:
    """Start it, unless it runs, and wait until it watches the management cluster.

    :raises SandboxError: there is no checkout, it cannot be built, or it does not come up in time.
    """
    from sandbox.cloud.environment import without_proxy

    source = CHECKOUT.source()
    objects = CHECKOUT.objects(binaries.build(state)) + granted(source)
    kubeconfig = CHECKOUT.apply(state, objects)
    with progress.step("janitor (real)"):
        processes.start(
            state,
            NAME,
            command(state, source),
            env={
                **os.environ,
                **environment(objects),
                **without_proxy(),
                **RETRY,
                "KUBECONFIG": str(kubeconfig),
                "PYTHONPATH": str(source),
            },
            ready=lambda: healthy(state),
            timeout=START_TIMEOUT,
        )


def granted(source: Path) -> list[Document]:
    """The right that its own chart lacks: what the page about deletions lets an operator create."""
    if not _is_go(source):
        return []
    name, group = f"{NAME}-secrets", "rbac.authorization.k8s.io"
    account = {"namespace": CHECKOUT.namespace, "name": CHECKOUT.release}
    head = {"apiVersion": f"{group}/v1", "metadata": {"name": name}}
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch"]}
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    return [
        {**head, "kind": "ClusterRole", "rules": [rule]},
        {
            **head,
            "kind": "ClusterRoleBinding",
            "subjects": [{"kind": "ServiceAccount", **account}],
            "roleRef": reference,
        },
    ]


def stop(state: State) -> None:
    """End it; what it has put on objects stays there."""
    processes.stop(state, NAME)


def kill(state: State) -> None:
    """End it in the middle of whatever it does."""
    for pid in processes.members(state, NAME):
        os.kill(pid, signal.SIGKILL)
    processes.stop(state, NAME)


def environment(objects: list[Document]) -> dict[str, str]:
    """The variables that its Deployment gives it."""
    deployment = next(one for one in objects if one["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {entry["name"]: str(entry["value"]) for entry in container.get("env") or ()}


def command(state: State, source: Path) -> list[str]:
    """Its command line, as in the image of its checkout, with the port of its health here.

    :raises SandboxError: there is no Python with its requirements, or Go does not build it.
    """
    address = f"127.0.0.1:{state.port(f'{NAME}-health')}"
    if _is_go(source):
        return [str(_built(state, source)), f"--health-probe-bind-address={address}"]
    return CHECKOUT.kopf("capi_janitor.openstack.operator", address)


def healthy(state: State) -> bool:
    """Whether it says that it is ready."""
    url = f"http://127.0.0.1:{state.port(f'{NAME}-health')}/healthz"
    try:
        with _DIRECT.open(url, timeout=2.0) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _is_go(source: Path) -> bool:
    return (source / "go.mod").is_file()


def _built(state: State, source: Path) -> Path:
    """Its program in Go; what Go has compiled before it takes from its cache."""
    gomodules.require_go()
    target = state.path("management", NAME)
    with progress.step(f"build {NAME}") as step:
        build = ["go", "build", "-trimpath", "-o", str(target), "./cmd"]
        gomodules.run(source, build, binaries.BUILD_TIMEOUT)
        step.size(target)
    return target
