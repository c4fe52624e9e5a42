# SPDX-License-Identifier: Apache-2.0
"""What the driver stores on the management cluster and in Helm, scene by scene, as a recording.

A release that runs was written by an older version of the driver: renamed classes, moved modules
and other calls must not change one key of its Lease, its Secrets or its values. The scenes here are
played in the tests' world; ``recorded_state/VERSION.json`` is what they stored in that version of
the driver. ``test_stored_state`` plays them again: this version stores what its own recording says,
and continues from the Leases of every version.

Random parts are replaced by numbers in the order in which they appear, times stand still, and the
bytes of certificates and charts are left out. What occurs in several moments stands in the file
once. A change of the stored form that is meant, which every older release survives, is recorded
with::

    python -W ignore -m magnum.tests.unit.drivers.k8s_capi_helm.stored_state

With ``--release`` the recording of this version is closed: its digest is added to ``released.txt``,
and from then on it is neither written nor changed.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
import datetime
import hashlib
import json
import pathlib
import re
import sys
from typing import Any
from unittest import mock
import uuid

import fixtures
from oslo_utils import fixture as time_fixture

from magnum import objects
from magnum.drivers.k8s_capi_helm.helm import recovery
from magnum.drivers.k8s_capi_helm.lease import codec, record_format
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm import builders, fakes
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import DriverCase, NAMESPACE, RELEASE
from magnum.tests.unit.drivers.k8s_capi_helm.magnum_release import credential_conductor
from magnum.tests.unit.drivers.k8s_capi_helm.suites import helm

Json = dict[str, Any]
DIRECTORY = pathlib.Path(__file__).parent / "recorded_state"
#: Versions of the driver that are out, and the digests of their recordings (SHA-256).
RELEASED = DIRECTORY / "released.txt"
#: The version of this driver.
VERSION = record_format.VERSION
#: Of the Lease in a recorded moment.
LEASE = "Lease"
#: Of what is left of a scene when it is over.
END = "end"

#: Kinds of which the driver makes objects; of others it writes annotations.
_OWN = ("Lease", "Secret", "ConfigMap", "Namespace", "RoleBinding")
#: Fields of ``metadata`` that the API server gives.
_SERVERS = ("uid", "resourceVersion", "generation", "creationTimestamp")
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_TOKEN = re.compile(rf"{_UUID}|[0-9a-f]{{64}}|(?<![0-9a-f])[0-9a-f]{{8}}(?![0-9a-f])")
_PEM = re.compile(r"-----BEGIN ([A-Z ]+)-----.*?-----END \1-----\n?", re.DOTALL)
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_VERSION = re.compile(r" \d+\.\d+\.\d+\S*$")
_CHART = "magnum-chart-"
_NEW = "1.35.2"


class Numbers:
    """Random parts of texts as numbers of the same shape, in the order of their first appearance.

    :ivar known: UUIDs that were made so far, and what is shortened of them.
    """

    def __init__(self) -> None:
        self.known: set[str] = set()
        self._number: dict[str, str] = {}

    def make(self, real: Callable[[], uuid.UUID] = uuid.uuid4) -> uuid.UUID:
        """A random UUID, which is known from now on."""
        made = real()
        self.known |= {str(made), made.hex[:8]}
        return made

    def numbered(self, text: str) -> str:
        """The text with numbers."""
        return _TOKEN.sub(lambda found: self._of(found[0]), text)

    def real(self, text: str) -> str:
        """The text with what the numbers stand for now."""
        back = {number: token for token, number in self._number.items()}
        return _TOKEN.sub(lambda found: back.get(found[0], found[0]), text)

    def _of(self, token: str) -> str:
        if token in self.known and token not in self._number:
            number = 1 + sum(len(one) == len(token) for one in self._number)
            shape = {36: f"00000000-0000-4000-8000-{number:012d}"}
            self._number[token] = shape.get(len(token), f"{number:0{len(token)}d}")
        return self._number.get(token, token)


class Scenes(DriverCase):
    """The world in which scenes are played: random parts are known, and the clock stands.

    :ivar moments: what was stored at each moment of the scene that is played.
    :ivar taken: Leases by moment that take the place of those that are there then.
    :ivar at_rest: at how many of these moments nothing is pending.
    """

    def setUp(self) -> None:
        self.numbers = Numbers()
        self.moments: dict[str, Json] = {}
        self.taken: dict[str, Json] = {}
        self.at_rest = 0
        self._made: dict[str, int] = {}
        real, new = uuid.uuid4, fakes.FakeKube._new

        def with_steady_uid(kube: fakes.FakeKube, kind: names.Kind, manifest: Json) -> Json:
            found = new(kube, kind, manifest)
            name = f"{kind.plural}-{found['metadata']['name']}"
            self._made[name] = self._made.get(name, 0) + 1
            found["metadata"]["uid"] = f"uid-{name}-{self._made[name]}"
            return found

        for patch in (
            mock.patch.object(uuid, "uuid4", lambda: self.numbers.make(real)),
            mock.patch.object(fakes.FakeKube, "_new", with_steady_uid),
        ):
            patch.start()
            self.addCleanup(patch.stop)
        super().setUp()
        self.useFixture(time_fixture.TimeFixture(builders.NOW.replace(tzinfo=None)))
        self.stand_still(builders.NOW)
        authority = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / "authority.pem"
        authority.write_text("The authority of the cloud.\n")
        self.config(group="drivers", openstack_ca_file=str(authority))
        self.cloud.images["ubuntu-kube-1.35"] = ("image-2", _NEW)

    def play(self, scene: str) -> Json:
        """Play a scene to its end: what was stored at each of its moments, and what is left."""
        SCENES[scene](self)
        self.moments[END] = self._aftermath()
        return self.moments

    def moment(self, name: str, *, whole: bool = False) -> None:
        """Note what is stored now, and put the Lease in its place that is taken over, if one is.

        :param whole: besides the Lease all other objects and the values of the release.
        """
        found = self._objects()
        lease = f"Lease/{names.lease(RELEASE)}"
        noted = {LEASE: found.pop(lease, None)}
        if whole:
            noted |= {**found, "values": self._values(), "rows": self._rows()}
        self.moments[name] = json.loads(self.numbers.numbered(json.dumps(noted)))
        if self.taken.get(name) is not None:
            taken = json.loads(self.numbers.real(json.dumps(self.taken[name])))
            # Who holds it does so with a name and moments of its own.
            there = self.kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE))
            self.kube.put(names.LEASE, {**taken, "spec": there["spec"]})
            self._expect_rest()

    def next_template(self, **changes: Any) -> Any:
        """A template of the next minor release."""
        uuid_text = "21111111-2222-4333-8444-555555555555"
        fields = {"uuid": uuid_text, "name": "kube-2", "image_id": "ubuntu-kube-1.35"}
        return self._template(**{**fields, **changes})

    def busy(self, *requests: Callable[[], None], passes: int = 1) -> None:
        """Let requests come while somebody else works on the release: they stay pending.

        :param passes: of the status task meanwhile.
        """
        with self.ports.leases.acquire(NAMESPACE, RELEASE, wait=0):
            for request in requests:
                request()
            self.status_task(passes)

    def rotate(self, user: str) -> None:
        """A request for another credential; the first write of a Secret notes a moment."""

        def before(verb: str, kind: names.Kind, name: str) -> None:
            if (verb, kind) == ("apply", names.SECRET):
                self.kube.before = None
                self.moment("begun")

        self.kube.before = before
        self.context.user_id = user
        credential_conductor.Handler().credential_rotate(self.context, self.cluster())

    def _expect_rest(self) -> None:
        """A health task about a cluster without pending operations changes nothing."""
        [cluster] = objects.Cluster.list(self.context)
        found = self.kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE))
        is_pending = codec.record(found).operations or not cluster.status.endswith("_COMPLETE")
        if not is_pending and not codec.holder(found):
            before = list(self.kube.everything()), list(self.helm.runs)
            self.health_task()
            self.assertEqual(before, (list(self.kube.everything()), list(self.helm.runs)))
            self.at_rest += 1

    def _rows(self) -> Json:
        """What Magnum's database holds of the cluster that the driver has written."""
        [cluster] = objects.Cluster.list(self.context)
        of_cluster, of_group = ("stack_id", "api_address", "coe_version"), ("status", "image_id")
        return {
            "cluster": {key: getattr(cluster, key) for key in (*of_cluster, "status", "labels")},
            **{
                row.name: {key: getattr(row, key) for key in (*of_group, "node_count", "labels")}
                for row in cluster.nodegroups
            },
        }

    def _objects(self) -> Json:
        found = {f"{one['kind']}/{one['metadata']['name']}": one for one in self.kube.everything()}
        return {self._known(name): kept for name, one in found.items() if (kept := self._kept(one))}

    def _known(self, name: str) -> str:
        """The key of an object; with that of a kept chart its digest is known."""
        head, _, digest = name.partition(_CHART)
        if digest and head == "ConfigMap/":
            self.numbers.known.add(digest)
        return name

    def _kept(self, one: Json) -> Json:
        meta = {key: text for key, text in one["metadata"].items() if key not in _SERVERS}
        if one["kind"] not in _OWN:
            notes = meta.get("annotations") or {}
            ours = {key: notes[key] for key in notes if not key.startswith(names.ADDONS_GROUP)}
            return {"annotations": ours} if ours else {}
        kept = {**one, "metadata": meta}
        if one["kind"] == "Lease":
            kept["spec"] = {key: _steady(key, text) for key, text in one["spec"].items()}
        if one["kind"] == "Secret":
            kept["data"] = {key: _decoded(text) for key, text in one["data"].items()}
        if one["kind"] == "ConfigMap":
            kept["binaryData"] = dict.fromkeys(one["binaryData"], "<package>")
            notes = meta.get("annotations") or {}
            meta["annotations"] = {key: _VERSION.sub(" <version>", notes[key]) for key in notes}
        return kept

    def _values(self) -> Json:
        live = self.helm.live(NAMESPACE, RELEASE)
        return live.values if live else {}

    def _aftermath(self) -> Json:
        """What became of the cluster, however that was written down meanwhile."""
        rows = {
            one.name: [
                one.status,
                {row.name: [row.status, row.node_count] for row in one.nodegroups},
            ]
            for one in objects.Cluster.list(self.context)
        }
        values, lease = self._values(), self.kube.get(names.LEASE, NAMESPACE, names.lease(RELEASE))
        found = {
            "rows": rows,
            "credentials": sorted(self.cloud.credentials),
            "nodegroups": values.get("nodeGroups"),
            "version": values.get("kubernetesVersion"),
            "has Lease": lease is not None,
        }
        plain: Json = json.loads(self.numbers.numbered(json.dumps(found)))
        return plain


