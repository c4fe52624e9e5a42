# SPDX-License-Identifier: Apache-2.0
"""Run pyhelm3's command lines under supervision instead of by a shell.

pyhelm3 composes the arguments, feeds values on stdin and reads helm's JSON. Its own way of running
them is not used: it goes through a shell, has no time limit and leaves helm behind when its caller
dies. Of its client and models nothing is used either: they ask helm again for what the release's
Secret says, and their recovery of an interrupted installation is to uninstall it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import json
import os
import pathlib
import re
import shutil
import tempfile
from typing import NamedTuple
import urllib.parse

from oslo_log import log as logging
import pyhelm3.command

from magnum.drivers.k8s_capi_helm import deadline
from magnum.drivers.k8s_capi_helm.helm import failures
from magnum.drivers.k8s_capi_helm.helm.process import ProcessOutcome, ProcessResult
from magnum.drivers.k8s_capi_helm.helm.process import run as supervise
from magnum.drivers.k8s_capi_helm.metrics import record
from magnum.drivers.k8s_capi_helm.model import names

LOG = logging.getLogger(__name__)
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

# Variables by which an operator's shell would send helm to another cluster, namespace or store.
_MISLEADING = ("HELM_KUBE", "HELM_NAMESPACE", "HELM_DRIVER", "HELM_DEBUG", "HELM_MAX_HISTORY")
# Go collects garbage when the heap has grown by so many percent; 100 is Go's default. A run of helm
# is short: it takes a sixth less of the processor's time, and at most 16 MiB more of memory.
# https://go.dev/doc/gc-guide
_GARBAGE_COLLECTOR = ("GOGC", "400")
# The schema of the API server is fetched and parsed for a look at each object that takes half of a
# run's time. The chart's own schema is checked before it, and the server checks each object after.
# pyhelm3 0.4 has a parameter for it, which hands the flag to helm letter by letter.
_CHEAP = "--disable-openapi-validation"
# With this label on its Secrets a release is taken along by ``clusterctl move``: where a cluster
# arrives without it, nobody knows what was applied.
_MOVED_ALONG = ("--labels", f"{names.LABEL_MOVE}=")
#: Helm 4 lets the server apply, which refuses to change a field of another field manager, such as
#: the number of machines (an autoscaler, an operator's kubectl). Helm 3 overwrites it.
FORCE_CONFLICTS = "--force-conflicts"
#: Objects that are there become the release's, whosever they are; pyhelm3 0.4 has no parameter for
#: it.
TAKE_OWNERSHIP = "--take-ownership"
# What a repository is called in a run of helm that knows no other one.
_REPOSITORY = "own"
#: Helm ends by its own --timeout; the process gets this much longer to say so.
MARGIN = 15.0
# Seconds between asking helm to end and killing it.
_GRACE = 3.0
#: Seconds after Helm's own --timeout within which its process has ended in any case.
END_MARGIN = MARGIN + _GRACE


class HelmIdentity(NamedTuple):
    """The identity for the management cluster.

    :ivar path: of the kubeconfig, for ``KUBECONFIG``; None in a pod with a service account.
    :ivar context: of the kubeconfig, "" for its current one.
    """

    path: str | None
    context: str = ""


class HelmCli(pyhelm3.command.Command):  # type: ignore[misc]
    """One helm run after another for one caller.

    :param executable: a path, or a name to look up in ``PATH``.
    :param kubeconfig: the identity; None in a pod with a service account.
    :param timeout: seconds for one run, given to helm as its ``--timeout``.
    :param unpack: where pulled charts are unpacked.
    :param stop: asked all the while; once it says True, helm is killed.
    :param flags: of ``helm upgrade``, besides those of every run.
    """

    def __init__(
        self,
        executable: str,
        *,
        kubeconfig: HelmIdentity | None,
        timeout: float,
        unpack: pathlib.Path | None = None,
        stop: Callable[[], bool] = lambda: False,
        flags: Sequence[str] = (),
    ) -> None:
        super().__init__(
            default_timeout=f"{max(1, round(timeout))}s",
            executable=executable,
            unpack_directory=None if unpack is None else str(unpack),
        )
        self._program = executable
        self._environment = environment(os.environ, *(kubeconfig or (None,)))
        self._limit = deadline.seconds_left(timeout + END_MARGIN) - _GRACE
        self._stop = stop
        self._extra = (_CHEAP, *_MOVED_ALONG, *flags)

    async def run(self, command: Sequence[object], input: bytes | None = None) -> bytes:
        """Run helm and return what it wrote to stdout; pyhelm3 calls this for everything.

        It is not really asynchronous: it waits for nothing, and every caller has its own thread.

        :raises errors.HelmUnusable: helm cannot be started.
        :raises errors.HelmInterrupted: it ran out of time, or was killed.
        :raises errors.DriverError: what helm's words mean.
        """
        arguments = [str(part) for part in command]
        if arguments[0] == "upgrade":
            arguments += self._extra
        return self._supervised(arguments, check_readable(input) if input else b"")

    def _run_supervised(self, arguments: Sequence[str], stdin: bytes) -> bytes:
        LOG.debug("helm %s", failures.without_passwords(" ".join(arguments)))
        program = find_helm(self._program)
        if self._limit <= 0:
            expired = ProcessResult(
                ProcessOutcome.TIMED_OUT, 0, b"", b"not begun: whoever asked waits no longer"
            )
            return failures.output(arguments, expired)
        try:
            finished = supervise(
                [program, *arguments],
                stdin=stdin,
                env=self._environment,
                timeout=self._limit,
                grace=_GRACE,
                stop=self._stop,
            )
        except OSError as error:
            raise failures.helm_unusable(f"{program}: {error.strerror}") from None
        return failures.output(arguments, finished)

    def _supervised(self, arguments: Sequence[str], stdin: bytes) -> bytes:
        with record.helm_run(arguments[0]):
            return self._run_supervised(arguments, stdin)

    async def pull(
        self, chart_ref: str, *, repo: str | None = None, version: str | None = None
    ) -> pathlib.Path:
        """Fetch a chart; a login in the repository's URL does not get into helm's arguments.

        Everybody on the machine could read it there. ``helm repo add`` takes a password from stdin,
        and writes it to a file of its own. Without a home that it can write, helm calls a
        repository invalid, so it caches indexes beside the chart.

        :raises errors.DriverError: as :meth:`run`.
        """
        url = urllib.parse.urlsplit(repo or "")
        # Beside what is unpacked: what a killed process leaves there is swept.
        with tempfile.TemporaryDirectory(prefix="cache.", dir=self._unpack_directory) as place:
            self._environment.setdefault("HELM_CACHE_HOME", f"{place}/cache")
            if url.username is not None:
                self._log_in(url, url.username, place)
                chart_ref, repo = f"{_REPOSITORY}/{chart_ref}", None
            return pathlib.Path(await super().pull(chart_ref, repo=repo, version=version))

    def _log_in(self, url: urllib.parse.SplitResult, user: str, directory: str) -> None:
        self._environment |= {
            "HELM_REPOSITORY_CONFIG": f"{directory}/repositories.yaml",
            "HELM_REPOSITORY_CACHE": f"{directory}/cache",
        }
        url_without_user = url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()
        login = ["--username", urllib.parse.unquote(user), "--password-stdin"]
        password = urllib.parse.unquote(url.password or "").encode()
        self._supervised(["repo", "add", _REPOSITORY, url_without_user, *login], password)

    async def check(
        self, release: str, chart: str, values: Mapping[str, object], namespace: str
    ) -> None:
        """Render a chart and look at nothing of it: pyhelm3's ``template`` parses it, for seconds.

        :raises errors.DriverError: the chart does not take the values, or as :meth:`run`.
        """
        where = ("--namespace", namespace, "--is-upgrade", "--values", "-")
        await self.run(["template", release, chart, *where], json.dumps(values).encode())

    async def preview(
        self, release: str, chart: str, values: Mapping[str, object], namespace: str
    ) -> str:
        """The manifest of a release that is not made, as the management cluster would get it.

        :raises errors.DriverError: as :meth:`run`.
        """
        where = ("--namespace", namespace, "--output", "json", "--values", "-")
        what = ("--install", "--dry-run=server", *where)
        found = await self.run(["upgrade", release, chart, *what], json.dumps(values).encode())
        return str(json.loads(found[found.index(b"{") :])["manifest"])


def check_readable(values: bytes) -> bytes:
    """JSON as UTF-8 text that is the same as YAML, which helm takes it for.

    YAML's escapes know no pairs of surrogates, so a character beyond the basic plane that pyhelm3
    has written as JSON does would be refused. And what JSON may have in a text as it is, YAML may
    not: some characters end a line there, which becomes a space, and others are refused.
    Source: https://yaml.org/spec/1.1/#id868524 (printable characters and line breaks)
    """
    text = json.dumps(json.loads(values), ensure_ascii=False)
    return _NOT_IN_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()


def find_helm(executable: str) -> str:
    """The path of helm.

    :param executable: a path, or a name to look up in ``PATH``.
    :raises errors.HelmUnusable: there is none that may be executed.
    """
    program = shutil.which(executable)
    if program is None:
        search_path = os.environ.get("PATH", os.defpath)
        raise failures.helm_unusable(f"'{executable}' is not an executable in PATH: {search_path}")
    return program


def executable_identity(executable: str) -> tuple[object, ...]:
    """What tells one helm binary from another one that has taken its place.

    :raises errors.HelmUnusable: there is none that may be executed.
    """
    program = find_helm(executable)
    try:
        status = os.stat(program)
    except OSError as error:
        raise failures.helm_unusable(f"{program}: {error.strerror}") from None
    return program, status.st_ino, status.st_size, status.st_mtime_ns


def environment(
    variables: Mapping[str, str], kubeconfig: str | None, context: str = ""
) -> dict[str, str]:
    """The environment of helm: this process's own, without what would mislead helm.

    An operator's own ``GOGC`` stays.

    :param context: of the kubeconfig, "" for its current one.
    """
    kept_variables = {
        key: value for key, value in variables.items() if not key.startswith(_MISLEADING)
    }
    kept_variables.pop("KUBECONFIG", None)
    if kubeconfig is not None:
        kept_variables["KUBECONFIG"] = kubeconfig
    if context:
        kept_variables["HELM_KUBECONTEXT"] = context
    kept_variables.setdefault(*_GARBAGE_COLLECTOR)
    return kept_variables
