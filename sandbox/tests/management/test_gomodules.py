# SPDX-License-Identifier: Apache-2.0
"""Go itself, the one change to a module, and the tests of the Go code."""

from pathlib import Path
import shutil
import tempfile
import unittest

from sandbox.management import gomodules
from sandbox.state import SandboxError

GO_TEST_TIMEOUT = 1200.0


class TestGo(unittest.TestCase):
    def test_versions(self) -> None:
        for version, toolchain, good in (
            ("go1.26.0", "local", True),
            ("go1.27rc1", "auto", True),
            ("go1.22.5", "auto", True),  # fetches the version that go.mod asks for
            ("go1.22.5", "local", False),
            ("go1.19.8", "", False),
            ("devel", "auto", False),
        ):
            with self.subTest(version):
                said = ""
                try:
                    gomodules.judge_go(version, toolchain)
                except SandboxError as error:
                    said = str(error)
                self.assertEqual("" if good else version, said.partition(" ")[0])

    def test_a_failed_command_shows_its_last_words(self) -> None:
        with self.assertRaisesRegex(SandboxError, "no-such-package"):
            gomodules.run("helm", ["go", "list", "./no-such-package"], 60.0)

    def test_a_command_that_takes_too_long_is_ended(self) -> None:
        with self.assertRaisesRegex(SandboxError, "took longer than 0 s"):
            gomodules.run("helm", ["sleep", "60"], 0.1)


class TestNetwork(unittest.TestCase):
    """A command that fails with some words until it was run often enough."""

    def tries(self, words: str, needed: int) -> tuple[int, bool]:
        """How often it was run, and whether it succeeded in the end."""
        place = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, place)
        count = place / "count"
        enough = f"[ $(wc -l < {count}) -ge {needed} ]"
        script = f"echo x >> {count}; {enough} || {{ echo '{words}' >&2; exit 1; }}"
        try:
            gomodules.run("helm", ["sh", "-c", script], 60.0)
            done = True
        except SandboxError:
            done = False
        return len(count.read_text().split()), done

    def test_what_the_network_broke_off_is_tried_three_times(self) -> None:
        words = "Get https://proxy.example.org: dial tcp: i/o timeout"
        self.assertEqual((3, True), self.tries(words, needed=3))
        self.assertEqual((3, False), self.tries(words, needed=4))

    def test_any_other_failure_is_final(self) -> None:
        self.assertEqual((1, False), self.tries("syntax error", needed=2))


class TestChange(unittest.TestCase):
    def setUp(self) -> None:
        self.place = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.place)
        self.file = self.place / "server.go"
        self.change = gomodules.Change("example.org/m", "server.go", "listen(all)", "listen(own)")

    def test_the_line_is_replaced(self) -> None:
        self.file.write_text("a\nlisten(all)\nb\n")
        self.change.apply(self.place)
        self.assertEqual("a\nlisten(own)\nb\n", self.file.read_text())

    def test_a_line_that_is_there_twice_or_not_at_all_is_refused(self) -> None:
        for text, count in (("nothing", 0), ("listen(all)\nlisten(all)", 2)):
            self.file.write_text(text)
            with self.assertRaisesRegex(SandboxError, f"has {count} times"):
                self.change.apply(self.place)
            self.assertEqual(text, self.file.read_text())

    def test_webhooks_are_kept_to_loopback(self) -> None:
        self.assertIn('"127.0.0.1"', gomodules.LOOPBACK.replacement)
        self.assertNotIn("127.0.0.1", gomodules.LOOPBACK.line)


class TestContents(unittest.TestCase):
    def test_code_decides_only_for_our_own_programs_and_tests_never(self) -> None:
        pinned = gomodules.contents("clusterapi")
        ours = gomodules.contents("clusterapi", sources="machines")
        self.assertEqual(2, len(pinned))
        names = [text.partition("\0")[0] for text in ours]
        self.assertIn("clusterapi/machines/main.go", names)
        self.assertEqual([], [name for name in names if "/bootstrapdata/" in name])
        self.assertEqual([], [name for name in names if name.endswith("_test.go")])


@unittest.skipIf(shutil.which("go") is None, "there is no Go here to test the Go code with")
class TestPrograms(unittest.TestCase):
    """With -trimpath, as the programs are built: otherwise Go compiles all libraries once more."""

    def test_the_go_tests_pass(self) -> None:
        said = gomodules.run(
            "clusterapi", ["go", "test", "-trimpath", "./machines/..."], GO_TEST_TIMEOUT
        )
        self.assertRegex(said, r"(?m)^ok\s+sandbox/clusterapi/machines")

    def test_the_go_code_is_formatted_and_vetted(self) -> None:
        gomodules.run("clusterapi", ["go", "vet", "-trimpath", "./..."], GO_TEST_TIMEOUT)
        self.assertEqual("", gomodules.run("clusterapi", ["gofmt", "-l", "."], 60.0))