def creation(case: Scenes) -> None:
    """A cluster from its request until it is complete."""

    def midway(live: Any) -> None:
        case.helm.midway = None
        case.moment("helm runs")

    case.helm.midway = midway
    case.create(workers=2)
    case.moment("created", whole=True)
    case.capi_converges()
    case.status_task()
    case.moment("everything is in place")
    case.status_task()
    case.moment("complete", whole=True)


def autoscaled(case: Scenes) -> None:
    """A cluster with labels and networks, whose nodegroup the autoscaler sizes between bounds."""
    case.config(group="capi_helm", separate_addon_credential=True, addon_cred_roles=["reader"])
    labels = {
        "auto_scaling_enabled": "true",
        "min_node_count": "1",
        "max_node_count": "5",
        "extra_network_names": "san",
        "boot_volume_size": "50",
    }
    things = case.cloud.things

    def with_subnet() -> Any:
        found = things()
        network = case.cloud.networks["other"]
        subnet = {"id": "subnet-1", "name": "nodes", "network_id": network, "project_id": "p1"}
        found.subnets.append(subnet)
        return found

    case.cloud.things = with_subnet
    network = {"fixed_network": "other", "fixed_subnet": "nodes"}
    case.create(workers=2, labels=labels, keypair="mine", **network)
    case.moment("created", whole=True)
    case.capi_converges()
    case.status_task()
    case.capi_converges()
    case.status_task(2)
    case.busy(lambda: case.resize(3))
    case.moment("resize is pending")
    case.status_task()
    case.moment("resize is handed over")
    case.capi_converges()
    case.status_task(2)
    case.busy(
        lambda: case.change_group(min_node_count=2, max_node_count=5),
        lambda: case.change_group(max_node_count=6),
        lambda: case.change_group(max_node_count=7),
    )
    case.moment("updates are pending")
    case.status_task()
    case.capi_converges()
    case.status_task(2)
    case.moment("updated", whole=True)


