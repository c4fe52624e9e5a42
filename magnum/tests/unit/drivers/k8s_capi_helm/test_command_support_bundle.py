# SPDX-License-Identifier: Apache-2.0
"""The archive has everything about a cluster, and no secret."""

from __future__ import annotations

import base64
import json
import pathlib
import stat
import tarfile
from typing import Any
import urllib.parse

import fixtures

from magnum.drivers.k8s_capi_helm.commands.support import bundle_files
from magnum.drivers.k8s_capi_helm.model import names
from magnum.tests.unit.drivers.k8s_capi_helm.command_case import (
    CommandCase,
    OK,
    UNKNOWN,
    WARNING,
)
from magnum.tests.unit.drivers.k8s_capi_helm.driver_case import NAMESPACE, RELEASE, SECRET_TEXT
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one

PROXY_PASSWORD = "proxy-p4ssw0rd"  # noqa: S105 - of a test
DATABASE_PASSWORD = "d4t4b4se-p4ssw0rd"  # noqa: S105 - of a test
JOIN_TOKEN = "abcdef.0123456789abcdef"  # noqa: S105 - of a test


class BundleCase(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = self.directory / "one.tar.gz"

    def bundle(self, *argv: str, status: int = OK) -> dict[str, str]:
        """The files of the archive by name."""
        printed = self.command(
            "support-bundle", "demo", "--output", str(self.path), "-f", "json", *argv
        )
        self.assertEqual(status, printed.status, printed.out + printed.error)
        self.listed = {row["File"]: row for row in printed.rows()}
        with tarfile.open(self.path) as archive:
            found = {}
            for member in archive.getmembers():
                file = archive.extractfile(member)
                assert file is not None
                found[member.name.removeprefix("one/")] = file.read().decode()
            return found

    def secrets(self) -> set[str]:
        """Every secret that is in the Secrets of the cluster and on this host."""
        found = {PROXY_PASSWORD, DATABASE_PASSWORD, SECRET_TEXT, "the-token-of-the-kubeconfig"}
        for secret in self.kube.list(names.SECRET, NAMESPACE):
            for key, encoded in secret["data"].items():
                text = base64.b64decode(encoded).decode()
                if key == "tls.key" or "PRIVATE KEY" in text:
                    found |= {line for line in text.splitlines() if len(line) > 40}
        return found


class TestNoSecret(BundleCase):
    def setUp(self) -> None:
        super().setUp()
        self.config(
            group="database", connection=f"mysql+pymysql://magnum:{DATABASE_PASSWORD}@db/magnum"
        )
        self.made()

    def spread(self) -> None:
        """Programs and people have written secrets into other fields."""
        cluster = self.kube.list(names.CLUSTER, NAMESPACE)[0]
        cluster["metadata"]["annotations"] = {
            "note": f"it is {SECRET_TEXT}",
            "encoded": base64.b64encode(SECRET_TEXT.encode()).decode(),
            "url": f"http://a/?secret={urllib.parse.quote(SECRET_TEXT, safe='')}",
        }
        self.kube.put(names.CLUSTER, cluster)
        machine = self.kube.list(names.MACHINE, NAMESPACE)[0]
        machine["status"]["failureMessage"] = f"kubeadm join --token {JOIN_TOKEN}"
        self.kube.put(names.MACHINE, machine)
        row = self.cluster()
        row.status_reason = f"proxy http://me:{PROXY_PASSWORD}@proxy:3128 refused"
        row.labels = {**row.labels, "http_proxy": f"http://me:{PROXY_PASSWORD}@proxy:3128"}
        row.save()

    def test_no_secret_is_in_it(self) -> None:
        self.spread()
        log = self.directory / "conductor.log"
        log.write_text(
            f"{self.cluster().uuid} logs in with {SECRET_TEXT}\n"
            "a line about another cluster\n"
            f"{RELEASE}: join {JOIN_TOKEN}\n"
        )
        files = self.bundle("--conductor-log", str(log))
        everything = "\n".join(files.values())
        for secret in at_least_one({*self.secrets(), JOIN_TOKEN}):
            for form in (
                secret,
                base64.b64encode(secret.encode()).decode(),
                urllib.parse.quote(secret, safe=""),
            ):
                self.assertNotIn(form, everything)
        self.assertEqual(
            f"{self.cluster().uuid} logs in with ***\n{RELEASE}: join ***\n",
            files["logs/1-conductor.log"],
        )

    def test_it_has_what_support_needs(self) -> None:
        files = self.bundle()
        self.assertEqual({"README.txt", "host/check.txt", *bundle_files.FILES}, set(files))
        self.assertEqual({str(self.path), *files}, set(self.listed))
        self.assertIn("nothing is wrong", files["why.txt"])
        self.assertEqual(self.cluster().uuid, self.json(files, "magnum/cluster.json")["uuid"])
        self.assertEqual(
            ["default-master", "default-worker"],
            sorted(one["name"] for one in self.json(files, "magnum/nodegroups.json")),
        )
        objects = self.json(files, "management/objects.json")
        self.assertEqual(RELEASE, objects["cluster"]["metadata"]["name"])
        self.assertTrue(objects["machines"])
        self.assertEqual(
            names.lease(RELEASE), self.json(files, "management/lease.json")["metadata"]["name"]
        )
        self.assertIn("nodeGroups", self.json(files, "helm/values.json"))
        credential = f"{RELEASE}-cloud-credentials"
        listed = {one["metadata"]["name"] for one in self.json(files, "management/secrets.json")}
        self.assertIn(credential, listed)
        self.assertIn("capi_helm.helm_timeout", files["host/configuration.txt"])
        self.assertIn("oslo.config ", files["host/versions.txt"])
        self.assertIn("database OK", files["host/check.txt"])
        for name in files:
            self.assertIn(name, files["README.txt"] + "README.txt")

    def json(self, files: dict[str, str], name: str) -> Any:
        return json.loads(files[name])

    def test_only_its_owner_reads_it(self) -> None:
        self.bundle()
        self.assertEqual(0o600, stat.S_IMODE(self.path.stat().st_mode))

    def test_nothing_is_written_but_the_archive(self) -> None:
        before = sorted(map(str, self.kube.everything())), self.cluster().as_dict()
        self.bundle()
        self.assertEqual(
            before, (sorted(map(str, self.kube.everything())), self.cluster().as_dict())
        )


class TestWhatCannotBeRead(BundleCase):
    def test_another_project_with_the_same_names(self) -> None:
        self.made()
        foreign = self.kube.list(names.MACHINE, NAMESPACE)[0]
        foreign["metadata"]["name"] = "another-cluster-machine"
        foreign["metadata"]["labels"][names.LABEL_CLUSTER_NAME] = "another-cluster"
        self.kube.put(names.MACHINE, foreign)
        self.assertNotIn("another-cluster", "".join(self.bundle().values()))

    def test_a_management_cluster_that_is_away(self) -> None:
        self.made()
        self.kube.unreachable = True
        files = self.bundle(status=WARNING)
        self.assertNotIn("management/objects.json", files)
        self.assertEqual(0, self.listed["management/objects.json"]["Bytes"])
        self.assertIn("not read", self.listed["management/objects.json"]["Content"])
        self.assertIn("could not be read", files["README.txt"])
        self.assertIn("magnum/cluster.json", files)

    def test_a_cluster_without_a_release(self) -> None:
        self.made()
        row = self.cluster()
        row.stack_id = None
        row.save()
        files = self.bundle(status=WARNING)
        self.assertIn("magnum/cluster.json", files)
        self.assertNotIn("helm/values.json", files)

    def test_a_cluster_of_another_driver(self) -> None:
        self.made()
        row = self.cluster()
        row.stack_id = "kube-abcde"
        row.save()
        self.assert_refused("The cluster was not created by this driver.")

    def test_an_archive_that_exists_stays(self) -> None:
        self.made()
        self.path.write_text("mine")
        self.assert_refused("File exists")
        self.assertEqual("mine", self.path.read_text())

    def test_a_log_that_cannot_be_read(self) -> None:
        self.made()
        self.assert_refused("No such file", "--conductor-log", str(self.directory / "none.log"))
        self.assertFalse(self.path.exists())

    def assert_refused(self, text: str, *argv: str) -> None:
        printed = self.command("support-bundle", "demo", "--output", str(self.path), *argv)
        self.assertEqual((UNKNOWN, ""), (printed.status, printed.out))
        self.assertIn(text, printed.error)
