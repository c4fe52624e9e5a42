# SPDX-License-Identifier: Apache-2.0
"""What new clusters are refused for, by the driver itself and through Magnum's API."""

from __future__ import annotations

import dataclasses
from typing import Any

from magnum.tests.functional.k8s_capi_helm.sandbox.cluster import Cluster
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.management import management


@dataclasses.dataclass(frozen=True)
class Mistake:
    """What somebody asks for, and the words with which it is refused.

    :ivar template: fields of the template.
    :ivar cluster: fields of the cluster.
    """

    words: tuple[str, ...]
    template: dict[str, Any] = dataclasses.field(default_factory=dict)
    cluster: dict[str, Any] = dataclasses.field(default_factory=dict)


def _label(name: str, text: str, *words: str, **others: str) -> Mistake:
    """A label of the template."""
    return Mistake((name, *words), {"labels": {name: text, **others}})


_FIELDS = {
    "proxy": Mistake(("http_proxy", "'proxy:3128'"), {"http_proxy": "proxy:3128"}),
    "exceptions": Mistake(("no_proxy", "has no proxy"), {"no_proxy": ".example.org"}),
    "registry": Mistake(("insecure_registry",), {"insecure_registry": "r:5000/path"}),
    "own registry": Mistake(("registry_enabled",), {"registry_enabled": True}),
    "port": Mistake(("apiserver_port", "10250"), {"apiserver_port": 10250}),
    "no address": Mistake(
        ("neither a load balancer nor a floating IP",),
        {"master_lb_enabled": False, "floating_ip_enabled": False},
    ),
    "small flavor": Mistake(("m1.tiny",), {"flavor_id": "m1.tiny"}),
}
_LABELS = {
    "zone": _label("availability_zone", "zone-9", "zone-9"),
    "volume type": _label("boot_volume_type", "nonesuch", "nonesuch", boot_volume_size="20"),
    "provider": _label("octavia_provider", "nonesuch", "nonesuch"),
    "network": _label("extra_network_names", "nonesuch", "nonesuch"),
    "version": Mistake(("v1.33.8", "v1.34.4"), {"labels": {"kube_tag": "v1.33.8"}}),
    "bounds": _label("min_node_count", "5", "at most 2", max_node_count="2"),
    "reserved flag": _label("kubelet_options", "--node-ip=192.0.2.1", "--node-ip"),
    "password": _label("grafana_admin_passwd", "x", "is not supported"),
    "chart": _label("capi_helm_chart_name", "other", "'other'"),
    "chart version": Mistake(("9.9.9",), {"labels": {"capi_helm_chart_version": "9.9.9"}}),
    "not a template's": Mistake(
        ("capi_helm_chart_version", "only a template"),
        cluster={"labels": {"capi_helm_chart_version": "1.0.0"}},
    ),
    "overlay": _label("capi_helm_overlay", "nonesuch", "'nonesuch'"),
}


class MoreRefusals(Life):
    """A tenant who makes many mistakes at once."""

    name = "mistakes"
    independent = True

    @step
    def fields(self) -> None:
        """Each is refused with field and value, and leaves nothing behind."""
        self._all_refused(_FIELDS)

    @step
    def labels(self) -> None:
        """Each is refused with label and value, and leaves nothing behind."""
        self._all_refused(_LABELS)

    @ending
    def nothing_is_left(self) -> None:
        assert not self.customer.tenant.left(), self.customer.tenant.left()
        self.customer.leave()

    def _all_refused(self, mistakes: dict[str, Mistake]) -> None:
        made = {what: self._ask(mistake) for what, mistake in mistakes.items()}
        wrong = []
        for what, cluster in made.items():
            rows = cluster.until(lambda rows: _is_decided(rows.status), what, fail=False)
            wrong += [
                f"{what}: {rows.status} {rows.reason!r} without {word!r}"
                for word in mistakes[what].words
                if rows.status != "CREATE_FAILED" or word not in rows.reason
            ]
        left = management().left(self.customer.tenant.namespace)
        wrong += [f"{one} is left behind" for one in left]
        for cluster in made.values():
            self.customer.magnum.delete(cluster.uuid)
        for cluster in made.values():
            cluster.gone()
        assert not wrong, "\n".join(wrong)

    def _ask(self, mistake: Mistake) -> Cluster:
        template = self.customer.template(**mistake.template)
        return self.customer.create(template=template, **mistake.cluster)


def _is_decided(status: str) -> bool:
    return not status.endswith("_IN_PROGRESS")


class TestMoreRefusals(LifeCase, life=MoreRefusals):
    """Fields, labels."""
