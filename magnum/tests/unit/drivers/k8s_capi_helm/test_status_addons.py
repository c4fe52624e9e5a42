# SPDX-License-Identifier: Apache-2.0
"""What is reported of an addon that the provider retries for ever, or does not start."""

from __future__ import annotations

import dataclasses
import datetime
import json

import testtools

from magnum.drivers.k8s_capi_helm import model, status
from magnum.drivers.k8s_capi_helm.model import Json
from magnum.drivers.k8s_capi_helm.status.objects import addons
from magnum.tests.unit.drivers.k8s_capi_helm import builders
from magnum.tests.unit.drivers.k8s_capi_helm.builders import NOW

KEY = "addons.stackhpc.com/handle_addon_updated"
HANDLED = "addons.stackhpc.com/last-handled-configuration"
#: A clock that is of another day than those of the management cluster and of the conductor.
PROVIDER = datetime.datetime(2024, 2, 29, 23, 50, tzinfo=datetime.timezone.utc)
YAML = (
    "mapping values are not allowed here\n"
    '  in "<unicode string>", line 1, column 331:\n'
    "    application_credential_secret: hidden\n"
)


def progress(minutes: float = 11.0, **different: object) -> dict[str, str]:
    """What kopf keeps of a handler that has tried for so long."""
    record = {
        "started": PROVIDER.isoformat(),
        "delayed": (PROVIDER + datetime.timedelta(minutes=minutes)).isoformat(),
        "purpose": "create",
        "retries": 12,
        "success": False,
        "failure": False,
        "message": "'b' is undefined",
    }
    return {KEY: json.dumps({**record, **different})}


def waiting(annotations: dict[str, str], phase: str = "Pending", **fields: object) -> Json:
    """An addon that is not deployed."""
    one = builders.addon("csi-cinder")
    one["metadata"]["annotations"] = annotations
    one["status"] = {"phase": phase} if phase else {}
    one["spec"].update(fields)
    return one


def among(addon: Json, age: float | None = None) -> model.Observed:
    """A cluster of which all is in place but for this addon; its age is in minutes.

    The look is taken at :data:`NOW` by the clock of the API server.
    """
    addon["metadata"].pop("creationTimestamp", None)
    if age is not None:
        created = NOW - datetime.timedelta(minutes=age)
        addon["metadata"]["creationTimestamp"] = created.isoformat()
    others = builders.core_addons()[:-1]
    return dataclasses.replace(builders.observed(), addons=(*others, addon), asof=NOW)


class RetriedTest(testtools.TestCase):
    """Annotations and phase of the addon, and what is reported, None for nothing."""

    REPORTED = "csi-cinder: every attempt to install it fails: 'b' is undefined"
    CASES: tuple[tuple[str, Json, str | None], ...] = (
        ("its template is broken", waiting(progress()), REPORTED),
        ("it was deployed before", waiting(progress(), "Deployed"), REPORTED),
        ("helm fails with no error that it knows", waiting(progress(), "Installing"), REPORTED),
        ("it has not tried for long", waiting(progress(9.9)), None),
        ("its key names a field", waiting({f"{KEY}.spec": progress()[KEY]}), REPORTED),
        (
            "it does not say why",
            waiting(progress(message=None)),
            "csi-cinder: every attempt to install it fails",
        ),
        (
            "a broken document is quoted",
            waiting(progress(message=YAML)),
            "csi-cinder: every attempt to install it fails: mapping values are not allowed here",
        ),
        (
            "it waits for the cluster",
            waiting(progress(message="cluster 'demo-x' is not ready")),
            None,
        ),
        ("a time is missing", waiting(progress(started=None)), None),
        ("a time is none", waiting(progress(delayed="later")), None),
        ("the record is none", waiting({KEY: "[]"}), None),
        ("the record is broken", waiting({KEY: "{"}), None),
        ("there is no record", waiting({}, "Installing"), None),
    )

    def test_what_is_told(self):
        for what, addon, wanted in self.CASES:
            with self.subTest(what):
                issue = addons.issue_of(addon, among(addon))
                self.assertEqual(wanted, issue.text if issue else None)
                if issue:
                    self.assertEqual(PROVIDER, issue.since)
                self.assertFalse(addons.is_addon_deployed(addon))

    def test_a_failure_is_told_first(self):
        addon = waiting(progress(), "Failed")
        addon["status"]["failureMessage"] = "chart not found"
        self.assertEqual("csi-cinder: chart not found", addons.issue_of(addon, among(addon)).text)

    def test_reason_and_health_have_it(self):
        verdict = status.evaluate(among(waiting(progress())), builders.state(), NOW)
        self.assertEqual("CREATE_IN_PROGRESS", verdict.status)
        self.assertIn(f"addon: {self.REPORTED}", verdict.reason)
        self.assertEqual("UNHEALTHY", verdict.health)
        self.assertEqual(self.REPORTED, verdict.health_reason["addons"])

    def test_an_optional_addon_is_told_in_health_alone(self):
        one = {**waiting(progress()), "metadata": builders.addon("monitoring")["metadata"]}
        one["metadata"]["annotations"] = progress()
        observed = builders.observed()
        observed = dataclasses.replace(observed, addons=(*observed.addons, one))
        verdict = status.evaluate(observed, builders.state("UPDATE_COMPLETE"), NOW)
        self.assertEqual("UPDATE_COMPLETE", verdict.status)
        self.assertEqual(
            "monitoring: every attempt to install it fails: 'b' is undefined",
            verdict.health_reason["addons"],
        )


class NotBegunTest(testtools.TestCase):
    """An addon that is not started: its age by the API server's clock, and what is reported."""

    REPORTED = "csi-cinder: the addon provider has not begun to install it"

    def test_what_is_told(self):
        for what, addon, age, wanted in (
            ("no phase", waiting({}, ""), 11.0, self.REPORTED),
            ("seen, and no more", waiting({}, "Pending"), 11.0, self.REPORTED),
            ("young", waiting({}, ""), 9.9, None),
            ("helm runs", waiting({}, "Installing"), 60.0, None),
            ("it waits", waiting(progress(1.0), "Pending"), 60.0, None),
            ("paused", waiting({}, "Pending", paused=True), 60.0, None),
            ("its age is unknown", waiting({}, ""), None, None),
        ):
            with self.subTest(what):
                issue = addons.issue_of(addon, among(addon, age))
                self.assertEqual(wanted, issue.text if issue else None)

    def test_the_clock_of_the_conductor_does_not_matter(self):
        observed = among(waiting({}, ""), 11.0)
        for hours in (-5, 5):
            at = NOW + datetime.timedelta(hours=hours)
            moved = dataclasses.replace(observed, at=at)
            with self.subTest(hours):
                self.assertIsNotNone(addons.core_missing(moved))
                self.assertEqual(self.REPORTED, addons.core_missing(moved).text)

    def test_the_operator_has_to_move(self):
        verdict = status.evaluate(among(waiting({}, ""), 11.0), builders.state(), NOW)
        self.assertIn(f"management: {self.REPORTED}", verdict.reason)

    def test_health_says_that_an_optional_addon_is_paused(self):
        one = builders.addon("monitoring")
        one["spec"]["paused"] = True
        one["status"] = {"phase": "Pending"}
        observed = builders.observed()
        observed = dataclasses.replace(observed, addons=(*observed.addons, one))
        verdict = status.evaluate(observed, builders.state("UPDATE_COMPLETE"), NOW)
        self.assertEqual("monitoring: paused", verdict.health_reason["addons"])
