# SPDX-License-Identifier: Apache-2.0
"""A whole management cluster without a cloud: the test writes what CAPO and Cluster API would.

It is started once for all tests of this module; nobody reconciles but the two players.
"""

import json
import os
from pathlib import Path
import shutil
import signal
import tempfile
import time
from typing import Any
import unittest

from sandbox import management, processes
from sandbox.addons import rules
from sandbox.management import binaries, controllers, faults
from sandbox.management.api import Api
from sandbox.management.connection import Connection, Refused
from sandbox.state import State
from sandbox.tests.management import builders

NAMESPACE = "magnum-p1"
PATIENCE = 120.0
_started: dict[str, Any] = {}


def setUpModule() -> None:
    if not binaries.built():
        raise unittest.SkipTest("the programs are not built; `python -m sandbox build` does it")
    place = Path(tempfile.mkdtemp())
    unittest.addModuleCleanup(shutil.rmtree, place)
    state = State(place)
    unittest.addModuleCleanup(processes.stop_all, state)
    management.up_api(state)
    controllers.start_players(state, binaries.build(state))
    _started["state"] = state
    Api(management.kubeconfig(state)).apply(builders.namespace(NAMESPACE))


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.state: State = _started["state"]
        self.admin = Connection(management.kubeconfig(self.state))
        self.api = Api(management.kubeconfig(self.state))

    def until(self, what: str, true: Any) -> None:
        """Wait until something is true."""
        deadline = time.monotonic() + PATIENCE
        while not true():
            self.assertLess(time.monotonic(), deadline, f"{what}: not after {PATIENCE:.0f} s")
            time.sleep(0.2)

    def refusal(self, document: dict[str, Any]) -> str:
        with self.assertRaises(Refused) as caught:
            self.api.apply(document)
        return str(caught.exception)


class TestApiServer(Case):
    def test_webhooks_fill_in_and_refuse(self) -> None:
        good = builders.machine_deployment(NAMESPACE, "good", version="1.34.4")
        self.api.apply(good)
        found = self.api.get(builders.path_of(good)) or {}
        self.assertEqual("v1.34.4", found["spec"]["template"]["spec"]["version"])
        bad = builders.machine_deployment(NAMESPACE, "bad", version="latest")
        self.assertIn("must be a valid semantic version", self.refusal(bad))

    def test_objects_are_converted_to_the_older_version(self) -> None:
        self.api.apply(builders.cluster(NAMESPACE, "converted"))
        old = f"/apis/cluster.x-k8s.io/v1beta1/namespaces/{NAMESPACE}/clusters/converted"
        found = self.api.get(old) or {}
        kind = found["spec"]["infrastructureRef"]["apiVersion"]
        self.assertEqual("infrastructure.cluster.x-k8s.io/v1beta1", kind)

    def test_nobody_reconciles(self) -> None:
        document = builders.cluster(NAMESPACE, "untouched")
        self.api.apply(document)
        # The managers saw the next object too when its webhook has answered.
        self.api.apply(builders.machine_deployment(NAMESPACE, "later", version="v1.34.4"))
        found = self.api.get(builders.path_of(document)) or {}
        self.assertNotIn("finalizers", found["metadata"])

    def test_addon_provider_refusals_come_from_the_api_server(self) -> None:
        release = builders.helm_release(NAMESPACE, "rel", "oci")
        release["spec"]["chart"]["repo"] = "oci://example.org"
        self.assertIn("spec.chart.repo", self.refusal(release))


