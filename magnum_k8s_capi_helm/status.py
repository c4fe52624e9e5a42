# SPDX-License-Identifier: Apache-2.0
"""Check an installation: ``magnum-k8s-capi-helm-status upgrade check``.

Its form, options and exit statuses (0 success, 1 warning, 2 failure, 255 error) are those of
``magnum-status upgrade check`` (https://docs.openstack.org/oslo.upgradecheck/latest/). It is run on
each host of magnum-api and magnum-conductor, with the Python and the files of Magnum there, and
sends no request to any service.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
import difflib
from importlib import metadata
import os
from pathlib import Path
import re
import shutil
import stat
import subprocess
import sys
from typing import Any

DISTRIBUTION = "magnum-k8s-capi-helm"
ENTRY_POINT = "k8s_capi_helm_v1"
GROUPS = ("capi_helm", "capi_helm_cluster_labels")
#: How the names of the groups of management clusters begin.
MANAGEMENT = "capi_helm_management_"
FAILURE = 2
HELM_TIMEOUT = 30
#: What of a cluster template makes up the type of its clusters.
_TYPE = ("server_type", "os", "coe")
#: How similar the name of a group must be to ours to be taken for a mistake (difflib's ratio).
_SIMILAR = 0.8

_NO_MAGNUM = """\
{python} does not find Magnum ({error}), and {here} is installed for it.
Install {name} with the Python that runs Magnum. The first line of its programs names it:
  head -1 "$(command -v magnum-conductor)"
