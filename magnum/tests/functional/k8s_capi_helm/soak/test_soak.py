# SPDX-License-Identifier: Apache-2.0
"""After half an hour of random requests a conductor holds no more than it did before.

What is made once (pools of connections, caches, compiled queries) is there at half time; the last
look is held against that one.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
import subprocess
import sys
import tempfile
from typing import Any
import unittest
import uuid

from magnum.tests.functional.k8s_capi_helm.adoption.objects import ObjectStore
from magnum.tests.functional.k8s_capi_helm.envtest import kubeconfig
from magnum.tests.functional.k8s_capi_helm.kills import project, site
from magnum.tests.functional.k8s_capi_helm.soak import conductor

MINUTES = float(os.environ.get("K8S_CAPI_HELM_SOAK_MINUTES") or 30)
CLUSTERS = int(os.environ.get("K8S_CAPI_HELM_SOAK_CLUSTERS") or 50)
SEED = os.environ.get("K8S_CAPI_HELM_SEED") or uuid.uuid4().hex[:8]
#: Minutes beside those of the requests, for a slow machine.
_MORE = 60
#: Descriptors that may come and go: pools of connections.
_POOLED = 10
#: By how much of itself memory may differ from look to look, and the number of objects.
_BREATH, _GARBAGE = 0.05, 0.01


class TestSoak(unittest.TestCase):
    """One soak; each test is a look at what came of it."""

    report: dict[str, Any]
    left: list[Any]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        sys.stdout.write(f"{MINUTES:g} minutes, {CLUSTERS} clusters, K8S_CAPI_HELM_SEED={SEED}\n")
        sys.stdout.flush()
        prefix = f"soak-{uuid.uuid4().hex[:8]}"
        store = ObjectStore(kubeconfig(), f"{prefix}-p1")
        cls.addClassCleanup(store.close)
        with tempfile.TemporaryDirectory(prefix="soak-") as directory:
            place = Path(directory)
            (place / "tmp").mkdir()
            project.configure(
                place, kubeconfig_file=kubeconfig(), namespace_prefix=prefix, watch_staleness="45"
            )
            with (place / "conductor.log").open("wb") as log:
                done = subprocess.run(
                    [
                        *(sys.executable, "-W", "ignore", "-m", conductor.__name__),
                        *(directory, str(MINUTES), str(CLUSTERS), SEED),
                    ],
                    stderr=log,
                    env={**os.environ, "TMPDIR": str(place / "tmp")},
                    timeout=(MINUTES + _MORE) * 60,
                    check=False,
                )
            report = place / conductor.REPORT
            if done.returncode or not report.exists():
                raise AssertionError((place / "conductor.log").read_text(errors="replace")[-5000:])
            cls.report = json.loads(report.read_text())
        cls.left = [key for key in store.snapshot() if key[0] not in site.PASSED]

    def check_same(self, what: str, more: float) -> None:
        looks = self.report["looks"]
        self.assertLessEqual(looks[-1][what], looks[len(looks) // 2 - 1][what] + more, looks)

    def check_flat(self, what: str, part: float) -> None:
        self.check_same(what, part * self.report["looks"][0][what])

    def test_every_request_is_carried_out(self) -> None:
        sys.stdout.write(f"requests: {self.report['requests']}\n")
        self.assertEqual([], self.report["wrong"], "\n".join(self.report["wrong"]))

    def test_nothing_is_left_when_all_is_deleted(self) -> None:
        self.assertEqual(([], []), (self.report["left"], self.left))

    def test_no_descriptor_leaks(self) -> None:
        self.check_same("descriptors", _POOLED)

    def test_no_thread_leaks(self) -> None:
        self.check_same("threads", 0)

    def test_no_process_leaks(self) -> None:
        self.assertEqual({0}, {one["processes"] for one in self.report["looks"]})

    def test_no_temporary_file_leaks(self) -> None:
        self.check_same("files", 0)

    def test_memory_is_flat(self) -> None:
        self.check_flat("memory", _BREATH)

    def test_nothing_is_kept_outside_of_python(self) -> None:
        self.check_flat("allocated", _BREATH)

    def test_no_object_leaks(self) -> None:
        self.check_flat("things", _GARBAGE)