class TestDriverUser(Case):
    def setUp(self) -> None:
        super().setUp()
        self.driver = Connection(management.driver_kubeconfig(self.state))

    def status_of(self, method: str, path: str, body: dict[str, Any] | None = None) -> int:
        try:
            self.driver.request(method, path, body=body)
        except Refused as error:
            return error.status
        return 200

    def bind(self, namespace: str, role: str) -> int:
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
        return self.status_of("POST", path, builders.role_binding(role, "magnum"))

    def test_it_reaches_secrets_only_where_it_bound_itself(self) -> None:
        self.assertEqual(
            200, self.status_of("POST", "/api/v1/namespaces", builders.namespace("own"))
        )
        secrets = "/api/v1/namespaces/own/secrets"
        self.assertEqual(403, self.status_of("GET", secrets))
        self.assertEqual(200, self.bind("own", "magnum-k8s-capi-helm"))
        self.until("the role holds", lambda: self.status_of("GET", secrets) == 200)
        for path in ("/api/v1/secrets", "/api/v1/namespaces/kube-system/secrets"):
            self.assertEqual(403, self.status_of("GET", path), path)

    def test_it_binds_no_other_role(self) -> None:
        self.assertEqual(403, self.bind(NAMESPACE, "cluster-admin"))

    def test_it_sees_clusters_everywhere_and_no_other_users_objects(self) -> None:
        self.assertEqual(200, self.status_of("GET", "/apis/cluster.x-k8s.io/v1beta2/clusters"))
        self.assertEqual(403, self.status_of("GET", "/api/v1/configmaps"))


class TestPlayers(Case):
    def test_from_an_active_server_to_a_ready_node_and_away_again(self) -> None:
        cast = builders.Cast(self.admin, self.state, NAMESPACE, "life")
        cast.enter()
        self.until("the workload API server answers", cast.answers)
        self.assertEqual({}, cast.ready_nodes(), "no addon runs yet")
        cast.say_initialized()
        for chart in ("openstack-cloud-controller-manager", "cilium"):
            self.api.apply(builders.helm_release(NAMESPACE, "life", chart))
        self.until("the node is ready", lambda: cast.ready_nodes() == {"life-m": "v1.34.4"})
        self.assertEqual("Deployed", cast.addon_status("cilium")["phase"])
        self.assertEqual(1, cast.addon_status("cilium")["revision"])
        self.until("its objects are named", lambda: cast.addon_status("cilium").get("resources"))
        for one in cast.addon_status("cilium")["resources"]:
            place = f"namespaces/{one['namespace']}/{one['kind'].lower()}s/{one['name']}"
            self.assertTrue(cast.has(f"/apis/{one['apiVersion']}/{place}"), one)
            self.assertFalse(cast.has(f"/apis/{one['apiVersion']}/{place}-not"), one)
        cast.leave()
        self.until("the workload API server is gone", lambda: not cast.answers())

    def test_a_machine_with_the_fault_joins_when_it_is_over(self) -> None:
        fault = faults.FAULTS["node-never-joins"]
        fault.on(self.state, "^late")
        self.addCleanup(fault.off, self.state)
        healthy = builders.Cast(self.admin, self.state, NAMESPACE, "prompt")
        late = builders.Cast(self.admin, self.state, NAMESPACE, "late")
        for cast in (late, healthy):
            cast.enter()
            self.addCleanup(cast.leave)
        self.until("the healthy one joins", healthy.answers)
        self.assertFalse(late.answers())
        fault.off(self.state)
        self.until("the late one joins", late.answers)

    def test_an_addon_waits_with_a_reason_and_is_tried_again_with_one(self) -> None:
        cast = builders.Cast(self.admin, self.state, NAMESPACE, "waits")
        cast.enter()
        self.addCleanup(cast.leave)
        self.api.apply(builders.helm_release(NAMESPACE, "waits", "metrics-server"))
        self.until("it says why", lambda: "'waits' is not ready" in cast.progress("metrics-server"))
        self.assertEqual("Pending", cast.addon_status("metrics-server")["phase"])
        cast.say_initialized()
        broken = builders.helm_release(NAMESPACE, "waits", "broken")
        broken["spec"]["valuesSources"] = [{"template": "a: {{ b.c }}"}]
        self.api.apply(broken)
        # As the addon provider has it: what is not foreseen is tried again, and no phase says so.
        self.until("it is tried", lambda: "'b' is undefined" in cast.progress("broken"))
        self.assertNotEqual("Failed", cast.addon_status("broken").get("phase"))


