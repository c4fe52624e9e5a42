# SPDX-License-Identifier: Apache-2.0
"""Map Helm's stderr messages to errors of the driver.

The texts are those of Helm 3.17 to 4.2 and of the Kubernetes client that is built into it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
import re

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.errors import column_limits
from magnum.drivers.k8s_capi_helm.helm import process
from magnum.drivers.k8s_capi_helm.status.texts.public_text import public

LOG = logging.getLogger(__name__)

_DETAIL_LIMIT = 4000
_SENTENCE_LIMIT = 500
_NAME_LIMIT = 253
# Characters of an error: each of hundreds of nodegroups can have a line of the chart's complaints.
_HEAD, _TAIL = 1 << 16, 1 << 12
#: A line of Helm's that begins the complaints of a chart, and one of its complaints.
_CHART = re.compile(r"(?P<name>[^\s:]+):")
_COMPLAINT = re.compile(r"\s*- (?P<at>at )?'?(?P<path>[^\s':]*)'?: (?P<words>.+)")
_LOGIN = re.compile(r"://[^/\s\"']*@")
_OWN_CHARTS = frozenset({"openstack-cluster"})
#: Subcommands that change a release.
_CHANGES = frozenset({"install", "upgrade", "uninstall"})
_UNUSABLE = (
    "Helm cannot be run on this Magnum conductor. Ask the operator to install Helm (3.17 or later, "
    "or 4.1.1 or later) where the conductor finds it."
)
_DENIED = "The management cluster refused a part of this cluster. It answered: {why}"
_VALUES = "The chart does not accept the values of this cluster. It reports: {why}"


class ReleaseAbsent(errors.DriverError):
    """Helm knows no release of that name; does not leave this package."""


def output(arguments: Sequence[str], result: process.ProcessResult) -> bytes:
    """What a run wrote to stdout, or the error that it stands for.

    :param arguments: of the run, for the operator's log.
    :raises errors.DriverError: the run did not succeed.
    """
    words = without_passwords(result.stderr.decode(errors="replace").strip())
    run = f"helm {' '.join(arguments[:2])}"
    detail = f"{run}: exit status {result.code}: {words[-_DETAIL_LIMIT:]}"
    if result.end is process.ProcessOutcome.STOPPED:
        raise errors.HelmInterrupted(
            "Work on this cluster was stopped because another Magnum conductor may have taken it "
            "over. It continues there.",
            f"{run} was killed: its lock was lost. {words[-_DETAIL_LIMIT:]}",
        )
    if result.end is process.ProcessOutcome.TIMED_OUT or result.code < 0:
        limit = "; [capi_helm] helm_timeout sets the limit" if arguments[0] in _CHANGES else ""
        raise errors.HelmInterrupted(
            "Applying the chart took too long or was interrupted. It will be retried; if this "
            "persists, ask the operator to check the management cluster.",
            f"{run} {result.end.value}, exit status {result.code}{limit}: {words[-_DETAIL_LIMIT:]}",
        )
    if result.code == 0:
        if words:
            LOG.warning("%s says: %s", run, words[-_DETAIL_LIMIT:])
        return result.stdout
    raise error_of(words, detail)


def without_passwords(text: str) -> str:
    """What may be logged: without user and password in the URL of a chart repository."""
    return _LOGIN.sub("://", text)


def helm_unusable(detail: str) -> errors.HelmUnusable:
    """The error for a helm that cannot be run."""
    return errors.HelmUnusable(_UNUSABLE, detail)


def lock_lost(namespace: str, release: str, action: str) -> errors.Busy:
    """The error of a worker that has lost its lock.

    :param action: what did not happen any more, as an ending of the sentence "before ...".
    """
    return errors.Busy(
        "Another Magnum conductor may have taken over this cluster. The work continues there.",
        f"the lock of {namespace}/{release} was lost before {action}",
    )


def error_of(words: str, detail: str) -> errors.DriverError:
    """The error for what helm wrote to stderr when it failed.

    :param detail: for the operator: everything that is known of the run.
    """
    # Before its error helm may log warnings, which quote the same error in another form.
    error = _read(words[words.rfind("\nError: ") + 1 :])
    for pattern, kind, sentence in _FAMILIES:
        if match := pattern.search(error):
            if kind is errors.ValuesRefused:
                return _schema(match, detail)
            quoted = {
                name: _short(text, _SENTENCE_LIMIT if name == "why" else _NAME_LIMIT)
                for name, text in match.groupdict().items()
            }
            return kind(sentence.format(**quoted), detail)
    return errors.HelmRefused(
        "Helm could not apply the chart of this cluster. Ask the operator to look into the log of "
        "the Magnum conductor for the reason.",
        detail,
    )


def _read(error: str) -> str:
    """As much of an error as is searched: it may quote a tenant's values, or words of a webhook.

    What went wrong stands at its beginning, and what that is because of at its end.
    """
    if len(error) <= _HEAD + _TAIL:
        return error
    return f"{error[:_HEAD]} ... {error[-_TAIL:]}"


def _schema(match: re.Match[str], detail: str) -> errors.DriverError:
    complaints = list(_complaints(match["why"]))
    if not complaints:
        return errors.HelmRefused(_VALUES.format(why=_short(match["why"])), detail)
    sentences = "; ".join(f"{'.'.join(path) or 'values'}: {words}" for path, words in complaints)
    return errors.ValuesRefused(
        _VALUES.format(why=_short(sentences)),
        detail,
        tuple(key for path, words in complaints for key in _keys(path, words)),
    )


def _complaints(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Path and words of each complaint; a subchart's values stand below its name."""
    prefix: tuple[str, ...] = ()
    for line in text.splitlines():
        if chart := _CHART.fullmatch(line):
            prefix = () if chart["name"] in _OWN_CHARTS else (chart["name"],)
        elif complaint := _COMPLAINT.fullmatch(line):
            path, words = complaint["path"], complaint["words"]
            if words == "validation failed":
                continue
            # JSON pointers since Helm 3.18, dots before.
            pieces = path.strip("/").split("/") if complaint["at"] else path.split(".")
            yield (*prefix, *(piece for piece in pieces if piece not in ("", "(root)"))), words