def resize(case: Scenes) -> None:
    """A resize that names the machine which is to go."""
    case.made(workers=3)
    machines = [one["metadata"]["name"] for one in case.kube.list(names.MACHINE, NAMESPACE)]
    chosen = next(one for one in sorted(machines) if "default-worker" in one)
    case.resize(2, remove=[chosen])
    case.moment("pending", whole=True)
    case.capi_converges()
    case.status_task(2)
    case.moment("complete")


def without_deadlines(case: Scenes) -> None:
    """A resize where the operator gives all requests as much time as they take."""
    case.config(group="capi_helm", update_timeout=0)
    case.made()
    case.busy(lambda: case.resize(2))
    case.moment("pending")
    case.status_task()
    case.capi_converges()
    case.status_task(2)


def nodegroups(case: Scenes) -> None:
    """A nodegroup that is created, changed several times and deleted."""
    case.made()
    case.busy(lambda: case.add_group("more", labels={"extra_network_names": "san"}))
    case.moment("creation is pending")
    case.status_task()
    case.capi_converges()
    case.status_task(2)
    case.moment("created", whole=True)
    marks = {"node_labels": {"a": "b"}, "node_taints": [{"key": "c", "effect": "NoSchedule"}]}
    case.busy(lambda: case.change_group("more", max_node_count=5, **marks))
    case.moment("update is pending")
    case.status_task()
    case.capi_converges()
    case.status_task(2)
    case.busy(lambda: case.drop_group("more"))
    case.moment("deletion is pending")
    case.status_task()
    case.moment("deletion is handed over")
    case.capi_converges()
    case.status_task(2)