"""


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments == ["--version"]:
        sys.stdout.write(f"{metadata.version(DISTRIBUTION)}\n")
        return 0
    try:
        from oslo_config import cfg
        from oslo_upgradecheck import upgradecheck

        import magnum.conf
    except ImportError as error:
        sys.stderr.write(missing_magnum(error))
        return FAILURE
    conf = magnum.conf.CONF
    checks = _commands(upgradecheck, conf)
    try:
        return int(upgradecheck.main(conf, "magnum", checks, arguments))
    except (cfg.Error, OSError, UnicodeDecodeError) as error:
        detail = unreadable_configuration(error, arguments)
        sys.stderr.write(f"The configuration cannot be read: {detail}\n")
        return FAILURE


def unreadable_configuration(error: Exception, arguments: Iterable[str]) -> str:
    """Which file of Magnum's configuration cannot be read, and why; without its contents.

    :param error: of oslo.config, or of the file system.
    :param arguments: of the program, some of which are paths.
    """
    from oslo_config import cfg

    if isinstance(error, cfg.ConfigFileParseError):  # its text has the line, perhaps a password
        number = re.search(r":(\d+), ", str(error))
        line = f"line {number[1]} of {error.config_file}" if number else error.config_file
        return f"{line} is neither a [group] nor an option with a value"
    if isinstance(error, UnicodeDecodeError):
        named = ", ".join(part for part in arguments if os.path.exists(part))
        return f"{named or 'a file'}: not in UTF-8, byte {error.start}"
    return str(error)


def missing_magnum(error: ImportError) -> str:
    """What a program prints that does not find Magnum."""
    here = Path(__file__).resolve().parent
    return _NO_MAGNUM.format(python=sys.executable, error=error, here=here, name=DISTRIBUTION)


def _commands(upgradecheck: Any, conf: Any) -> Any:
    """All checks, in the form of oslo.upgradecheck."""

    def check(function: Any) -> Any:
        def run(_: object) -> Any:
            faults: list[str] = []
            warnings: list[str] = []
            try:
                for is_fault, text in function(conf):
                    (faults if is_fault else warnings).append(text)
            except ImportError as error:
                faults.append(f"Not checked, because the driver cannot be loaded: {error}.")
            code = upgradecheck.Code.FAILURE if faults else upgradecheck.Code.WARNING
            if not faults and not warnings:
                code = upgradecheck.Code.SUCCESS
            return upgradecheck.Result(code, " ".join([*faults, *warnings]) or None)

        return run

    class Checks(upgradecheck.UpgradeCommands):  # type: ignore[misc]
        _upgrade_checks = tuple((title, check(function)) for title, function in CHECKS)

    return Checks()


#: Whether it is a failure, or else a warning, and what it is.
Finding = tuple[bool, str]


def check_requirements(_: object) -> Iterator[Finding]:
    """Every package that the driver needs is there in a version that it supports."""
    from packaging.requirements import Requirement

    for text in metadata.requires(DISTRIBUTION) or ():
        requirement = Requirement(text)
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            yield True, f"{requirement.name} is not installed; {requirement} is required."
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            yield True, f"{requirement.name} {version} is installed; {requirement} is required."


def check_entry_points(_: object) -> Iterator[Finding]:
    """Magnum finds this driver under its name, and no other one."""
    points = metadata.entry_points(group="magnum.drivers")
    owners = sorted({_owner(point) for point in points if point.name == ENTRY_POINT})
    if DISTRIBUTION not in owners:
        yield True, f"Entry point {ENTRY_POINT} is missing; install {DISTRIBUTION} again."
    for owner in owners:
        if owner != DISTRIBUTION:
            yield (
                True,
                f"Package {owner} has the entry point {ENTRY_POINT}, too, and Magnum loads one of "
                f"them by chance: pip uninstall {owner}.",
            )


def _owner(point: metadata.EntryPoint) -> str:
    return point.dist.metadata["Name"] if point.dist else ""


def check_driver(_: object) -> Iterator[Finding]:
    """The driver can be loaded, as magnum-api and magnum-conductor do when they start."""
    for point in metadata.entry_points(group="magnum.drivers", name=ENTRY_POINT):
        if _owner(point) != DISTRIBUTION:
            continue
        try:
            point.load()
        except Exception as error:
            detail = f"{type(error).__name__}: {error}"
            yield True, f"The driver cannot be loaded by {sys.executable}: {detail}."
            return
        import magnum.drivers.k8s_capi_helm as package
        from magnum_k8s_capi_helm import DIRECTORY

        loaded = Path(package.__file__).resolve().parent
        if loaded.parent != DIRECTORY and DIRECTORY.joinpath(loaded.name).is_dir():
            yield True, f"{loaded} is loaded instead of {DIRECTORY / loaded.name}; remove it."


def check_other_drivers(conf: Any) -> Iterator[Finding]:
    """Whose clusters are whose, where several drivers build clusters of the same type.

    A template without a driver is handled by the one that Magnum has loaded last of those that
    provide its type, which is a matter of the order of directories (``Driver.get_drivers``).
    """
    provided: dict[tuple[str, ...], list[str]] = {}
    for point in metadata.entry_points(group="magnum.drivers"):
        if point.name in conf.drivers.disabled_drivers:
            continue
        try:
            types = [tuple(one[key] for key in _TYPE) for one in point.load()().provides]
        except Exception as error:
            yield (
                True,
                f"Driver {point.name} of {_owner(point)} cannot be created: "
                f"{type(error).__name__}: {error}. Magnum creates all of them, so that requests "
                "about templates of any driver fail. Mend it, or add it to [drivers] "
                "disabled_drivers.",
            )
            continue
        for cluster_type in types:
            provided.setdefault(cluster_type, []).append(point.name)
    for cluster_type, names in provided.items():
        if len(names) > 1 and ENTRY_POINT in names:
            yield (
                False,
                f"Clusters of type ({', '.join(cluster_type)}) are built by {' and '.join(names)}; "
                f"templates without a driver use {names[-1]} on this host. Set the driver of each "
                "template; the page about other drivers in the installation guide says how.",
            )


def check_choice(conf: Any) -> Iterator[Finding]:
    """Magnum's own options let the driver be used."""
    if ENTRY_POINT in conf.drivers.disabled_drivers:
        yield True, f"[drivers] disabled_drivers has {ENTRY_POINT}; remove it there."
    chosen = conf.drivers.get("default_driver") if "default_driver" in conf.drivers else None
    names = {point.name for point in metadata.entry_points(group="magnum.drivers")}
    if chosen and chosen not in names:
        yield True, f"[drivers] default_driver is {chosen}, which is not installed."