def _keys(path: tuple[str, ...], words: str) -> Iterator[tuple[str, ...]]:
    """The keys that a complaint is about: those that are too many, else the one that is wrong."""
    match = re.match(
        r"additional propert(y|ies) (?P<names>.*?) (is|are)? ?not allowed", words, re.I
    )
    if match is None:
        yield path
        return
    for name in match["names"].split(", "):
        yield (*path, name.strip("'"))


def _short(text: str, limit: int = _SENTENCE_LIMIT) -> str:
    """One line of bounded length, of which a tenant may read all."""
    return column_limits.shorten(" ".join(public(text).split()), limit)


_FAMILIES: tuple[tuple[re.Pattern[str], type[errors.DriverError], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), kind, sentence)
    for pattern, kind, sentence in (
        (
            r"/helm: (no such file|exec format|permission denied)",
            errors.HelmUnusable,
            _UNUSABLE,
        ),
        (
            r"another operation \(install/upgrade/rollback\) is in progress|"
            r"secrets \"sh\.helm\.release[^\"]*\" already exists|"
            r"release: already exists|cannot re-use a name that is still in use",
            errors.Busy,
            "Another change of this cluster's release came in between. The change will be retried.",
        ),
        (
            r"internal error occurred: failed calling webhook \\?\"(?P<webhook>[^\"\\]+)",
            errors.HelmInterrupted,
            "A webhook of the management cluster does not answer, so the chart cannot be applied. "
            "The webhook is '{webhook}'. It will be retried; if this persists, ask the operator to "
            "check Cluster API's controllers.",
        ),
        (
            r"kubernetes cluster unreachable|connection refused|connection reset|i/o timeout|"
            r"context deadline exceeded|tls handshake timeout|network is unreachable|"
            r"no route to host|no such host|etcdserver|too many requests|unexpected EOF|"
            r"http2: |client rate limiter|server is currently unable|failed calling webhook|"
            r"service unavailable|context canceled|timed out",
            errors.HelmInterrupted,
            "The management cluster did not answer while the chart was applied. It will be "
            "retried; if this persists, ask the operator to check the management cluster.",
        ),
        (
            r"release: not found|release not loaded",
            ReleaseAbsent,
            "The Helm release of this cluster does not exist.",
        ),
        (
            r"chart \"[^\"]*\" (version \"[^\"]*\" )?(matching \S+ )?not found|"
            r"failed to (download|fetch)|path \"[^\"]*\" not found|not a valid chart repository|"
            r"no chart version found|unable to detect chart|Chart\.yaml file is missing|"
            r"repo \S+ not found|failed to perform \"(FetchReference|Resolve)\"|"
            r"improper constraint|: not found$",
            errors.ChartNotFound,
            "The chart for this cluster is not available in the wanted version. Check the label "
            "'capi_helm_chart_version', or ask the operator to check the chart repository.",
        ),
        (r"denied (the )?request: (?P<why>.*)", errors.HelmRefused, _DENIED),
        (
            r"namespaces \"(?P<namespace>[^\"]+)\" not found",
            errors.HelmRefused,
            "The namespace '{namespace}' does not exist on the management cluster. Ask the "
            "operator whether it was deleted.",
        ),
        (
            r"no matches for kind \"(?P<kind>[^\"]+)\"",
            errors.HelmRefused,
            "The management cluster does not know a kind of object that the chart needs. It is "
            "'{kind}'. Ask the operator to install Cluster API, its OpenStack provider and the "
            "addon provider in the versions of the chart.",
        ),
        (r"(?P<why>(?<!\S)\S+ \"[^\"]*\" is invalid: .*)", errors.HelmRefused, _DENIED),
        (
            r"failed to create typed patch object \([^)]*\): (?P<why>.*)",
            errors.HelmRefused,
            _DENIED,
        ),
        (
            r"is forbidden: |\bUnauthorized\b|provide credentials",
            errors.HelmRefused,
            "The management cluster does not let this Magnum service apply the chart. Ask the "
            "operator to check the role of the driver.",
        ),
        (
            r"values don't meet the specifications of the schema\(s\) in the following chart\(s\):"
            r"(?P<why>.*)",
            errors.ValuesRefused,
            _VALUES,
        ),
        (r"execution error at \([^)]*\): (?P<why>.*)", errors.HelmRefused, _VALUES),
        (
            r"(?<![^\n])(?P<why>[^\n]*exists and cannot be imported into the current release"
            r"[^\n]*)",
            errors.HelmRefused,
            "An object of this cluster exists already and belongs to something else. Helm reports: "
            "{why}",
        ),
        (
            r"(?P<why>template: .*|YAML parse error on .*|unable to build kubernetes objects.*)",
            errors.HelmRefused,
            _VALUES,
        ),
    )
)