def upgrade(case: Scenes) -> None:
    """An upgrade that differs in labels too, of all nodegroups but one with an image of its own."""
    case.made()
    case.cloud.images["own"] = ("image-9", builders.VERSION)
    case.add_group("own", image_id="own")
    case.capi_converges()
    case.status_task(2)
    template = case.next_template(
        labels={"boot_volume_size": "50", "auto_healing_enabled": "false"},
        http_proxy="http://proxy.example.org:3128",
    )
    case.busy(lambda: case.upgrade(template, batch=2), passes=0)
    case.moment("pending")
    case.status_task()
    case.moment("accepted", whole=True)
    case.capi_converges()
    case.status_task()
    case.moment("nodegroups follow")
    case.capi_converges()
    case.status_task(2)
    case.moment("complete", whole=True)


def rotation(case: Scenes) -> None:
    """Another user's credential, and the end of the one before."""
    case.made()
    case.rotate("u2")
    case.moment("rotated", whole=True)
    case.stand_still(builders.NOW + datetime.timedelta(hours=1))
    case.health_task()
    case.stand_still(builders.NOW + datetime.timedelta(hours=2))
    case.health_task()
    case.moment("cleaned up")


def deletion(case: Scenes) -> None:
    """A deletion from its request to the end of the Lease."""
    case.made()
    case.busy(case.delete)
    case.moment("pending", whole=True)
    case.status_task()
    case.moment("waiting")
    case.capi_deletes()

    def before(verb: str, kind: names.Kind, name: str) -> None:
        if (verb, kind) == ("delete", names.LEASE):
            case.kube.before = None
            case.moment("tombstone", whole=True)

    case.kube.before = before
    case.status_task()


def cleared(case: Scenes) -> None:
    """A deletion that ends because an operator says that nothing is left in OpenStack."""
    case.made()
    case.delete()
    case.capi_deletes()
    case.cloud.openstack.leave("servers", name=f"{RELEASE}-control-plane-bcdfg")
    case.status_task()
    case.give_the_operators_word()
    case.moment("declared")
    case.status_task()


def half_done(case: Scenes) -> None:
    """The mark on the Secret of a revision that Helm has begun and not ended."""
    case.made()
    secret = recovery.with_mark(helm.secret(1, "pending-install", {}))
    secret["data"] = {}
    case.kube.put(names.SECRET, secret)
    case.moment("marked", whole=True)


def adopted(case: Scenes) -> None:
    """A cluster that magnum-capi-helm has created, which has no Lease."""
    case.made()
    case.kube.remove(names.LEASE, NAMESPACE, names.lease(RELEASE))
    case.health_task()
    case.moment("seen")
    case.resize(2)
    case.moment("resized", whole=True)
    case.capi_converges()
    case.status_task(2)
    case.moment("complete", whole=True)


#: By name, each is played in a world of its own.
SCENES: dict[str, Callable[[Scenes], None]] = {
    one.__name__.replace("_", " "): one
    for one in (
        creation,
        autoscaled,
        resize,
        without_deadlines,
        nodegroups,
        upgrade,
        rotation,
        deletion,
        cleared,
        half_done,
        adopted,
    )
}


