# SPDX-License-Identifier: Apache-2.0
"""The directory that caches charts: the operator's, or a temporary one of this process.

Magnum's own default of ``state_path`` is the directory of its Python package, which the user that
runs it can rarely write (``magnum/conf/paths.py``).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import pathlib
import pwd
import shutil
import stat
import tempfile

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors

LOG = logging.getLogger(__name__)


class ChartDirectory:
    """Where charts are written and read.

    :param path: the operator's directory; made when it is missing.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path

    def write_path(self) -> pathlib.Path:
        """The directory for charts that are fetched now.

        It is the configured one if this process can write it. Otherwise it is a temporary one,
        which is deleted when the process ends; the operator's log says so once.

        :raises errors.ChartNotFound: no directory at all can be written.
        """
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            reason = "" if os.access(self._path, os.W_OK | os.X_OK) else "Permission denied"
        except OSError as error:
            reason = error.strerror or str(error)
        return _temporary(self._path, reason, os.getpid()) if reason else self._path

    def read_paths(self) -> tuple[pathlib.Path, ...]:
        """Where charts may be found: the configured directory counts also if it is read-only."""
        found = [self._path]
        with contextlib.suppress(errors.ChartNotFound):
            found.append(self.write_path())
        return tuple(dict.fromkeys(found))


def write_error(path: pathlib.Path, error: OSError) -> errors.ChartNotFound:
    """The error for a chart that cannot be written; the log gets owner and mode of the directory.

    :param path: that could not be written.
    """
    return errors.ChartNotFound(
        "This Magnum conductor cannot store the chart of this cluster. Ask the operator to check "
        "the option [capi_helm] chart_directory.",
        f"{error.strerror or error}: {ownership(path)}",
    )


def ownership(path: pathlib.Path) -> str:
    """A path, and who may write the first directory on the way up that exists."""
    there = next((one for one in (path, *path.parents) if one.exists()), pathlib.Path("/"))
    found = there.stat()
    kind = "directory" if there.is_dir() else "file"
    where = f"{path}" if there == path else f"{path}, whose parent {there}"
    return (
        f"{where} is a {kind} of {_user(found.st_uid)} with mode "
        f"{stat.S_IMODE(found.st_mode):04o}; this process runs as {_user(os.geteuid())}"
    )


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # usual in a container
        return f"uid {number}"


# Each process has its own: one that is forked must not delete its parent's.
@functools.cache
def _temporary(configured: pathlib.Path, reason: str, pid: int) -> pathlib.Path:
    try:
        path = pathlib.Path(tempfile.mkdtemp(prefix="k8s-capi-helm-charts-"))
    except OSError as error:
        raise write_error(configured, error) from None
    atexit.register(_delete, path, pid)
    LOG.warning(
        "Charts cannot be cached in %s (option [capi_helm] chart_directory): %s. They are cached "
        "in %s until this process ends, and fetched again after a restart. Set the option to a "
        "directory that the user of magnum-conductor can write.",
        ownership(configured),
        reason,
        path,
    )
    return path


def _delete(path: pathlib.Path, pid: int) -> None:
    if os.getpid() == pid:
        shutil.rmtree(path, ignore_errors=True)
