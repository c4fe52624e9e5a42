# SPDX-License-Identifier: Apache-2.0
"""The real cluster-api-janitor-openstack, from a checkout that ``$JANITOR`` names.

Nothing of it is part of this project, and without a checkout a sandbox has none. It has a service
account with the role of its own chart and no other right, and the environment of its own
Deployment. Releases up to 0.14 are a program in Python, which runs in an environment with its own
requirements (``tox -e janitor``); what comes after them is one in Go, which is built.
https://github.com/azimuth-cloud/cluster-api-janitor-openstack
"""

import os
from pathlib import Path
import signal
import subprocess
import urllib.error
import urllib.request

import yaml

from sandbox import processes, progress
from sandbox.management import binaries, gomodules, server
from sandbox.management.api import Api
from sandbox.management.connection import Document
from sandbox.management.pki import Pki, write_private
from sandbox.state import SandboxError, State

NAME = "janitor"
NAMESPACE = "janitor"
CHECKOUT, PYTHON = "JANITOR", "K8S_CAPI_HELM_JANITOR_PYTHON"
#: Release, and so the name of the objects of its chart.
RELEASE = "cluster-api-janitor-openstack"
#: What of its chart a cluster without nodes can use; the Deployment is read only.
APPLIED = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")
#: The real one waits a minute after an error; a sandbox is made for a short wait.
RETRY = {"CAPI_JANITOR_RETRY_DEFAULT_DELAY": "5"}
RENDER_TIMEOUT = 60.0
START_TIMEOUT = 120.0
# A proxy that the environment names has no way to our loopback.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def checkout() -> Path:
    """The checkout that ``$JANITOR`` names.

    :raises SandboxError: it names none; the text says what to set.
    """
    named = os.environ.get(CHECKOUT, "")
    if not named:
        raise SandboxError(f"${CHECKOUT} names no checkout of {RELEASE}")
    path = Path(named).resolve()
    if not (path / "chart" / "Chart.yaml").is_file():
        raise SandboxError(f"${CHECKOUT} is {path}, which is no checkout of {RELEASE}")
    return path


def start(state: State) -> None:
    """Start it, unless it runs, and wait until it watches the management cluster.

    :raises SandboxError: there is no checkout, it cannot be built, or it does not come up in time.
    """
    from sandbox.cloud.environment import without_proxy

    source, place = checkout(), binaries.build(state)
    objects = chart(source, place)
    api = Api(server.kubeconfig(state))
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    api.apply_all(one for one in objects if one["kind"] in APPLIED)
    kubeconfig = _write_kubeconfig(state, objects)
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


def stop(state: State) -> None:
    """End it; what it has put on objects stays there."""
    processes.stop(state, NAME)


def kill(state: State) -> None:
    """End it in the middle of whatever it does."""
    for pid in processes.members(state, NAME):
        os.kill(pid, signal.SIGKILL)
    processes.stop(state, NAME)


def chart(source: Path, place: Path) -> list[Document]:
    """The objects of its own chart, rendered by Helm as its operators have them.

    :raises SandboxError: Helm does not render it.
    """
    argv = [binaries.require(place, "helm"), "template", RELEASE, str(source / "chart")]
    done = subprocess.run(
        [*argv, f"--namespace={NAMESPACE}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=RENDER_TIMEOUT,
    )
    if done.returncode:
        raise SandboxError(f"helm cannot render {source / 'chart'}: {done.stderr.strip()}")
    found: list[Document] = [one for one in yaml.safe_load_all(done.stdout) if one]
    for one in found:
        if one["kind"] in ("ServiceAccount", "Deployment"):
            one["metadata"]["namespace"] = NAMESPACE
    return found


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
    if (source / "go.mod").is_file():
        return [str(_built(state, source)), f"--health-probe-bind-address={address}"]
    python = os.environ.get(PYTHON, "")
    if not os.access(python, os.X_OK):
        raise SandboxError(
            f"${PYTHON} is {python!r}: it has to be a Python with the requirements of {source}; "
            f"{CHECKOUT}={source} tox -e janitor creates one in .tox/janitor"
        )
    operator = ["--module", "capi_janitor.openstack.operator", "--all-namespaces"]
    return [python, "-m", "kopf", "run", *operator, f"--liveness=http://{address}/healthz"]


def healthy(state: State) -> bool:
    """Whether it says that it is ready."""
    url = f"http://127.0.0.1:{state.port(f'{NAME}-health')}/healthz"
    try:
        with _DIRECT.open(url, timeout=2.0) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _built(state: State, source: Path) -> Path:
    """Its program in Go; what Go has compiled before it takes from its cache."""
    gomodules.require_go()
    target = state.path("management", NAME)
    with progress.step(f"build {NAME}") as step:
        build = ["go", "build", "-trimpath", "-o", str(target), "./cmd"]
        gomodules.run(source, build, binaries.BUILD_TIMEOUT)
        step.size(target)
    return target


def _write_kubeconfig(state: State, objects: list[Document]) -> Path:
    """A kubeconfig with which it is its service account.

    By a certificate: its Kubernetes client takes a token only out of a pod's own directory.
    """
    (account,) = (one for one in objects if one["kind"] == "ServiceAccount")
    user = f"system:serviceaccount:{NAMESPACE}:{account['metadata']['name']}"
    certificate, key = Pki(state).client_certificate(user, NAME)
    identity = {"client-certificate": str(certificate), "client-key": str(key)}
    path = state.path("management", f"{NAME}.kubeconfig")
    config = server.user_kubeconfig(state, NAME, identity)
    write_private(path, yaml.safe_dump(config).encode())
    return path
