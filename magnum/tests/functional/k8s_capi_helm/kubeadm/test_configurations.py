# SPDX-License-Identifier: Apache-2.0
"""Every shape of a cluster, as kubeadm of every minor release reads it.

The chart is rendered for the newest patch release that the table has of each minor; Cluster API
makes bootstrap data of that; a directory takes the place of the machine.
"""

from __future__ import annotations

from concurrent import futures
import os
from pathlib import Path
import re
import shlex
import sys
import tempfile
from typing import Any
import unittest

import yaml

from magnum.tests.functional.k8s_capi_helm.charts import rendering
from magnum.tests.functional.k8s_capi_helm.charts.rendering import Object
from magnum.tests.functional.k8s_capi_helm.kubeadm import (
    bootstrap_data,
    known_flags,
    machine,
    shapes,
)
from magnum.tests.functional.k8s_capi_helm.kubeadm.bootstrap_data import BootstrapData
from magnum.tests.functional.k8s_capi_helm.kubeadm.machine import Outcome
from magnum.tests.unit.drivers.k8s_capi_helm.house.nonempty import at_least_one
from sandbox.management import binaries, kubernetes_releases
from sandbox.management.kubernetes_releases import KubernetesRelease

#: Part of ClusterConfiguration -> its static Pod.
COMPONENTS = {
    "apiServer": "kube-apiserver",
    "controllerManager": "kube-controller-manager",
    "scheduler": "kube-scheduler",
    "etcd": "etcd",
}


def flags(component: Any) -> dict[str, str]:
    """Flags of a part of kubeadm's configuration, in the shape of either API version."""
    given = component.get("extraArgs") or {}
    if isinstance(given, dict):
        return {name: str(value) for name, value in given.items()}
    return {one["name"]: str(one["value"]) for one in given}


class Configurations(unittest.TestCase):
    """The shapes with one release; subclasses say which."""

    release: KubernetesRelease

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.objects = shapes.rendered(cls.release)
        cls.made = bootstrap_data.of_clusters(cls.objects)
        cls.program = str(binaries.one(kubernetes_releases.kubeadm(cls.release)))
        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        cls.place = Path(place.name)
        cls.machines = [(name, one) for name, found in cls.made.items() for one in found]
        # Most shapes have workers that are set up alike.
        different = {made.fingerprint: made for _, made in cls.machines}
        with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            outcomes = pool.map(cls._set_up, range(len(different)), different.values())
            cls.outcomes = dict(zip(different, outcomes, strict=True))
        cls.say(f"{len(cls.made)} shapes, {len(cls.machines)} machines, {len(different)} different")

    @classmethod
    def say(cls, text: str) -> None:
        """Show a number of this run."""
        sys.stderr.write(f"kubeadm {cls.release.version}: {text}\n")

    @classmethod
    def _set_up(cls, number: int, made: BootstrapData) -> Outcome:
        return machine.set_up(made, cls.place / str(number), cls.program)

    def every(self, *kinds: str) -> list[tuple[str, BootstrapData, Outcome]]:
        """Name of the shape, data and outcome of every machine of these kinds."""
        found = [
            (name, made, self.outcomes[made.fingerprint])
            for name, made in self.machines
            if made.kind in (kinds or (made.kind,))
        ]
        return list(at_least_one(found))

    def test_every_kind_of_machine_of_every_shape(self) -> None:
        for name, found in at_least_one(self.made.items()):
            groups = rendering.by_kind(self.objects[name], "MachineDeployment")
            self.assertEqual(
                ["init", "join", *("worker" for _ in groups)], [one.kind for one in found], name
            )
            self.assertEqual({f"v{self.release.version}"}, {one.version for one in found}, name)

    def test_kubeadm_accepts_them(self) -> None:
        for name, made, outcome in self.every():
            with self.subTest(shape=name, machine=made.kind, group=made.group):
                self.assertEqual((0, True), (outcome.returncode, outcome.is_set_up), outcome.output)
                # What it does not know, or will not know any more, it only warns of.
                self.assertNotRegex(outcome.output, r"(?i)unknown field|deprecated|strict decoding")
                self.assertIn("\nok\n", f"\n{outcome.output}")

    def test_static_pods_have_the_flags_of_the_chart(self) -> None:
        # A dry run of a join reads a ClusterConfiguration of kubeadm's own.
        for name, _, outcome in self.every("init"):
            spec = rendering.only(self.objects[name], "KubeadmControlPlane")["spec"]
            wanted = spec["kubeadmConfigSpec"]["clusterConfiguration"]
            for part, pod in COMPONENTS.items():
                asked = wanted.get(part, {})
                asked = asked.get("local", {}) if part == "etcd" else asked
                container = yaml.safe_load(outcome.text(f"{pod}.yaml"))["spec"]["containers"][0]
                for flag, value in flags(asked).items():
                    with self.subTest(shape=name, flag=flag):
                        self.assertIn(f"--{flag}={value}", container["command"])
                mounts = {one["mountPath"] for one in container.get("volumeMounts", [])}
                paths = {one["mountPath"] for one in asked.get("extraVolumes", [])}
                self.assertLessEqual(paths, mounts, name)

    def test_kubelets_have_the_flags_of_the_chart(self) -> None:
        for name, made, outcome in self.every():
            with self.subTest(shape=name, machine=made.kind, group=made.group):
                told = kubelet_flags(outcome)
                self.assertEqual(machine.HOSTNAME, told["hostname-override"])
                self.assertLessEqual(
                    registration_flags(self.objects[name], made).items(), told.items()
                )

    def test_kubelets_know_their_flags(self) -> None:
        known = known_flags.of_kubelet(self.release)
        self.assertLess(100, len(known))
        for name, made, outcome in self.every():
            with self.subTest(shape=name, machine=made.kind, group=made.group):
                self.assertEqual(set(), set(kubelet_flags(outcome)) - known)

    def test_the_programs_of_the_sandbox_know_their_flags(self) -> None:
        if not binaries.KUBERNETES.startswith(f"{self.release.minor}."):
            self.skipTest(f"the sandbox has the programs of {binaries.KUBERNETES}")
        for name, _, outcome in self.every("init"):
            for pod in ("kube-apiserver", "kube-controller-manager", "etcd"):
                with self.subTest(shape=name, program=pod):
                    self.assertEqual("", known_flags.refused(tuple(command(outcome, pod))))


