# SPDX-License-Identifier: Apache-2.0
"""The release of a cluster: read it from its Secret, apply chart and values, uninstall it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
import contextlib
import json
import pathlib
import threading
from typing import Any, Protocol, TypeVar

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import deadline, errors
from magnum.drivers.k8s_capi_helm.helm import cli, failures, recovery, release_secret
from magnum.drivers.k8s_capi_helm.helm.cli import executable_identity, HelmCli
from magnum.drivers.k8s_capi_helm.helm.fair_queue import FairQueue
from magnum.drivers.k8s_capi_helm.helm.history import ReleaseHistory
from magnum.drivers.k8s_capi_helm.helm.versions import supported_version
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import Chart, Json, LiveRelease, names

LOG = logging.getLogger(__name__)

_T = TypeVar("_T")
_VERSION_TIMEOUT = 20.0
#: Runs of helm at once in a process.
RUNS = 4


class HeldLock(Protocol):
    """The lock of a release, as far as a run of Helm has to know it; ``lease.HeldLease`` is one."""

    def is_lost(self) -> bool:
        """Whether another conductor may have the lock by now."""


class HelmClient:
    """Helm for the releases of one management cluster; safe to share between threads.

    Nothing runs before the first call.

    :param executable: a path, or a name to look up in ``PATH``.
    :param timeout: seconds for one helm run; shorter than the lease of a release, so that a run has
        ended before somebody else can take the lock.
    :param runs: of helm at once; those that wait are run project by project.
    """

    def __init__(
        self,
        kube: KubeClient,
        *,
        executable: str = "helm",
        timeout: float,
        runs: int = RUNS,
    ) -> None:
        self._kube = kube
        self._history = ReleaseHistory(kube)
        self._executable = executable
        self._timeout = timeout
        self._turns = FairQueue(runs)
        self._guard = threading.Lock()
        self._known_version = ""
        self._known_binary: tuple[object, ...] = ()

    def live(self, namespace: str, release: str) -> LiveRelease | None:
        """The newest revision of a release, without a helm process; None when there is none.

        Its status is :data:`recovery.HALF_DONE`, and not deployed, as long as objects may have
        something of a revision that was interrupted; an interrupted installation is one until a
        run has come through.

        :raises errors.HelmRefused: its Secret is not readable.
        :raises errors.DriverError: the management cluster cannot be used.
        """
        return recovery.effective_release(self._history.revisions(namespace, release))

    def deployed_releases(self, namespace: str) -> dict[str, LiveRelease]:
        """Of all releases whose newest revision is deployed, what :meth:`live` says, by two lists.

        :raises errors.DriverError: the management cluster cannot be used.
        """
        return self._history.deployed_releases(namespace)

    def deployed_release(self, namespace: str, release: str) -> LiveRelease | None:
        """The newest revision that was applied as a whole, without a helm process; None without.

        :raises errors.HelmRefused: its Secret is not readable.
        :raises errors.DriverError: the management cluster cannot be used.
        """
        selector = {**release_secret.release_labels(release), **release_secret.DEPLOYED}
        secret = release_secret.newest_revision(self._kube.list(names.SECRET, namespace, selector))
        return None if secret is None else release_secret.decode(secret)

    def apply(
        self,
        namespace: str,
        release: str,
        chart: Chart,
        values: Json,
        *,
        held_lock: HeldLock | None = None,
        adopt: bool = False,
    ) -> LiveRelease:
        """Install or upgrade a release to exactly this chart and these values.

        Returns when the objects are written, not when the cluster is ready. What a run that was
        interrupted has left in them is put right last.

        :param held_lock: the lock under which this is done: once it is lost, helm is killed.
        :param adopt: whether objects that are there are made the release's, whosever they are.
        :raises errors.Busy: somebody else changes the release, or it is not its project's turn.
        :raises errors.HelmInterrupted: helm ended half-way; to be tried again.
        :raises errors.HelmRefused: the chart or the management cluster refuses.
        :raises errors.HelmUnusable: helm is missing or has a version that is not supported.
        :raises errors.DriverError: the management cluster cannot be used.
        """
        version, stop = self.version(), _stop(held_lock)
        newest = self._recover(namespace, release)
        previous_revision = 0 if newest is None else release_secret.revision(newest)
        by_server = newest is None or release_secret.is_server_side(newest)
        with self._turn(namespace, release, stop):
            force = by_server and not version.startswith("3.")
            command = self._command(stop=stop, flags=_flags(force=force, adopt=adopt))
            whole = {"namespace": namespace, "create_namespace": False, "reset_values": True}
            self._run(command.install_or_upgrade(release, chart.path, values, **whole))
        done = self._compare(namespace, release, previous_revision, values)
        recovery.repair_objects(self._kube, namespace, release, stop)
        return done

    def check(self, namespace: str, release: str, chart: Chart, values: Json) -> None:
        """Look whether a chart takes values; neither asks the management cluster nor writes to it.

        :raises errors.ValuesRefused: the chart's schema refuses them.
        :raises errors.DriverError: nobody can tell; without a management cluster charts may refuse
            to be rendered.
        """
        self.version()
        with self._turn(namespace):
            self._run(self._command().check(release, chart.path, values, namespace))

    def preview(
        self, namespace: str, release: str, chart: Chart, values: Json, *, adopt: bool = False
    ) -> list[Json]:
        """The objects of a release, were it installed or upgraded now; nothing is written.

        :param adopt: as of :meth:`apply`; without it, Helm refuses objects of others.
        :raises errors.ValuesRefused: the chart's schema refuses the values.
        :raises errors.DriverError: as for :meth:`apply`.
        """
        self.version()
        command = self._command(flags=_flags(force=False, adopt=adopt))
        with self._turn(namespace):
            text = self._run(command.preview(release, chart.path, values, namespace))
        return release_secret.documents(text)

    def uninstall(self, namespace: str, release: str, *, held_lock: HeldLock | None = None) -> None:
        """Take a release and its objects away; without a release there is nothing to do.

        Returns when deletion is under way, not when it is through.

        :param held_lock: the lock under which this is done: once it is lost, helm is killed.
        :raises errors.HelmInterrupted: helm ended half-way; to be tried again.
        :raises errors.HelmRefused: the management cluster refuses.
        :raises errors.HelmUnusable: helm is missing or has a version that is not supported.
        :raises errors.DriverError: the management cluster cannot be used.
        """
        if not self._history.exists(namespace, release):
            return
        self.version()
        stop = _stop(held_lock)
        try:
            with self._turn(namespace, release, stop):
                self._run(self._command(stop=stop).uninstall(release, namespace=namespace))
        except failures.ReleaseAbsent:
            LOG.debug("Release %s/%s: already uninstalled.", namespace, release)

    def pull(
        self, reference: str, *, repository: str | None, version: str | None, into: pathlib.Path
    ) -> pathlib.Path:
        """Fetch a chart and unpack it in a new directory below *into*.

        :param reference: the chart's name in *repository*, or an ``oci://`` reference.
        :returns: the new directory; the chart is a directory in it.
        :raises errors.ChartNotFound: it is not there.
        :raises errors.HelmInterrupted: the repository cannot be reached.
        :raises errors.HelmUnusable: helm is missing or has a version that is not supported.
        """
        self.version()
        try:
            # A chart is nobody's alone: those that are fetched have turns like a project.
            with self._turn(""):
                command = self._command(unpack=into)
                pulled = self._run(command.pull(reference, repo=repository, version=version))
        except errors.HelmInterrupted as error:
            raise errors.HelmInterrupted(
                "The repository of the chart does not answer. Send the request again; if this "
                "persists, ask the operator to check [capi_helm] helm_chart_repo.",
                error.detail,
            ) from None
        return pathlib.Path(pulled)

    def version(self) -> str:
        """Helm's version, such as ``3.21.4``; asked again when the binary is another one.

        :raises errors.HelmUnusable: it cannot be run, or its version is not supported.
        """
        binary = executable_identity(self._executable)
        with self._guard:
            if binary != self._known_binary or not self._known_version:
                command = self._command(timeout=_VERSION_TIMEOUT)
                self._known_version = supported_version(self._run(command.version()))
                self._known_binary = binary
            return self._known_version

    # ---------------------------------------------------------------------------------------------
    def _recover(self, namespace: str, release: str) -> Json | None:
        """The newest revision; one that a helm run began and did not end is marked.

        Whoever calls holds the release's lock, so that nobody is in the middle of that revision.
        It keeps its number: a helm that is late writes to its own revision, not to the next one.
        """
        newest = self._history.newest(namespace, release)
        if newest is None or recovery.is_marked(newest):
            return newest
        status = release_secret.decode(newest).status
        if not recovery.is_interrupted(status):
            return newest
        LOG.warning(
            "Release %s/%s: revision %d was partially applied (%s); its objects are kept.",
            namespace,
            release,
            release_secret.revision(newest),
            status,
        )
        return self._kube.replace(names.SECRET, recovery.with_mark(newest))

    def _compare(self, namespace: str, release: str, before: int, values: Json) -> LiveRelease:
        """The release after a run, if it is this run's."""
        newest = self._history.newest(namespace, release)
        after = None if newest is None else release_secret.decode(newest)
        if after is None or after.revision <= before:
            raise errors.HelmInterrupted(
                "The release of this cluster disappeared while it was applied. The change will be "
                "retried.",
                f"{namespace}/{release}: revision {before} before, "
                f"{after.revision if after else 'none'} after",
            )
        if after.revision != before + 1 or _plain(after.values) != _plain(values):
            raise errors.Busy(
                "Another change of this cluster's release came in between. The change will be "
                "retried.",
                f"{namespace}/{release}: revision {before} before, {after.revision} after",
            )
        return after

    @contextlib.contextmanager
    def _turn(
        self, namespace: str, release: str = "", stop: Callable[[], bool] = lambda: False
    ) -> Iterator[None]:
        """A turn of a project, for which one waits as long as for a run: one may be in the way."""
        with self._turns.acquire(namespace, wait=deadline.seconds_left(self._timeout), stop=stop):
            if stop():
                raise failures.lock_lost(namespace, release, "helm began")
            yield

    def _command(
        self,
        *,
        timeout: float | None = None,
        unpack: pathlib.Path | None = None,
        stop: Callable[[], bool] = lambda: False,
        flags: Sequence[str] = (),
    ) -> HelmCli:
        return HelmCli(
            self._executable,
            kubeconfig=cli.HelmIdentity(self._kube.kubeconfig_path, self._kube.context),
            timeout=self._timeout if timeout is None else timeout,
            unpack=unpack,
            stop=stop,
            flags=flags,
        )

    def _run(self, command: Coroutine[Any, Any, _T]) -> _T:
        """Run one of pyhelm3's coroutines to its end.

        They wait for :meth:`HelmCli.run` alone, which waits for nothing, so that they need no event
        loop. Threads that eventlet has made green could have one between them only.
        """
        try:
            command.send(None)
        except StopIteration as end:
            result: _T = end.value
            return result
        except ValueError:
            # pyhelm3 found something else than JSON in helm's output.
            raise errors.HelmInterrupted(
                "Helm's answer cannot be read. The command will be retried.",
                "helm wrote no JSON to stdout",
            ) from None
        command.close()
        raise RuntimeError("a coroutine of pyhelm3 waits for something else than helm")


def _flags(*, force: bool, adopt: bool) -> Sequence[str]:
    flags = ((cli.FORCE_CONFLICTS, force), (cli.TAKE_OWNERSHIP, adopt))
    return [flag for flag, is_set in flags if is_set]


def _plain(values: Json) -> Json:
    """Values as they compare: on its way through helm every number is a float."""
    plain: Json = json.loads(json.dumps(values), parse_int=float)
    return plain


def _stop(held_lock: HeldLock | None) -> Callable[[], bool]:
    """What a run of helm asks all the while: whether its lock is lost."""
    return held_lock.is_lost if held_lock is not None else lambda: False