def check_options(conf: Any) -> Iterator[Finding]:
    """Options of the driver in Magnum's files have names that it knows."""
    from oslo_config import cfg

    from magnum.drivers.k8s_capi_helm import conf as driver_options
    from magnum_k8s_capi_helm import list_opts

    driver_options.register_opts(conf)
    known, files = _known(list_opts()), _files(conf)
    if not files:
        yield (
            False,
            "No configuration file of Magnum was read: run this as the user of the service, or "
            "name the files of the service with --config-file.",
        )
    for path in files:
        sections: dict[str, dict[str, list[str]]] = {}
        try:
            cfg.ConfigParser(path, sections).parse()
        except (cfg.ConfigFileParseError, cfg.ConfigFilesNotFoundError, OSError) as error:
            yield True, f"{path} cannot be read: {type(error).__name__}."
            continue
        for section, options in sections.items():
            # oslo.config reads names of groups in lower case.
            group = section.lower()
            if group in GROUPS:
                yield from _unknown_options(path, section, options, known[group])
            elif group.startswith(MANAGEMENT):
                yield from _unknown_options(path, section, options, known[MANAGEMENT])
                name = group.removeprefix(MANAGEMENT)
                if name not in conf.capi_helm.management_clusters:
                    yield (
                        False,
                        f"{path} has a group [{section}], which nothing reads: add {name} to "
                        "[capi_helm] management_clusters, or remove the group.",
                    )
            elif meant := _meant(section, GROUPS, _SIMILAR):
                yield False, f"{path} has a group [{section}], which nothing reads: [{meant}]?"


def check_values(conf: Any) -> Iterator[Finding]:
    """Options of the driver have values that it takes, and that do not contradict each other."""
    from oslo_config import cfg

    from magnum.drivers.k8s_capi_helm import conf as options
    from magnum.drivers.k8s_capi_helm import errors
    from magnum.drivers.k8s_capi_helm.conf import management_clusters
    from magnum.drivers.k8s_capi_helm.reconcile.process import clients
    from magnum_k8s_capi_helm import list_opts

    options.register_opts(conf)
    is_readable = True
    for group, group_options in list_opts():
        for option in group_options:
            try:
                conf[str(group)][option.dest]
            except (cfg.Error, ValueError) as error:
                is_readable = False
                yield True, f"[{group}] {option.name}: {error}."
    try:
        if is_readable:
            clients.check_options(conf.capi_helm)
            management_clusters.read_management_clusters(conf)
    except errors.DriverError as error:
        yield True, error.detail or str(error)
    try:
        clients.ca_bundle(conf)
    except errors.DriverError as error:
        yield False, f"{error.detail}. magnum-conductor has to read it; magnum-api does not."


def _known(groups: Iterable[tuple[Any, Iterable[Any]]]) -> dict[str, set[str]]:
    """What options may be called in a file, by group; oslo.config takes a hyphen for an underscore.

    Names of before are known as well, in the group where they were.
    """
    found: dict[str, set[str]] = {name: set() for name in (*GROUPS, MANAGEMENT)}
    for group, options in groups:
        # The options of each management cluster are listed once, under a name of none.
        listed = MANAGEMENT if str(group).startswith(MANAGEMENT) else str(group)
        for option in options:
            found[listed].add(option.dest)
            for old in option.deprecated_opts:
                name = (old.name or option.dest).replace("-", "_")
                found.setdefault(old.group or listed, set()).add(name)
    return found


def _files(conf: Any) -> list[str]:
    """The configuration files that were read.

    A service also reads files of its own name, such as magnum-conductor.conf; ``--config-file``
    names them here.
    """
    found = [str(path) for path in conf.config_file or ()]
    for directory in conf.config_dir or ():
        found += [str(path) for path in sorted(Path(directory).glob("*.conf"))]
    return found


def _unknown_options(
    path: str, section: str, options: Iterable[str], known: set[str]
) -> Iterator[Finding]:
    for name in options:
        if name.replace("-", "_") not in known:
            meant = _meant(name.replace("-", "_"), known, 0.6)
            advice = f"{meant}?" if meant else "remove it."
            yield False, f"{path} has [{section}] {name}, which nothing reads: {advice}"


def _meant(name: str, known: Iterable[str], similar: float) -> str:
    """The known name that is most similar; "" where none is."""
    folded = name.lower().replace("-", "_")
    return next(iter(difflib.get_close_matches(folded, list(known), 1, similar)), "")


