# SPDX-License-Identifier: Apache-2.0
"""The directory that caches charts: the operator's, or a temporary one of this process.

Magnum's own default of ``state_path`` is the directory of its Python package, which the user that
runs it can rarely write (``magnum/conf/paths.py``).
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import pwd
import shutil
import stat
import tempfile

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors

LOG = logging.getLogger(__name__)

_PREFIX = "k8s-capi-helm-charts-"
_PROBE = ".probe-"
#: By process, as one that is forked has its own.
_made: dict[int, pathlib.Path] = {}


class ChartDirectory:
    """Where charts are written and read.

    :param path: the operator's directory; made when it is missing.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path

    def write_path(self) -> pathlib.Path:
        """The directory for charts that are fetched now.

        It is the configured one if this process can write it. Otherwise it is a temporary one,
        which a later process deletes when this one has ended; the operator's log says so once.

        :raises errors.ChartNotFound: no directory at all can be written.
        """
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            # What a security module, a quota or a read-only mount says is known by writing only.
            os.rmdir(tempfile.mkdtemp(prefix=_PROBE, dir=self._path))
        except OSError as error:
            return _temporary(self._path, error.strerror or str(error))
        return self._path

    def read_paths(self) -> tuple[pathlib.Path, ...]:
        """Where charts may be found; nothing is written to find out.

        The configured directory counts also if it is read-only.
        """
        temporary = _made.get(os.getpid())
        return (self._path,) if temporary is None else (self._path, temporary)


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


def _temporary(configured: pathlib.Path, reason: str) -> pathlib.Path:
    """The temporary directory of this process; made again where a cleaner has removed it."""
    known = _made.get(os.getpid())
    if known is not None and known.is_dir():
        return known
    try:
        _delete_abandoned()
        path = pathlib.Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    except OSError as error:
        raise write_error(configured, error) from None
    _made[os.getpid()] = path
    LOG.warning(
        "Charts cannot be cached in %s (option [capi_helm] chart_directory): %s. They are cached "
        "in %s until this process ends, and fetched again after a restart. Set the option to a "
        "directory that the user of magnum-conductor can write.",
        ownership(configured),
        reason,
        path,
    )
    return path


def _delete_abandoned() -> None:
    """Take away the directories of processes that have ended.

    :raises OSError: there is no directory for temporary files that can be written.

    A worker ends without a chance to do it itself (``os._exit`` in oslo.service and cotyledon).
    """
    for path in pathlib.Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        number = path.name.removeprefix(_PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            is_own = path.lstat().st_uid == os.geteuid()
            if is_own and not pathlib.Path(f"/proc/{number}").exists():
                shutil.rmtree(path, ignore_errors=True)