# What a client may look at to know that an addon is done, and by whose doing.
DONE = {
    "phase": lambda addon: addon["status"]["phase"] == "Deployed",
    "revision": lambda addon: addon["status"]["revision"] == 1,
    "finalizer": lambda addon: rules.FINALIZER in addon["metadata"]["finalizers"],
    "owned by its Cluster": lambda addon: (
        [owner["kind"] for owner in addon["metadata"]["ownerReferences"]] == ["Cluster"]
    ),
    "label of its Cluster": lambda addon: (
        addon["metadata"]["labels"]["addons.stackhpc.com/cluster"] == addon["spec"]["clusterName"]
    ),
    "this spec was handled last": lambda addon: (
        json.loads(annotations(addon)[f"{rules.GROUP}/{rules.LAST_HANDLED}"])["spec"]
        == addon["spec"]
    ),
    "nothing is under way": lambda addon: (
        not [key for key in annotations(addon) if key.startswith(f"{rules.GROUP}/handle_addon")]
    ),
    "checksum of its values": lambda addon: (
        "secret.addons.stackhpc.com/done-values" in annotations(addon)
    ),
}


def annotations(addon: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = addon["metadata"].get("annotations") or {}
    return found


class TestAddonObject(Case):
    def setUp(self) -> None:
        super().setUp()
        self.cast = builders.Cast(self.admin, self.state, NAMESPACE, "done")
        self.cast.enter()
        self.addCleanup(self.cast.leave)
        self.cast.say_initialized()
        self.values = builders.secret(NAMESPACE, "done-values", {"values.yaml": b"a: 1"})
        self.api.apply(self.values)
        # One that was watched before is not told to an addon that comes later.
        self.addCleanup(self.api.delete, builders.path_of(self.values))
        release = builders.helm_release(NAMESPACE, "done", "ccm")
        release["spec"]["valuesSources"] = [{"secret": {"name": "done-values"}}]
        self.path = builders.path_of(release)
        self.api.apply(release)

    def test_every_sign_of_being_done_is_there(self) -> None:
        for what, holds in DONE.items():
            with self.subTest(what):
                self.until(what, lambda holds=holds: self.holds(holds))

    def test_a_changed_secret_makes_helm_run_again(self) -> None:
        self.until("it is installed", lambda: self.revision() == 1)
        changed = builders.secret(NAMESPACE, "done-values", {"values.yaml": b"a: 2"})
        self.api.apply(changed)
        self.until("it is upgraded", lambda: self.revision() == 2)

    def test_deleting_it_uninstalls_it(self) -> None:
        self.until("it is installed", lambda: self.revision() == 1)
        self.api.delete(self.path)
        self.until("it is gone", lambda: self.api.get(self.path) is None)

    def tearDown(self) -> None:
        self.api.delete(self.path)
        self.until("it is gone", lambda: self.api.get(self.path) is None)

    def revision(self) -> int:
        return int(((self.api.get(self.path) or {}).get("status") or {}).get("revision") or 0)

    def holds(self, sign: Any) -> bool:
        try:
            return bool(sign(self.api.get(self.path)))
        except KeyError:
            return False


class TestRecovery(Case):
    def test_up_again_after_everything_was_killed(self) -> None:
        self.api.apply(builders.config_map("kept"))
        for entry in processes.all_recorded(self.state):
            os.killpg(entry.pid, signal.SIGKILL)
        self.until("all are dead", lambda: not processes.owned(self.state))
        management.up_api(self.state)
        controllers.start_players(self.state, binaries.build(self.state))
        self.assertIsNotNone(self.api.get("/api/v1/namespaces/default/configmaps/kept"))
        conditions = {condition for _, condition in management.status(self.state)}
        self.assertEqual({"running (real)", "running (simulated)"}, conditions)

    def test_up_twice_changes_nothing(self) -> None:
        before = processes.all_recorded(self.state)
        management.up_api(self.state)
        self.assertEqual(before, processes.all_recorded(self.state))

    def test_a_stopped_api_server_comes_back(self) -> None:
        fault = faults.FAULTS["management-api-stopped"]
        self.addCleanup(fault.off, self.state)
        for how in (None, faults.HANG):
            with self.subTest(how or "stopped"):
                fault.on(self.state, how)
                self.assertFalse(self.api.answers())
                said = dict(management.status(self.state))["kube-apiserver"]
                self.assertEqual("not answering (real)" if how else "stopped (real)", said)
                fault.off(self.state)
                self.assertTrue(self.api.answers())