def path(version: str) -> pathlib.Path:
    """The recording of a version of the driver."""
    return DIRECTORY / f"{version}.json"


def versions() -> list[str]:
    """Versions of the driver of which there is a recording."""
    return sorted(one.stem for one in DIRECTORY.glob("*.json"))


def released() -> dict[str, str]:
    """Versions of the driver that are out, with the digests of their recordings."""
    lines = RELEASED.read_text(encoding="utf-8").splitlines()
    return dict(line.split() for line in lines if not line.startswith("#"))


def digest(version: str) -> str:
    """The digest of the recording of a version."""
    return hashlib.sha256(path(version).read_bytes()).hexdigest()


def recorded(version: str = VERSION) -> dict[str, Json]:
    """What every scene has stored, by the names of scene and moment."""
    found = json.loads(path(version).read_text(encoding="utf-8"))
    stored = found["objects"]
    return {
        scene: {
            name: {key: stored[number] for key, number in moment.items()}
            for name, moment in moments.items()
        }
        for scene, moments in found["scenes"].items()
    }


def packed(scenes: dict[str, Json]) -> str:
    """A recording as text: each object that was stored once, in a line of its own."""
    numbers: dict[str, int] = {}

    def number(stored: Any) -> int:
        return numbers.setdefault(json.dumps(stored, sort_keys=True), len(numbers))

    numbered = {
        scene: {
            name: {key: number(stored) for key, stored in sorted(moment.items())}
            for name, moment in sorted(moments.items())
        }
        for scene, moments in sorted(scenes.items())
    }
    of_scenes = [f"{json.dumps(name)}: {json.dumps(one)}" for name, one in numbered.items()]
    parts = ['{"objects": [', ",\n".join(numbers), '],\n"scenes": {', ",\n".join(of_scenes), "}}"]
    return "\n".join(parts) + "\n"


def differences(old: Any, new: Any, place: str = "") -> Iterator[str]:
    """Where two stored things differ, each a sentence which begins with the place.

    Texts that are JSON are compared key by key, and byte by byte where all keys are equal.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            where = f"{place} > {key}" if place else key
            if key not in new:
                yield f"{where}: the key '{key}' is recorded and is not written any more"
            elif key not in old:
                yield f"{where}: the key '{key}' is written and is not recorded"
            else:
                yield from differences(old[key], new[key], where)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, pair in enumerate(zip(old, new, strict=True)):
            yield from differences(*pair, f"{place}[{number}]")
    elif old != new or type(old) is not type(new):
        inner = [json.loads(one) if _is_json(one) else None for one in (old, new)]
        found = [] if None in inner else list(differences(*inner, place))
        yield from found or [f"{place}: it was {old!r} and is {new!r}"]


def _is_json(text: Any) -> bool:
    return isinstance(text, str) and text[:1] in ("{", "[")


def _steady(key: str, found: Any) -> Any:
    """A field of a Lease's ``spec``, in which moments and numbers of turns have the same look."""
    if isinstance(found, str):
        return re.sub(r"/[0-9a-f]{8}$", "/<random>", _MICRO_TIME.sub("<micro time>", found))
    return "<number>" if key == "leaseTransitions" else found


def _decoded(text: str) -> str:
    """A value of a Secret as a text, without keys and certificates."""
    return _PEM.sub(r"<PEM: \1>", base64.b64decode(text).decode())


def main(argv: list[str]) -> int:
    """Record this version, or close its recording; returns the exit status."""
    if VERSION in released():
        sys.stderr.write(
            f"Version {VERSION} is released: its recording does not change any more. Raise "
            "the version in pyproject.toml, install the checkout again, and record that one.\n"
        )
        return 1
    if argv == ["--release"]:
        with RELEASED.open("a", encoding="utf-8") as file:
            file.write(f"{VERSION} {digest(VERSION)}\n")
        return 0
    _record()
    return 0


def _record() -> None:
    found = {}
    for name in SCENES:
        case = type("Case", (Scenes,), {"runTest": lambda self: None})("runTest")
        try:
            case.setUp()
            found[name] = case.play(name)
        finally:
            case.doCleanups()
    text = packed(found)
    path(VERSION).write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(found)} scenes, {len(text)} bytes\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
