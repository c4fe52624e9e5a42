# SPDX-License-Identifier: Apache-2.0
"""What is there: the answers of the cloud, charts, and the live release."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses

from magnum.drivers.k8s_capi_helm.model.seen import Json


@dataclasses.dataclass(frozen=True, slots=True)
class Flavor:
    """A Nova flavor: RAM in MiB, disk in GiB."""

    id: str
    name: str
    vcpus: int
    ram: int
    disk: int


@dataclasses.dataclass(frozen=True, slots=True)
class Image:
    """A Glance image.

    :ivar kubernetes_version: its property kube_version without a leading ``v``, "" without one.
    :ivar os_distro: its property of that name, "" without one.
    """

    id: str
    kubernetes_version: str
    os_distro: str


@dataclasses.dataclass(frozen=True, slots=True)
class CloudFacts:
    """What OpenStack said when it was asked, for one render.

    :ivar kubernetes_version: without a leading ``v``, e.g. ``1.34.4``.
    :ivar flavors: by the text the request used.
    :ivar images: those of nodegroups with an image of their own, by the text the request used.
    :ivar volume_types: names of Cinder's types, in Cinder's order; the first is the default one.
    :ivar server_groups: ids of those that were made for the cluster, by name of the nodegroup.
    :ivar api_address: floating IP that was made for the Kubernetes API.
    """

    image_id: str
    kubernetes_version: str
    os_distro: str
    flavors: Mapping[str, Flavor]
    auth_url: str
    external_network_id: str | None = None
    fixed_network_id: str | None = None
    fixed_subnet_id: str | None = None
    volume_types: tuple[str, ...] = ()
    images: Mapping[str, Image] = dataclasses.field(default_factory=dict)
    server_groups: Mapping[str, str] = dataclasses.field(default_factory=dict)
    api_address: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ApplicationCredential:
    """A Keystone application credential; ``secret`` never leaves the credential Secret."""

    id: str
    secret: str = dataclasses.field(repr=False)
    name: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Grants:
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
    """

    name: str
    namespace: str
    revision: int
    status: str
    chart_name: str
    chart_version: str
    chart_family: str
    values: Json
