"""Checks what the units of deploy/systemd say against the code, the configuration and each other. systemd's own checks are elsewhere."""

import re
import sys

import facts

FOLDER = facts.CHECKOUT / "deploy/systemd"
# How long a process may take beyond its grace period (CLOSING in libs/runtime/src/process.rs), in seconds.
CLOSING = 5

problems = []


def expect(holds, what):
    if not holds:
        problems.append(what)


def values(text, key):
    return re.findall(rf"^{key}=(.*)$", text, re.MULTILINE)


def environment(text):
    return dict(value.split("=", 1) for value in values(text, "Environment"))


def check_variables(name, text):
    """Variables exist, and each file that one names is handed over by systemd, from the one folder that secrets are in."""
    secrets = dict(value.split(":", 1) for value in values(text, "LoadCredential"))
    problems.extend(facts.misfits(name, environment(text), {f"%d/{secret}" for secret in secrets}))
    for secret, path in secrets.items():
        expect(path == f"/etc/postrider/secrets/{secret}", f"{name}: {secret} comes from {path}")


def check_service(name, text):
    grace = int(facts.defaults()["shutdown.gracePeriodMillis"]) / 1000
    least = grace + CLOSING
    stop, = values(text, "TimeoutStopSec")
    expect(int(stop) >= least, f"{name}: is killed before the {least} s that it may take to stop")
    expect(values(text, "PartOf") == values(text, "WantedBy") == ["postrider.target"], f"{name}: is no part of postrider.target")
    after = " ".join(values(text, "After"))
    expect("postrider-migrate.service" in after, f"{name}: does not wait for the migration")


def main():
    units = {path.name: path.read_text() for path in FOLDER.glob("*.service")}
    common = (FOLDER / "postrider-.service.d/10-common.conf").read_text()
    check_variables("10-common.conf", common)
    served, addresses = [], {}
    for name, text in units.items():
        check_variables(name, text)
        start, = values(text, "ExecStart")
        program, command, *arguments = start.split()
        expect(program == "/usr/bin/postrider", f"{name}: runs {program}")
        if command == "migrate":
            continue
        expect(name == f"postrider-{arguments[0]}.service", f"{name}: runs {start}")
        served.append(arguments[0])
        check_service(name, text)
        addresses.setdefault(environment(text)["POSTRIDER__ADMIN__LISTEN"], []).append(name)
    expect(sorted(served) == sorted(facts.services()), f"units run {sorted(served)}, services are {sorted(facts.services())}")
    for address, names in addresses.items():
        expect(len(names) == 1, f"{', '.join(names)} listen on {address}")
    # Wherever something names a variable, so that what moves in the configuration is noticed in every way to install.
    texts = ["docker-compose.yml", "Dockerfile", "docs/deploying.md"]
    for path in texts:
        for variable in re.findall(r"\bPOSTRIDER__\w*\w", facts.read(path)):
            expect(variable in facts.variables(), f"{path}: {variable} is no variable of the configuration")
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(bool(problems))


main()
