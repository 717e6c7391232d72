"""The runner of pages notices when a page does not tell the truth."""

import os
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import shell_blocks
from shell_blocks import Failed, run_page, steps

GOOD = """# A page

```sh
greeting=hello
echo "$greeting $NAME at :1234"
```

```text
hello … at :8000
```

Text in between.

```sh
(sleep 0; echo later) &
echo now
```

```text
later
now
```

```json
{}
```
"""


def running(process: Path) -> bool:
    """Whether it is there, and more than what its parent has not asked for yet."""
    try:
        return (
            process.joinpath("stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
        )
    except OSError:
        return False


class ShellBlocks(unittest.TestCase):
    def run_text(self, text: str, has_installation: bool = False) -> int:
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.md"
            page.write_text(text, encoding="utf-8")
            environment = {"PATH": os.environ["PATH"], "NAME": "world"}
            return run_page(page, environment, {":8000": ":1234"}, has_installation)

    def test_blocks_run_in_one_shell_and_print_what_the_page_shows(self) -> None:
        self.assertEqual(self.run_text(GOOD), 2)

    def test_what_needs_an_installation_is_run_only_where_there_is_one(self) -> None:
        text = "```shell\necho one\n```\n\n```text\none\n```\n"
        self.assertEqual(self.run_text(text), 0)
        self.assertEqual(self.run_text(text, has_installation=True), 1)

    def test_a_line_that_is_not_printed_fails(self) -> None:
        with mock.patch.object(shell_blocks, "PATIENCE", 0), self.assertRaisesRegex(
            Failed, "line 4: waited in vain for\nhello . at"
        ):
            self.run_text(GOOD.replace("greeting=hello", "greeting=good-bye"))

    def test_a_part_of_a_line_is_not_the_line(self) -> None:
        with mock.patch.object(shell_blocks, "PATIENCE", 0), self.assertRaises(Failed):
            self.run_text("```sh\necho verified, not\n```\n\n```text\nverified\n```\n")

    def test_a_shell_that_ends_fails(self) -> None:
        with self.assertRaisesRegex(Failed, "the shell has ended"):
            self.run_text("```sh\nexit 0\n```\n")

    def test_nothing_is_left_running_when_the_runner_is_killed(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            with shell_blocks.Shell(Path(folder), {"PATH": os.environ["PATH"]}) as shell:
                output = shell.run(shell_blocks.Step(1, "sleep 1000 &\necho $!\n", ["…"]), {})
                sleeping = Path(f"/proc/{output.split()[0]}")
                self.assertTrue(sleeping.exists())
                # What the end of this process does.
                shell.process.stdin.close()
                shell.process.wait(shell_blocks.PATIENCE)
                deadline = time.monotonic() + shell_blocks.PATIENCE
                while running(sleeping) and time.monotonic() < deadline:
                    time.sleep(0.05)
                self.assertFalse(running(sleeping))

    def test_an_output_belongs_to_the_block_before_it(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.md"
            page.write_text("```sh\ntrue\n```\n\nWords.\n\n```text\nlost\n```\n", encoding="utf-8")
            with self.assertRaisesRegex(Failed, "an output that follows no block"):
                steps(page)


if __name__ == "__main__":
    unittest.main()
