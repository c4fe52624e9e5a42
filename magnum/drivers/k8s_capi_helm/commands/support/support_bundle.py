# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm support-bundle``: one archive about a cluster, without secrets."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
import contextlib
import dataclasses
import io
import json
import os
import pathlib
import tarfile
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.check import check, host
from magnum.drivers.k8s_capi_helm.commands.lookup.clusters import (
    add_cluster_argument,
    find_own_cluster,
)
from magnum.drivers.k8s_capi_helm.commands.output.installation import InstallationCheck
from magnum.drivers.k8s_capi_helm.commands.output.lister import (
    ExitStatus,
    operator_text,
    OperatorLister,
    Rows,
)
from magnum.drivers.k8s_capi_helm.commands.output.secret_mask import SecretMask
from magnum.drivers.k8s_capi_helm.commands.support import bundle_files
from magnum.drivers.k8s_capi_helm.commands.support.bundle_files import BundleSource
from magnum.drivers.k8s_capi_helm.model.management_cluster import release_of
from magnum.drivers.k8s_capi_helm.reconcile.context.reconciliation import Reconciliation

COLUMNS = ("File", "Bytes", "Content")
_README = """\
Support bundle of cluster {cluster}, made on {time} (UTC).

Data of Secrets is not in it. Passwords, tokens and keys are replaced by *** wherever they were
recognised: {known}. Names, addresses, labels and ids of the project are
in it as they are. Read it before you pass it on.

{files}
"""


@dataclasses.dataclass(frozen=True, slots=True)
class BundledFile:
    """A file of the archive.

    :ivar content: what it is, or why it is not there.
    :ivar text: None where it could not be made.
    """

    name: str
    content: str
    text: str | None


class SupportBundle(OperatorLister):
    """Write everything about one cluster into an archive, without secrets.

    Exit status 0: the archive is complete, 1: something could not be read, and the archive says
    what, 3: there is no archive. Nothing else is changed.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which cluster, and where to."""
        parser = super().get_parser(prog_name)
        add_cluster_argument(parser)
        parser.add_argument(
            "--output",
            metavar="FILE",
            help="The archive, which must not exist yet; by default 'support-RELEASE-TIME.tar.gz' "
            "in the current directory.",
        )
        parser.add_argument(
            "--conductor-log",
            action="append",
            default=[],
            metavar="FILE",
            help="A log of magnum-conductor: its lines about the cluster are included. May be "
            "repeated.",
        )
        return parser

    def rows(self, run: Reconciliation, arguments: argparse.Namespace) -> Rows:
        """The archive, and the files in it."""
        cluster = find_own_cluster(arguments.cluster)
        run = run.of_cluster(cluster.stack_id)
        source = BundleSource(run, cluster)
        mask, is_known = _mask(source)
        logs = [
            _masked(
                f"logs/{number}-{os.path.basename(path)}",
                "lines of a log",
                bundle_files.log_lines(path, source),
                mask,
            )
            for number, path in enumerate(arguments.conductor_log, 1)
        ]
        files = [*_files(source, mask), _checks(run, self.program.installation_checks, mask), *logs]
        path = pathlib.Path(arguments.output or _default_name(source))
        written = [_readme(source, files, is_known=is_known), *files]
        _write(path, written, int(run.now.timestamp()))
        status = ExitStatus.OK if is_known and all(map(_is_made, files)) else ExitStatus.WARNING
        rows = [(file.name, len((file.text or "").encode()), file.content) for file in written]
        return COLUMNS, [(str(path), path.stat().st_size, "the archive"), *rows], status


def _mask(source: BundleSource) -> tuple[SecretMask, bool]:
    """What masks secrets, and whether it knows those of the cluster."""
    known: list[str] = []
    try:
        known.extend(bundle_files.cluster_secrets(source))
    except errors.DriverError:
        return SecretMask(known), False
    return SecretMask(known), True


def _files(source: BundleSource, mask: SecretMask) -> Iterator[BundledFile]:
    """The files about the cluster and the host."""
    for name, (content, make) in bundle_files.FILES.items():
        if not source.cluster.stack_id and name not in bundle_files.WITHOUT_RELEASE:
            yield BundledFile(name, "the cluster has no release", None)
            continue
        try:
            made = make(source)
        except errors.DriverError as error:
            text = mask.text(operator_text(error))
            yield BundledFile(name, f"{content}: not read. {text}", None)
        else:
            yield _masked(name, content, made, mask)


def _checks(
    run: Reconciliation, installation_checks: Sequence[InstallationCheck], mask: SecretMask
) -> BundledFile:
    """What ``check`` finds."""
    found = [
        *(("installation", one) for one in host.check_installation(run, installation_checks)),
        *check.results(run, check.CHECKS),
    ]
    lines = (f"{name} {result.status.name} {result.text}\n" for name, result in found)
    return _masked("host/check.txt", "the output of 'check'", "".join(lines), mask)


def _masked(name: str, content: str, made: Any, mask: SecretMask) -> BundledFile:
    if isinstance(made, str):
        return BundledFile(name, content, mask.text(made))
    text = json.dumps(mask.json(made), indent=1, sort_keys=True, default=str)
    return BundledFile(name, content, f"{text}\n")


def _is_made(file: BundledFile) -> bool:
    return file.text is not None


def _readme(source: BundleSource, files: Sequence[BundledFile], *, is_known: bool) -> BundledFile:
    known = "by their names, their form and, those in the cluster's Secrets, by their values"
    if not is_known:
        known = "by their names and their form; the cluster's Secrets could not be read"
    text = _README.format(
        cluster=source.cluster.uuid,
        time=f"{source.run.now:%Y-%m-%d %H:%M:%S}",
        known=known,
        files="\n".join(f"{file.name}: {file.content}" for file in files),
    )
    return BundledFile("README.txt", "what is in the archive", text)


def _default_name(source: BundleSource) -> str:
    subject = release_of(source.cluster.stack_id) or source.cluster.uuid
    return f"support-{subject}-{source.run.now:%Y%m%dT%H%M%SZ}.tar.gz"


def _write(path: pathlib.Path, files: Sequence[BundledFile], time: int) -> None:
    """Write the archive, readable by its owner only; what is there already stays.

    :raises errors.InvalidRequest: it cannot be written there.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise errors.InvalidRequest(
            f"The archive cannot be written. '{path}': {error.strerror}. Name another file with "
            "--output."
        ) from None
    top = path.name.partition(".")[0]
    try:
        with os.fdopen(descriptor, "wb") as raw, tarfile.open(fileobj=raw, mode="w:gz") as archive:
            for file in files:
                if file.text is not None:
                    content = file.text.encode()
                    member = tarfile.TarInfo(f"{top}/{file.name}")
                    member.size, member.mtime, member.mode = len(content), time, 0o600
                    archive.addfile(member, io.BytesIO(content))
    except OSError as error:
        with contextlib.suppress(OSError):
            path.unlink()
        raise errors.InvalidRequest(
            f"The archive cannot be written. '{path}': {error.strerror}. Name another file with "
            "--output."
        ) from None