def command(outcome: Outcome, pod: str) -> list[str]:
    """The command of a static Pod."""
    (container,) = yaml.safe_load(outcome.text(f"{pod}.yaml"))["spec"]["containers"]
    found: list[str] = container["command"]
    return found


def kubelet_flags(outcome: Outcome) -> dict[str, str]:
    """Flags that kubeadm gives the kubelet."""
    found = re.fullmatch(r'KUBELET_KUBEADM_ARGS="(.*)"\n', outcome.text("kubeadm-flags.env"))
    assert found is not None
    return dict(word.removeprefix("--").partition("=")[::2] for word in shlex.split(found.group(1)))


def registration_flags(objects: list[Object], made: BootstrapData) -> dict[str, str]:
    """Flags of the kubelet that the chart wants for a machine."""
    if made.kind == "worker":
        group = next(
            one
            for one in rendering.by_kind(objects, "MachineDeployment")
            if one["metadata"]["name"] == made.group
        )
        name = group["spec"]["template"]["spec"]["bootstrap"]["configRef"]["name"]
        template = next(one for one in objects if rendering.identity(one)[1] == name)
        spec = template["spec"]["template"]["spec"]
    else:
        plane = rendering.only(objects, "KubeadmControlPlane")
        spec = plane["spec"]["kubeadmConfigSpec"]
    node = spec[f"{'init' if made.kind == 'init' else 'join'}Configuration"]["nodeRegistration"]
    found = flags({"extraArgs": node.get("kubeletExtraArgs")})
    # On Flatcar a value is a variable of the shell, and none of cloud-init's.
    return {name: machine.with_facts(value) for name, value in found.items()}


def of_minor(release: KubernetesRelease) -> type[unittest.TestCase]:
    """The tests with one release."""
    name = f"Kubernetes{release.minor.replace('.', '_')}"
    return type(name, (Configurations,), {"release": release, "__module__": __name__})


def load_tests(
    loader: unittest.TestLoader, _tests: unittest.TestSuite, _pattern: str | None
) -> unittest.TestSuite:
    return unittest.TestSuite(
        loader.loadTestsFromTestCase(of_minor(one)) for one in kubernetes_releases.selected()
    )
