# SPDX-License-Identifier: Apache-2.0
"""Runs the handlers of the real cluster-api-addon-provider, one for each line that it reads.

A script for a Python that has what the addon provider needs, with the provider's checkout in
``PYTHONPATH`` and an API server in ``KUBECONFIG``; it imports nothing of this project. Only the
program helm is replaced, by notes of what it was asked for.
"""

import asyncio
import contextlib
import json
import logging
from pathlib import Path
import sys
from types import SimpleNamespace

from capi_addons import operator
from easykube import Configuration
import kopf
from pydantic.json import pydantic_encoder
from pyhelm3 import errors, ReleaseRevisionStatus
import yaml


class Helm:
    """Stands for pyhelm3's Client: it remembers one release and notes what is done to it."""

    #: Status of the release before a request, None where there is none.
    status = None
    #: Chart and values of that.
    deployed = None
    #: Number of its newest revision.
    number = 0
    #: What helm was asked for: verb, and chart and values for an upgrade.
    notes: list = []

    def __init__(self, **_):
        self.release = self

    async def get_current_revision(self, name, *, namespace):
        if Helm.status is None:
            raise errors.ReleaseNotFoundError(1, b"", b"Error: release: not found")
        return _revision(self, ReleaseRevisionStatus(Helm.status))

    async def uninstall(self, **_):
        Helm.notes.append({"verb": "uninstall"})
        Helm.number = 0

    async def rollback(self, **_):
        Helm.notes.append({"verb": "rollback"})
        Helm.number += 1
        return _revision(self, ReleaseRevisionStatus.DEPLOYED)

    async def uninstall_release(self, name, **_):
        if Helm.status is None:
            raise errors.ReleaseNotFoundError(1, b"", b"Error: release: not found")
        await self.uninstall()

    @contextlib.asynccontextmanager
    async def pull_chart(self, name, *, repo, version):
        yield _chart(name, version, {"repo": repo, "name": name, "version": version})

    async def get_chart(self, directory):
        read = {path.name: _unescaped(path.read_text()) for path in Path(directory).glob("*/*")}
        named = yaml.safe_load(Path(directory, "Chart.yaml").read_text())
        return _chart(named["name"], named["version"], read)

    async def install_or_upgrade_release(self, name, chart, values=None, **_):
        done = {"chart": chart.content, "values": json.loads(json.dumps(values or {}))}
        Helm.notes.append({"verb": "upgrade", **done})
        if not isinstance(values, dict):
            raise errors.Error(1, b"", b"Error: failed to parse values: they are no map")
        Helm.number += 1
        return _revision(self, ReleaseRevisionStatus.DEPLOYED)


def _chart(name, version, content):
    async def crds():
        return []

    return SimpleNamespace(
        metadata=SimpleNamespace(name=name, version=version), content=content, crds=crds
    )


def _revision(helm, status):
    async def chart_metadata():
        return SimpleNamespace(**Helm.deployed["chart"])

    async def values():
        return Helm.deployed["values"]

    async def resources():
        return []

    return SimpleNamespace(
        release=helm,
        status=status,
        revision=Helm.number,
        notes=None,
        chart_metadata=chart_metadata,
        values=values,
        resources=resources,
    )


def _unescaped(text):
    """A file of the chart as Helm's templates write it."""
    for brace in ("{{-", "{{"):
        text = text.replace(f'{{{{ "{brace}" }}}}', brace)
    return yaml.safe_load(text)


async def answer(request):
    """What the addon provider does with a request: see ``addon_providers.Real``."""
    Helm.status, Helm.deployed = request.get("status"), request.get("deployed")
    Helm.number = request.get("number", 0)
    Helm.notes = []
    handler = getattr(operator, request["handler"])
    result = {"end": "done", "error": "", "message": ""}
    try:
        await handler(logger=logging.getLogger("addons"), **request["arguments"])
    except (kopf.TemporaryError, kopf.PermanentError) as error:
        result.update(end=type(error).__name__, message=str(error))
    except Exception as error:
        result.update(end="error", error=type(error).__name__, message=str(error))
    return {**result, "helm": Helm.notes}


async def main():
    """Answer questions until the input ends."""
    operator.ek_config = Configuration.from_environment(json_encoder=pydantic_encoder)
    operator.HelmClient = Helm
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        sys.stdout.write(json.dumps(await answer(json.loads(line)), default=str) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(main())
