# SPDX-License-Identifier: Apache-2.0
"""The cluster autoscaler sizes a nodegroup: Magnum follows, and does not fight.

The autoscaler itself is played: it does nothing but set the number of a MachineDeployment, with the
rights of its own service account.
"""

from __future__ import annotations

import base64
import io
import tarfile

import kubernetes
import yaml

from magnum.tests.functional.k8s_capi_helm.sandbox import truth
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Rows
from magnum.tests.functional.k8s_capi_helm.sandbox.management import (
    Json,
    management,
    seen_by_driver,
)

_WORKERS = "default-worker"
_LABELS = {"auto_scaling_enabled": "true", "min_node_count": "1", "max_node_count": "3"}
_BOUND = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-{}-size"
#: Magnum's health poll, which reads the number, comes once a minute.
_FOLLOWED_AFTER = 150.0


class Autoscaling(Life):
    """A nodegroup between one and three machines, then two and five, then of a fixed size."""

    name = "autoscaling"

    @step
    def create(self) -> None:
        """The autoscaler is there and has the labels' bounds; the group begins with the least."""
        template = self.customer.template(labels=_LABELS)
        self.customer.create(template=template)
        self.cluster.complete("CREATE")
        assert self._bounds() == ("1", "3"), self._bounds()
        entry = self._entry()
        assert "machineCount" not in entry, entry
        assert entry["capacity"] == {"cpu": 4, "memory": "4096Mi", "ephemeralDisk": "40Gi"}, entry
        assert self._autoscaler() == [f"{self.cluster.release}-autoscaler"], self._autoscaler()

    @step
    def as_the_driver(self) -> None:
        """Its role lets it read the release and the chart's copy here, and Secrets nowhere else.

        The copy is found by the digest that stands on the Lease, and is the release's own chart.
        """
        mine, namespace = seen_by_driver(), self.customer.tenant.namespace
        release = mine.release(namespace, self.cluster.release)
        assert release is not None, "the driver sees no release"
        lease = mine.named("Lease", namespace, f"{self.cluster.release}-magnum")
        notes = lease["metadata"]["annotations"]
        (digest,) = (text for key, text in notes.items() if key.endswith("/chart-digest"))
        copy = mine.named("ConfigMap", namespace, f"magnum-chart-{digest}")
        described = _chart(base64.b64decode(copy["binaryData"]["chart.tgz"]))
        meta = release["chart"]["metadata"]
        assert (described["name"], described["version"]) == (meta["name"], meta["version"]), meta
        try:
            found = mine.objects("Secret", "default")
        except kubernetes.client.ApiException as refusal:
            assert refusal.status == 403, refusal
        else:
            raise AssertionError(f"the driver sees {len(found)} Secrets of other people")

    @step
    def follow(self) -> None:
        """1 -> 3 by the autoscaler: it stays so, Helm does nothing, and the row says three."""
        revision = self._revision()
        self._autoscale(3)

        def followed(rows: Rows) -> bool:
            assert self._replicas() == 3, f"somebody has set {self._replicas()}"
            assert rows.status == "CREATE_COMPLETE", rows
            return bool(rows.groups[_WORKERS]["node_count"] == 3)

        self.cluster.until(followed, "three nodes in the row", _FOLLOWED_AFTER)
        self.cluster.intent = self.cluster.intent.with_groups(default_worker=3)
        self.cluster.until(lambda _: not self._untruths(), "three machines")
        assert (self._replicas(), self._revision()) == (3, revision), self._replicas()

    @step
    def resize(self) -> None:
        """3 -> 2 by the tenant, within the bounds: the number is handed over, without Helm."""
        revision = self._revision()
        self.customer.resize(2)
        self.cluster.complete()
        assert (self._replicas(), self._revision()) == (2, revision), self._replicas()

    @step
    def outside(self) -> None:
        """Refused in a sentence with the bounds; number, row and release stay."""
        before = self._revision()
        self.customer.magnum.resize(self.cluster.uuid, 4)
        rows = self.cluster.refused("between 1 and 3 nodes", 2, _WORKERS)
        assert (self._replicas(), self._revision()) == (2, before), self._replicas()
        self.say(rows.reason)

    @step
    def move_bounds(self) -> None:
        """``nodegroup update`` moves them; what the autoscaler did just before stays."""
        capacity = self._entry()["capacity"]
        self._autoscale(3)
        self.cluster.intent = self.cluster.intent.with_groups(default_worker=3)
        self.customer.magnum.update_group(
            self.cluster.uuid, _WORKERS, min_node_count=2, max_node_count=5
        )
        self.cluster.until(lambda rows: rows.status != "UPDATE_FAILED", "the update", fail=False)
        self.cluster.complete()
        assert (self._bounds(), self._replicas()) == (("2", "5"), 3), self._bounds()
        assert self._entry()["capacity"] == capacity, self._entry()

    @step
    def switch_off(self) -> None:
        """A template without the labels: the autoscaler goes, its last number and machines stay."""
        before = set(self.customer.tenant.servers())
        self._autoscale(4)
        self.cluster.intent = self.cluster.intent.with_groups(default_worker=4)
        self.customer.upgrade()
        self.cluster.complete()
        assert (self._bounds(), self._replicas()) == ((None, None), 4), self._bounds()
        assert not self._autoscaler(), self._autoscaler()
        assert before < set(self.customer.tenant.servers()), "a machine was replaced"
        self.cluster.check_release()

    @step
    def resize_by_hand(self) -> None:
        """4 -> 2 with ``coe cluster update``, by Helm as in any other cluster."""
        self.cluster.intent = self.cluster.intent.with_groups(default_worker=2)
        self.customer.magnum.update(self.cluster.uuid, node_count=2)
        # Magnum saves the number a moment before it calls the driver, and says nothing with it.
        self.cluster.until(lambda rows: rows.status == "UPDATE_IN_PROGRESS", "the update")
        self.cluster.complete()
        self.cluster.check_release()

    @ending
    def delete(self) -> None:
        self.customer.delete()
        self.customer.leave()

    def _deployment(self) -> Json:
        (found,) = management().objects("MachineDeployment", self.customer.tenant.namespace)
        return found

    def _replicas(self) -> int:
        return int(self._deployment()["spec"]["replicas"])

    def _autoscale(self, count: int) -> None:
        """What the autoscaler does, as the service account of its pod."""
        name, namespace = self._deployment()["metadata"]["name"], self.customer.tenant.namespace
        (deployment,) = management().objects("Deployment", namespace)
        account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
        management().scale(namespace, name, count, account)

    def _autoscaler(self) -> list[str]:
        found = management().objects("Deployment", self.customer.tenant.namespace)
        return [one["metadata"]["name"] for one in found]

    def _bounds(self) -> tuple[str | None, str | None]:
        notes = self._deployment()["metadata"].get("annotations") or {}
        return notes.get(_BOUND.format("min")), notes.get(_BOUND.format("max"))

    def _release(self) -> Json:
        release = management().release(self.customer.tenant.namespace, self.cluster.release)
        assert release is not None, "there is no Helm release"
        return release

    def _revision(self) -> int:
        return int(self._release()["version"])

    def _entry(self) -> Json:
        (entry,) = self._release()["config"]["nodeGroups"]
        found: Json = entry
        return found

    def _untruths(self) -> list[str]:
        look = truth.Look(self.customer.tenant, self.cluster.release)
        return truth.untruths(look, self.cluster.intent)


def _chart(package: bytes) -> Json:
    """Chart.yaml of a packed chart."""
    with tarfile.open(fileobj=io.BytesIO(package)) as tar:
        (place,) = (name for name in tar.getnames() if name.count("/") == 1 and "Chart.y" in name)
        file = tar.extractfile(place)
        assert file is not None, place
        described: Json = yaml.safe_load(file)
        return described


class TestAutoscaling(LifeCase, life=Autoscaling):
    """Create, follow the autoscaler, resize, refuse, new bounds, off, resize by hand, delete."""
