# SPDX-License-Identifier: Apache-2.0
"""The files for Zuul and for GitHub are valid, and run tox environments and commands that exist."""

from __future__ import annotations

import configparser
import json
from pathlib import Path
import re
import subprocess
import sys
from typing import Any
import unittest

import jsonschema
from test_installation import CHECKOUT
import yaml
import zuul_lint

WORKFLOW = CHECKOUT / ".github" / "workflows" / "test.yaml"
BIN = Path(sys.executable).parent


def environments() -> set[str]:
    """The tox environments with a section of their own."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(CHECKOUT / "tox.ini")
    return {name.removeprefix("testenv:") for name in parser.sections() if ":" in name}


def targets() -> set[str]:
    """What make can do."""
    return set(re.findall(r"^([a-z]+):.* ## ", (CHECKOUT / "Makefile").read_text(), re.M))


class TestZuul(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.items: list[dict[str, Any]] = yaml.safe_load((CHECKOUT / ".zuul.yaml").read_text())
        self.jobs = {item["job"]["name"]: item["job"] for item in self.items if "job" in item}

    def test_it_is_valid(self) -> None:
        schema = Path(zuul_lint.__file__).with_name("zuul-schema.json")
        jsonschema.validate(self.items, json.loads(schema.read_text()))

    def test_its_tox_environments_exist(self) -> None:
        lists = [job["vars"]["tox_envlist"] for job in self.jobs.values() if "vars" in job]
        named = {name for one in lists for name in one.split(",")}
        self.assertEqual(set(), named - environments())
        self.assertEqual({"pep8", "mypy", "docs", "releasenotes", "packaging", "py3"}, named)

    def test_its_playbooks_exist_and_can_be_read(self) -> None:
        plays = [
            job[key] for job in self.jobs.values() for key in ("run", "post-run") if key in job
        ]
        self.assertEqual(2, len(plays))
        for play in plays:
            with self.subTest(play):
                [content] = yaml.safe_load((CHECKOUT / play).read_text())
                self.assertEqual("all", content["hosts"])
        [command] = [
            task["ansible.builtin.command"]
            for task in yaml.safe_load((CHECKOUT / "playbooks" / "make-test.yaml").read_text())[0][
                "tasks"
            ]
        ]
        self.assertIn(command.removeprefix("make "), targets())

    def test_every_job_runs_and_every_job_that_runs_exists(self) -> None:
        [project] = [item["project"] for item in self.items if "project" in item]
        self.assertEqual(project["check"], project["gate"])
        abstract = {name for name, job in self.jobs.items() if job.get("abstract")}
        self.assertEqual(set(self.jobs) - abstract, set(project["check"]["jobs"]))


class TestWorkflow(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.workflow: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text())

    def test_it_is_valid(self) -> None:
        done = subprocess.run(
            [BIN / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", WORKFLOW],
            capture_output=True,
            check=False,
            text=True,
            timeout=60,
        )
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)

    def test_its_tox_environments_and_commands_exist(self) -> None:
        job = self.workflow["jobs"]["tox"]
        self.assertEqual(set(), set(job["strategy"]["matrix"]["environment"]) - environments())
        commands = [
            step["run"]
            for job in self.workflow["jobs"].values()
            for step in job["steps"]
            if "run" in step
        ]
        made = [name for text in commands for name in re.findall(r"^make (\S+)$", text, re.M)]
        self.assertEqual(["test"], made)
        self.assertLessEqual(set(made), targets())
        scripts = [name for text in commands for name in re.findall(r"^sh (\S+)", text, re.M)]
        self.assertTrue(all((CHECKOUT / name).is_file() for name in scripts), scripts)

    def test_it_can_read_and_nothing_else(self) -> None:
        self.assertEqual({"contents": "read"}, self.workflow["permissions"])
        self.assertTrue(all("permissions" not in job for job in self.workflow["jobs"].values()))
        self.assertNotIn("secrets.", WORKFLOW.read_text())

    def test_zuul_runs_the_same(self) -> None:
        jobs = yaml.safe_load((CHECKOUT / ".zuul.yaml").read_text())
        lists = [item["job"].get("vars", {}).get("tox_envlist") for item in jobs if "job" in item]
        named = {name for one in lists if one for name in one.split(",")}
        self.assertEqual(
            named, set(self.workflow["jobs"]["tox"]["strategy"]["matrix"]["environment"])
        )
