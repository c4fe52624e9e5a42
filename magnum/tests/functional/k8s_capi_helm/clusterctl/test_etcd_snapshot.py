# SPDX-License-Identifier: Apache-2.0
"""The restore drill of the addon etcd-snapshot: a cluster's objects come back from the bucket.

etcd, API servers, etcdctl, etcdutl, rclone and the server of S3 are real, and the job is what the
chart renders; :mod:`.snapshot_job` is in place of kubelet and container runtime.
"""

from __future__ import annotations

import base64
import datetime
import os
from pathlib import Path
import subprocess
import tempfile
from typing import ClassVar
import unittest

from magnum.tests.functional.k8s_capi_helm.charts import addon_operator, rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object, Values
from magnum.tests.functional.k8s_capi_helm.clusterctl import program
from magnum.tests.functional.k8s_capi_helm.clusterctl.snapshot_job import NAMESPACE, SnapshotJob
from sandbox import processes
from sandbox.management import backup, binaries, object_storage, server
from sandbox.management.api import Api
from sandbox.management.connection import Connection, Refused
from sandbox.management.pki import Pki
from sandbox.state import State

BUCKET, PREFIX, SECRET = "snapshots", "team-a", "etcd-snapshot"
DIRECTORY = f"{BUCKET}/{PREFIX}/demo"
KEEP_DAYS = 7
TIMEOUT = 120.0
REMOTE = "RCLONE_CONFIG_SNAPSHOTS"


def cron_job() -> Object:
    """What the addon provider installs in the cluster."""
    values: Values = rendering.scenarios(rendering.ADDONS)["bare"].values
    settings = {
        "destination": {"bucket": BUCKET, "prefix": PREFIX},
        "secretName": SECRET,
        "keepDays": KEEP_DAYS,
    }
    change = {"etcdSnapshot": {"enabled": True, "release": {"values": settings}}}
    objects = rendering.render(rendering.ADDONS, rendering.changed(values, change))
    (found,) = addon_operator.manifests(objects, "etcd-snapshot")
    found["metadata"]["namespace"] = NAMESPACE
    return found


def credential(state: State, secret_key: str = object_storage.SECRET_KEY) -> Object:
    """The Secret that a tenant creates, as the page about it says."""
    texts = {
        f"{REMOTE}_TYPE": "s3",
        f"{REMOTE}_PROVIDER": "Other",
        f"{REMOTE}_ENDPOINT": object_storage.url(state),
        f"{REMOTE}_REGION": object_storage.REGION,
        f"{REMOTE}_ACCESS_KEY_ID": object_storage.ACCESS_KEY,
        f"{REMOTE}_SECRET_ACCESS_KEY": secret_key,
        "RCLONE_CA_CERT": "/etc/etcd-snapshot/ca.crt",
        "ca.crt": Pki(state).authority.read_text(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET, "namespace": NAMESPACE},
        "data": {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()},
    }