def check_helm(_: object) -> Iterator[Finding]:
    """Helm is in the path, in a version that the driver supports."""
    from magnum.drivers.k8s_capi_helm import errors
    from magnum.drivers.k8s_capi_helm.helm import versions

    program = shutil.which("helm")
    detail = f"'helm' is not an executable in PATH: {os.environ.get('PATH', '')}"
    try:
        if program:
            done = subprocess.run(
                [program, "version", "--template={{.Version}}"],
                capture_output=True,
                check=True,
                text=True,
                errors="replace",
                timeout=HELM_TIMEOUT,
            )
            versions.supported_version(done.stdout)
            return
    except subprocess.CalledProcessError as error:
        said = " ".join(error.stderr.split())[:200]
        detail = f"{program} version ends with status {error.returncode}: {said}"
    except (OSError, subprocess.TimeoutExpired) as error:
        detail = f"{program} cannot be run: {error}"
    except errors.DriverError as error:
        detail = f"{program} has an unsupported version: {error.detail}"
    yield (
        False,
        f"{detail}. magnum-conductor needs Helm 3.17 or newer, or 4.1.1 or newer, in its PATH; "
        "magnum-api does not.",
    )


def check_kubeconfig(conf: Any) -> Iterator[Finding]:
    """Each kubeconfig names a cluster and a user, and only its owner reads it."""
    from magnum.drivers.k8s_capi_helm import conf as options
    from magnum.drivers.k8s_capi_helm import errors
    from magnum.drivers.k8s_capi_helm.conf import management_clusters
    from magnum.drivers.k8s_capi_helm.kube.identity import kubeconfig
    from magnum.drivers.k8s_capi_helm.model.management_cluster import DEFAULT_MANAGEMENT

    options.register_opts(conf)
    try:
        listed = management_clusters.read_management_clusters(conf)
    except errors.DriverError:
        return  # the check of the options says so
    if management_clusters.is_default_used(conf):
        yield from _check_default_kubeconfig(conf)
    for one in listed:
        if one.name != DEFAULT_MANAGEMENT:
            found = kubeconfig.find_kubeconfig(one.kubeconfig)
            yield from _check_kubeconfig(str(found), one.context)


def _check_default_kubeconfig(conf: Any) -> Iterator[Finding]:
    from magnum.drivers.k8s_capi_helm.kube.identity import kubeconfig

    found = kubeconfig.find_kubeconfig(conf.capi_helm.kubeconfig_file)
    if found is None:
        if "KUBERNETES_SERVICE_HOST" not in os.environ:
            yield (
                False,
                "There is no kubeconfig of a management cluster. Set [capi_helm] kubeconfig_file "
                "on hosts of magnum-conductor; magnum-api needs none.",
            )
        return
    if not conf.capi_helm.kubeconfig_file:
        yield (
            False,
            f"[capi_helm] kubeconfig_file is not set, and {found} is that of the user who runs "
            "this check. The user of magnum-conductor may have another one: set the option.",
        )
    yield from _check_kubeconfig(found)


def _check_kubeconfig(found: str, context: str = "") -> Iterator[Finding]:
    from magnum.drivers.k8s_capi_helm import errors
    from magnum.drivers.k8s_capi_helm.chart_store import directory
    from magnum.drivers.k8s_capi_helm.kube.identity import kubeconfig

    try:
        kubeconfig.fingerprint(found)
        kubeconfig.check_context(found, context)
    except errors.DriverError as error:
        yield False, f"{error.detail}. magnum-conductor needs it; magnum-api does not."
        return
    for path in map(Path, filter(None, found.split(os.pathsep))):
        status = path.stat()
        if stat.S_IMODE(status.st_mode) & 0o077 or status.st_uid != os.geteuid():
            yield (
                False,
                f"{directory.ownership(path)}. Only the user of magnum-conductor is to read it: "
                "let that user own it, then chmod 600.",
            )


CHECKS = (
    ("Required packages", check_requirements),
    ("Entry point", check_entry_points),
    ("Driver", check_driver),
    ("Other drivers", check_other_drivers),
    ("Options of Magnum", check_choice),
    ("Options of the driver", check_options),
    ("Values of these options", check_values),
    ("Helm", check_helm),
    ("Kubeconfig", check_kubeconfig),
)

if __name__ == "__main__":
    sys.exit(main())
