"""Runs the shell blocks of a page, one after the other in one shell, as a reader would who pastes them.

A ```sh block is run; a ```shell block, which needs an installation, only where there is one. A ```text block that follows it holds lines that have to appear among its output, in any order, since a program in the
background writes when it likes; `…` stands for anything. What it deliberately does not do: change a block. A page that needs something from its
surroundings takes it from a variable.
"""

import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

# A slow machine is no fault of a page.
PATIENCE = 240.0
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Step(NamedTuple):
    """A block, the line of the page that it begins in, and the lines that it has to print."""

    line: int
    commands: str
    expected: list[str]
    needs_installation: bool = False


class Failed(Exception):
    """A block did not do what the page says."""


def steps(page: Path) -> list[Step]:
    """The blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    found: list[Step] = []
    end = 0
    for fence in FENCE.finditer(text):
        language, content = fence.groups()
        if language in ("sh", "shell"):
            found.append(Step(text.count("\n", 0, fence.start()) + 2, content, [], language == "shell"))
        elif language == "text":
            if not found or text[end : fence.start()].strip():
                raise Failed(f"{page.name}: an output that follows no block: {content!r}")
            found[-1].expected.extend(content.splitlines())
        end = fence.end()
    if not found:
        raise Failed(f"{page.name} has no block to run")
    return found


class Shell:
    """One bash, whose output and that of its children goes to a file."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.output = tempfile.NamedTemporaryFile(mode="w+b", suffix=".log")
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        # The process that runs this may be killed: the shell then reads the end of its input, and takes along what the page left running.
        self.write("trap 'kill -s KILL 0' EXIT\n")

    def write(self, text: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def __enter__(self) -> "Shell":
        return self

    def __exit__(self, *_: object) -> None:
        # Whatever a page left running ends with its shell: all of it is one process group.
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        if self.process.stdin:
            self.process.stdin.close()
        self.output.close()

    def text(self) -> str:
        return Path(self.output.name).read_text(encoding="utf-8", errors="replace")

    def run(self, step: Step, told: dict[str, str]) -> str:
        """Runs a block until it has ended and all that it has to print is there; gives back its output.

        `told`: what the page writes, for what this machine has instead, such as another port.
        """
        before = len(self.text())
        mark = f"--- end of the block in line {step.line}"
        self.write(f"{step.commands}\nprintf '%s\\n' '{mark}'\n")
        deadline = time.monotonic() + PATIENCE
        while True:
            output = self.text()[before:]
            for page, machine in told.items():
                output = output.replace(machine, page)
            missing = [line for line in step.expected if not appears(line, output)]
            if mark in output and not missing:
                return output
            if self.process.poll() is not None:
                raise Failed(
                    f"line {step.line}: the shell has ended:\n{step.commands}\n--- it printed\n{output}"
                )
            if time.monotonic() > deadline:
                wanted = "\n".join(missing) or "the end of the block"
                raise Failed(
                    f"line {step.line}: waited in vain for\n{wanted}\n--- after\n{step.commands}\n--- it printed\n{output}"
                )
            time.sleep(0.05)


def appears(line: str, output: str) -> bool:
    """Whether some line of the output is this one."""
    pattern = ".*".join(re.escape(part) for part in line.strip().split("…"))
    return any(re.fullmatch(pattern, printed.strip()) for printed in output.splitlines())


def run_page(
    page: Path, environment: dict[str, str], told: dict[str, str], has_installation: bool = False
) -> int:
    """Runs a page in an empty folder; gives back how many blocks were run."""
    blocks = [step for step in steps(page) if has_installation or not step.needs_installation]
    with tempfile.TemporaryDirectory(prefix="postrider-page-") as folder, Shell(
        Path(folder), environment
    ) as shell:
        for block in blocks:
            shell.run(block, told)
    return len(blocks)
