"""Follows the quick start to the letter, from an empty folder, and the worked example of verifying by hand. What needs an installation is run when `make up` has started
one in this checkout.

usage: quickstart.py [PATH OF postrider]; otherwise POSTRIDER_BIN, or what is called postrider.
"""

import os
import random
import shutil
import socket
import sys
import tempfile
from pathlib import Path

from shell_blocks import Failed, run_page, steps

SITE = Path(__file__).resolve().parents[1]
CHECKOUT = SITE.parents[1]
EXAMPLE = CHECKOUT / "sdks/examples/python/minimal.py"
# What a shell has anywhere, and what pip needs to reach an index.
KEPT = (
    "HOME",
    "LANG",
    "TMPDIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
)


def free_port() -> int:
    """A port that nothing listens on, from where no system takes ports by itself, so that it stays free."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def check_receiver(page: Path) -> None:
    """The file that the page has written is the example that other tests deliver to."""
    blocks = [
        step.commands
        for step in steps(page)
        if step.commands.startswith("cat > receiver.py <<'EOF'\n")
    ]
    written = blocks[0].partition("\n")[2].rpartition("EOF\n")[0] if len(blocks) == 1 else ""
    if written != EXAMPLE.read_text(encoding="utf-8"):
        raise Failed(
            f"{page.name}: receiver.py is not {EXAMPLE.relative_to(CHECKOUT)}; copy that into the page"
        )


def surroundings(postrider: str, folder: Path) -> "dict[str, str]":
    """What the page may expect, and no more: no secret, key or address of the person who runs the test."""
    (folder / "postrider").symlink_to(Path(postrider).resolve())
    kept = {
        name: value for name, value in os.environ.items() if name in KEPT or name.startswith("PIP_")
    }
    return {
        **kept,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "POSTRIDER_CHECKOUT": str(CHECKOUT),
        "PORT": str(free_port()),
    }


def main() -> int:
    """The exit status says whether everything happened as the pages say."""
    named = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("POSTRIDER_BIN", "postrider")
    postrider = shutil.which(named)
    if postrider is None:
        print(
            f"error: there is no program {named}; build it with cargo build --package cli, and name it",
            file=sys.stderr,
        )
        return 2
    try:
        check_receiver(SITE / "quickstart.md")
        with tempfile.TemporaryDirectory(prefix="postrider-bin-") as folder:
            environment = surroundings(postrider, Path(folder))
            for name in ("signatures.md", "quickstart.md"):
                told = {":8000": f":{environment['PORT']}"}
                count = run_page(SITE / name, environment, told, (CHECKOUT / ".dev/env").exists())
                print(f"{name}: {count} blocks did what the page says")
    except Failed as failure:
        print(f"FAILED: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
