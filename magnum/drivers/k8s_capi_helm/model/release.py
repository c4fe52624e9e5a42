# SPDX-License-Identifier: Apache-2.0
"""A release: its chart, its credential, the deployed revision."""

from __future__ import annotations

import dataclasses

from magnum.drivers.k8s_capi_helm.model.observed import Json


@dataclasses.dataclass(frozen=True, slots=True)
class ApplicationCredential:
    """A Keystone application credential; ``secret`` never leaves the credential Secret."""

    id: str
    secret: str = dataclasses.field(repr=False)
    name: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class CredentialRoles:
    """Names of the roles of a cluster's credentials.

    :ivar machines: of the one that machines, networks and load balancers are made with.
    :ivar addons: of the one inside the cluster; None where that is the same credential.
    """

    machines: tuple[str, ...]
    addons: tuple[str, ...] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Chart:
    """A chart at hand: what helm is given, and who it is.

    :ivar path: directory or .tgz on this host.
    :ivar family: the family annotation of Chart.yaml, "" for a foreign chart.
    :ivar digest: sha256 over the chart's files.
    :ivar source: where it came from, without anything secret; "" when nobody looked there now.
    """

    name: str
    version: str
    path: str
    family: str = ""
    digest: str = ""
    source: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass(frozen=True, slots=True)
class LiveRelease:
    """What Helm has as the newest revision of a release, read from its Secret.

    :ivar status: Helm's word: deployed, failed, pending-install, pending-upgrade, uninstalling ...
    :ivar values: the values that were given (not the chart's defaults).
    :ivar whole: the newest of its revisions that was applied as a whole, 0 for none.
    :ivar takes_prefix: its chart takes the autoscaler from the registry of a tenant's label.
    :ivar deployed_at: when Helm began with its newest revision (POSIX time), 0 if it is not known.
    """

    name: str
    namespace: str
    revision: int
    status: str
    chart_name: str
    chart_version: str
    chart_family: str
    values: Json
    whole: int = 0
    takes_prefix: bool = False
    deployed_at: float = 0.0
