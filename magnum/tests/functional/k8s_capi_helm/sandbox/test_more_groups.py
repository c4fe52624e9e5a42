# SPDX-License-Identifier: Apache-2.0
"""Nodegroups in upgrades: who takes part, who keeps an image of its own, who rolls how often."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from magnum.tests.functional.k8s_capi_helm.sandbox import access, rolls
from magnum.tests.functional.k8s_capi_helm.sandbox.cluster import DEFAULT_GROUP
from magnum.tests.functional.k8s_capi_helm.sandbox.customer import VERSION
from magnum.tests.functional.k8s_capi_helm.sandbox.life import ending, Life, LifeCase, step
from magnum.tests.functional.k8s_capi_helm.sandbox.magnum_api import Refused
from magnum.tests.functional.k8s_capi_helm.sandbox.management import Json, management
from magnum.tests.functional.k8s_capi_helm.sandbox.rolls import MASTERS, Watch

_OLD, _FAR = "v1.33.8", "v1.36.0"
_OWN = "own"
_TAINT = {"key": "example.org/batch", "value": "yes", "effect": "NoSchedule"}
#: Cluster API itself changes labels of this domain on Nodes that are there.
_POOL = "node.cluster.x-k8s.io/pool"
#: OpenStack requests of a create, as the administrators' page says.
_AT_MOST, _AT_LEAST = 15, 10


class Groups(Life):
    """One control plane machine, two workers, and one machine with an image of its own."""

    name = "image"
    _own = ""
    _template = ""

    @step
    def create(self) -> None:
        """What the driver asks OpenStack meanwhile is bounded."""
        self.customer.create(version=_OLD, workers=2).complete("CREATE")
        asked = access.of_newest_create(self.customer.tenant.project_id)
        self.say(f"{len(asked)} requests to OpenStack: {', '.join(asked)}")
        assert _AT_LEAST <= len(asked) <= _AT_MOST, asked

    @step
    def own_image(self) -> None:
        """A nodegroup of another image than the cluster's."""
        self._own = self.customer.tenant.add_image(f"{self.cluster.release}-own", _OLD)
        watch = Watch(self.cluster)
        self.customer.create_group(
            _OWN, 1, flavor_id="m1.small", image_id=self._own, node_labels={_POOL: "first"}
        )
        watch.complete()
        watch.check()
        assert self._images(_OWN) == {self._own}, self._images(_OWN)
        assert self._own not in self._images(DEFAULT_GROUP), self._images(DEFAULT_GROUP)

    @step
    def relabel(self) -> None:
        """A label that Cluster API keeps on Nodes changes there; no machine is replaced."""
        watch = Watch(self.cluster)
        self._update("--node-labels", f"{_POOL}=second")
        watch.complete()
        watch.check()
        self.cluster.until(
            lambda _: self._node()["metadata"]["labels"].get(_POOL) == "second", "the node's label"
        )

    @step
    def taint(self) -> None:
        """Taints, and labels of other domains, replace the group's machine once, and no other."""
        watch = Watch(self.cluster)
        taint = "{key}={value}:{effect}".format(**_TAINT)
        self._update("--node-labels", "example.org/kind=batch", "--node-taints", taint)
        watch.complete()
        watch.check(_OWN)
        node = self._node()
        assert _TAINT in node["spec"]["taints"], node["spec"]
        found = node["metadata"]["labels"]
        assert found.get("example.org/kind") == "batch" and _POOL not in found, found

    @step
    def upgrade(self) -> None:
        """The control plane, then both workers at once; version and new label come together.

        The group with an image of its own keeps machine, image, version and set-up.
        """
        self._new_template(VERSION, "64")
        watch = self._upgraded(max_batch_size=2)
        watch.check(MASTERS, DEFAULT_GROUP)
        assert self._most_away(DEFAULT_GROUP) == 2, self._most_away(DEFAULT_GROUP)
        assert rolls.together(self.cluster, DEFAULT_GROUP), "one worker after the other"
        self._check_pods({MASTERS: "64", DEFAULT_GROUP: "64", _OWN: None})
        assert self._images(_OWN) == {self._own}, self._images(_OWN)
        row = self.customer.magnum.group(self.cluster.uuid, _OWN)
        assert row["image_id"] == self._own, row
        assert self._owed() == {_OWN}, self._owed()

    @step
    def upgrade_group(self) -> None:
        """By its name, the group takes the cluster's image and what it has missed, in one step."""
        watch = self._upgraded(nodegroup=_OWN)
        watch.check(_OWN)
        self._check_pods({MASTERS: "64", DEFAULT_GROUP: "64", _OWN: "64"})
        assert self._images(_OWN) == self._images(DEFAULT_GROUP), self._images(_OWN)
        rows = {
            name: self.customer.magnum.group(self.cluster.uuid, name)["image_id"]
            for name in (_OWN, DEFAULT_GROUP)
        }
        assert len(set(rows.values())) == 1, rows
        assert _TAINT in self._node()["spec"]["taints"], self._node()["spec"]
        assert not self._owed(), self._owed()

    @step
    def refusals(self) -> None:
        """Each in a sentence; Magnum's rows, the release and the record stay as they are."""
        far = self.customer.tenant.add_image(f"{self.cluster.release}-far", _FAR)
        make = self.customer.template
        wrong: dict[str, Json] = {
            "cannot be downgraded": {"template": make(_OLD)},
            "skips a minor release": {"template": make(image_id=far)},
            "The label is v1.34.5": {"template": make(labels={"kube_tag": "v1.34.5"})},
            "kube_version": {"template": make(image_id="ubuntu-plain")},
            # Magnum's own words.
            "only to match cluster's template": {"template": make(), "nodegroup": _OWN},
        }
        before = self._state()
        for words, fields in wrong.items():
            try:
                self.customer.magnum.upgrade(self.cluster.uuid, **fields)
            except Refused as refusal:
                assert words in str(refusal), (words, refusal)
                assert 400 <= refusal.status < 500, refusal
            else:
                raise AssertionError(f"{words}: let through")
            assert self._state() == before, (words, before, self._state())

    @step
    def masters_alone(self) -> None:
        """Another image of the same version, and another label: workers stay as they are."""
        image = self.customer.tenant.add_image(f"{self.cluster.release}-new", VERSION)
        self._new_template(VERSION, "65", image_id=image)
        watch = self._upgraded(nodegroup=MASTERS)
        watch.check(MASTERS)
        self._check_pods({MASTERS: "65", DEFAULT_GROUP: "64", _OWN: "64"})
        assert self._images(MASTERS) == {image}, self._images(MASTERS)
        assert self._images(DEFAULT_GROUP) == self._images(_OWN) != {image}, self._images(_OWN)
        assert self._owed() == {DEFAULT_GROUP, _OWN}, self._owed()

    @step
    def follow(self) -> None:
        """Both groups take the image and what they have missed, one machine after the other."""
        watch = self._upgraded()
        watch.check(DEFAULT_GROUP, _OWN)
        assert self._most_away(DEFAULT_GROUP) == 1, self._most_away(DEFAULT_GROUP)
        assert not rolls.together(self.cluster, DEFAULT_GROUP), "both workers at once"
        self._check_pods({MASTERS: "65", DEFAULT_GROUP: "65", _OWN: "65"})
        assert self._images(DEFAULT_GROUP) == self._images(_OWN) == self._images(MASTERS)
        assert not self._owed(), self._owed()
        self.cluster.check_release()

    @ending
    def delete(self) -> None:
        self.customer.delete()
        self.customer.leave()

    def _update(self, *options: str) -> None:
        """As a tenant does it: in a patch Magnum takes maps and lists only as texts."""
        command = ("coe", "nodegroup", "update", self.cluster.uuid, _OWN)
        self.customer.tenant.openstack(*command, *options)

    def _new_template(self, version: str, pods: str, **fields: Any) -> None:
        labels = {"kubelet_options": f"--max-pods={pods}"}
        self._template = self.customer.template(version, labels=labels, **fields)

    def _upgraded(self, **fields: Any) -> Watch:
        """Upgrade to the newest template, and see it through."""
        watch = Watch(self.cluster)
        self.customer.magnum.upgrade(self.cluster.uuid, self._template, **fields)
        whole = fields.get("nodegroup") != _OWN
        versions = {_OWN: _OLD} if whole and self._images(_OWN) == {self._own} else {}
        intent = dataclasses.replace(self.cluster.intent, version=VERSION, versions=versions)
        self.cluster.intent = intent
        watch.complete()
        row = self.cluster.rows().cluster
        assert row["cluster_template_id"] == self._template, row["cluster_template_id"]
        return watch

    def _images(self, group: str) -> set[str]:
        """Ids of the images of a nodegroup's servers."""
        namespace = self.customer.tenant.namespace
        found = {
            str(one["spec"]["providerID"]).rpartition("/")[2]
            for one in management().objects("Machine", namespace)
            if rolls.group_of(one) == group
        }
        servers = self.customer.tenant.connection.compute.servers()
        return {one.image.id for one in servers if one.id in found}

    def _node(self) -> Json:
        """The one Node of the group with an image of its own."""
        (found,) = (
            one
            for one in self.cluster.workload().nodes()
            if one["metadata"]["labels"].get("capi.stackhpc.com/node-group") == _OWN
        )
        return found

    def _check_pods(self, wanted: dict[str, str | None]) -> None:
        """The kubelet's option in the set-up of new machines, by nodegroup."""
        namespace = self.customer.tenant.namespace
        (plane,) = management().objects("KubeadmControlPlane", namespace)
        setups = {MASTERS: plane["spec"]["kubeadmConfigSpec"]}
        for name in self.cluster.intent.groups:
            spec = rolls.deployment(self.cluster, name)["spec"]["template"]["spec"]
            template = spec["bootstrap"]["configRef"]["name"]
            made = management().named("KubeadmConfigTemplate", namespace, template)
            setups[name] = made["spec"]["template"]["spec"]
        found = {name: _max_pods(setup) for name, setup in setups.items()}
        assert found == wanted, (found, wanted)

    def _most_away(self, group: str) -> int:
        strategy = rolls.deployment(self.cluster, group)["spec"]["rollout"]["strategy"]
        return int(strategy["rollingUpdate"]["maxUnavailable"])

    def _owed(self) -> set[str]:
        """Nodegroups that an upgrade owes something, as the Lease has it."""
        owed = json.loads(self._notes().get("owed-to-nodegroups") or "[]")
        return {name for one in owed for name in one["groups"]}

    def _notes(self) -> dict[str, str]:
        """Annotations of the cluster's Lease, without their domain."""
        name = f"{self.cluster.release}-magnum"
        lease = management().named("Lease", self.customer.tenant.namespace, name)
        notes = lease["metadata"].get("annotations") or {}
        return {key.rpartition("/")[2]: text for key, text in notes.items()}

    def _state(self) -> tuple[Any, ...]:
        """What a refused upgrade must not change."""
        rows = self.cluster.rows()
        uuid, names = self.cluster.uuid, sorted(rows.groups)
        groups = [self.customer.magnum.group(uuid, name) for name in names]
        namespace = self.customer.tenant.namespace
        release = management().release(namespace, self.cluster.release)
        assert release is not None, "there is no Helm release"
        moving = {"updated_at", "links", "node_addresses", "health_status", "health_status_reason"}
        return (
            {key: value for key, value in rows.cluster.items() if key not in moving},
            [{key: value for key, value in one.items() if key not in moving} for one in groups],
            release["version"],
            self._notes(),
            rolls.machines(self.cluster),
        )


def _max_pods(setup: Json) -> str | None:
    arguments = setup["joinConfiguration"]["nodeRegistration"]["kubeletExtraArgs"]
    return next((one["value"] for one in arguments if one["name"] == "max-pods"), None)


class TestGroups(LifeCase, life=Groups):
    """Create, a group of its own image, upgrades of all and of single nodegroups, refusals."""