def config_map(name: str, text: str) -> Object:
    """Something that a user of the cluster has."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"text": text},
    }


class TestEtcdSnapshot(unittest.TestCase):
    state: ClassVar[State]
    place: ClassVar[Path]
    api: ClassVar[Api]
    job: ClassVar[Object]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        programs = (backup.ETCDCTL, backup.ETCDUTL, object_storage.RCLONE, object_storage.VERSITYGW)
        if why := program.missing(*programs):
            raise unittest.SkipTest(why)
        temporary = tempfile.TemporaryDirectory(prefix="snapshot-")
        cls.addClassCleanup(temporary.cleanup)
        cls.place = Path(temporary.name)
        cls.state = cls.enterClassContext(processes.throw_away(cls.place / "cluster"))
        cls.api = server.start(cls.state, binaries.build())
        object_storage.start(cls.state)
        cls.job = cron_job()
        cls.api.apply(cls.job)

    def setUp(self) -> None:
        super().setUp()
        self.api.apply(credential(self.state))

    def run_job(self, name: str) -> SnapshotJob:
        return SnapshotJob(self.state, self.job, name).run()

    def rclone(self, *arguments: str) -> str:
        """What an operator does with the bucket, with a credential of the same form."""
        data = credential(self.state)["data"]
        variables = {key: base64.b64decode(text).decode() for key, text in data.items()}
        variables["RCLONE_CA_CERT"] = str(Pki(self.state).authority)
        done = subprocess.run(
            [str(binaries.one(object_storage.RCLONE)), "--config=/notfound", *arguments],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=True,
        )
        return done.stdout

    def names(self, directory: str = DIRECTORY) -> set[str]:
        return set(self.rclone("lsf", f"snapshots:{directory}").split())

    def upload(self, target: str, age: datetime.timedelta) -> None:
        """An object that is as old as that."""
        file = self.place / "old"
        file.write_text(target)
        seconds = (datetime.datetime.now(datetime.UTC) - age).timestamp()
        os.utime(file, (seconds, seconds))
        self.rclone("copyto", str(file), f"snapshots:{target}")

    def restored(self, file: Path) -> Connection:
        """A new etcd with the content of a file, and a new API server, with other certificates."""
        state = self.enterContext(processes.throw_away(self.place / file.stem))
        peers = f"http://127.0.0.1:{state.port('etcd-peers')}"
        subprocess.run(
            [
                str(binaries.one(backup.ETCDUTL)),
                *("snapshot", "restore", str(file)),
                f"--data-dir={state.path('management', 'etcd')}",
                *("--name=default", f"--initial-cluster=default={peers}"),
                f"--initial-advertise-peer-urls={peers}",
                *(f"--bump-revision={backup.BUMP}", "--mark-compacted"),
            ],
            capture_output=True,
            timeout=TIMEOUT,
            check=True,
        )
        server.start(state, binaries.build())
        return Connection(server.kubeconfig(state))

    def test_a_restore_brings_the_objects_of_the_snapshot(self) -> None:
        path = "/api/v1/namespaces/default/configmaps"
        for name in ("changed", "deleted"):
            self.api.apply(config_map(name, "at the snapshot"))
        done = self.run_job("etcd-snapshot-29800000")
        self.assertEqual({"save": 0, "upload": 0, "clean-up": 0}, done.ended, done.log)
        self.assertEqual(0o600, done.snapshot_mode)
        self.api.apply(config_map("changed", "later"))
        self.api.apply(config_map("added", "later"))
        self.api.delete(f"{path}/deleted")
        before = Connection(server.kubeconfig(self.state)).request("GET", path)

        file = self.place / "restored.db"
        self.rclone("copyto", f"snapshots:{DIRECTORY}/etcd-snapshot-29800000.db", str(file))
        restored = self.restored(file)
        after = restored.request("GET", path)
        texts = {one["metadata"]["name"]: one.get("data") for one in after["items"]}
        text = {"text": "at the snapshot"}
        self.assertEqual((text, text), (texts.get("changed"), texts.get("deleted")))
        self.assertNotIn("added", texts)
        revisions = [int(one["metadata"]["resourceVersion"]) for one in (before, after)]
        self.assertLess(*revisions)
        secret = f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}"
        self.assertEqual(credential(self.state)["data"], restored.request("GET", secret)["data"])
        restored.request("POST", path, body=config_map("after-the-restore", "new"))
        with self.assertRaises(Refused):
            restored.request("GET", f"{path}/added")

    def test_old_snapshots_are_deleted_and_nothing_else(self) -> None:
        old, young = datetime.timedelta(days=KEEP_DAYS + 1), datetime.timedelta(days=KEEP_DAYS - 1)
        other = f"{BUCKET}/{PREFIX}/other"
        for target, age in (
            (f"{DIRECTORY}/etcd-snapshot-29700000.db", old),
            (f"{DIRECTORY}/etcd-snapshot-29750000.db", young),
            (f"{DIRECTORY}/notes.txt", old),
            (f"{DIRECTORY}/kept/etcd-snapshot-29700000.db", old),
            (f"{other}/etcd-snapshot-29700000.db", old),
        ):
            self.upload(target, age)
        done = self.run_job("etcd-snapshot-29800001")
        self.assertEqual(0, done.ended.get("clean-up"), done.log)
        names = self.names()
        self.assertNotIn("etcd-snapshot-29700000.db", names)
        kept = {"etcd-snapshot-29750000.db", "etcd-snapshot-29800001.db", "notes.txt", "kept/"}
        self.assertEqual(kept, kept & names)
        for directory in (f"{DIRECTORY}/kept", other):
            self.assertEqual({"etcd-snapshot-29700000.db"}, self.names(directory))

    def test_nothing_is_deleted_while_no_snapshot_arrives(self) -> None:
        target = "etcd-snapshot-29600000.db"
        self.upload(f"{DIRECTORY}/{target}", datetime.timedelta(days=KEEP_DAYS + 1))
        self.api.apply(credential(self.state, secret_key="another-one"))
        done = self.run_job("etcd-snapshot-29800002")
        self.assertEqual({"save", "upload"}, set(done.ended))
        self.assertNotEqual(0, done.ended["upload"])
        self.assertIn("StatusCode: 403", done.log)
        self.assertNotIn("another-one", done.log)
        names = self.names()
        self.assertIn(target, names)
        self.assertNotIn("etcd-snapshot-29800002.db", names)

    def test_a_second_attempt_replaces_the_first(self) -> None:
        found = []
        for _ in range(2):
            done = self.run_job("before-the-upgrade")
            self.assertEqual(0, done.ended.get("clean-up"), done.log)
            found.append(self.names())
        self.assertIn("before-the-upgrade.db", found[0])
        self.assertEqual(*found)
