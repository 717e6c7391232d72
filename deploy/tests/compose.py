"""Checks what docker-compose.yml, alone and with docker-compose.cluster.yml, hands to each service against the configuration, the roles of the
database, and what make-secrets makes."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import cluster
import facts
import yaml

FOLDER = "deploy/compose/secrets"
# Web Push is not run by Compose.
LEFT_OUT = {"webpush-endpoint", "webpush-connection"}

problems = []


def expect(holds, what):
    if not holds:
        problems.append(what)


def secrets_of(service):
    """Which secret is behind each file that a service is handed."""
    given = {}
    for secret in service.get("secrets", []):
        source, target = (secret, secret) if isinstance(secret, str) else (secret["source"], secret["target"])
        given[target if target.startswith("/") else f"/run/secrets/{target}"] = source
    return given


def check_program(name, service):
    environment = service.get("environment", {})
    given = secrets_of(service)
    problems.extend(facts.misfits(name, environment, set(given)))
    database, broker = environment.get("DATABASE_URL_FILE"), "AMQP_URL_FILE" in environment
    own = {"migrate": "migration"}.get(name, name)
    expect(given.get(database) == f"database-url-{own}", f"{name}: has not the database role of its own")
    expect("DATABASE_URL" not in environment, f"{name}: has a password in its environment")
    expect(environment.get("AMQP_URL", "amqp://unused.invalid") == "amqp://unused.invalid", f"{name}: has a password in its environment")
    expect(broker == ("broker" in service["networks"]), f"{name}: is in the network of the broker without its URL, or the other way round")
    expect(service.get("read_only") is True, f"{name}: may write to its root")
    expect(service.get("cap_drop") == ["ALL"], f"{name}: has capabilities")
    expect(service.get("security_opt") == ["no-new-privileges:true"], f"{name}: may get privileges")


def check_networks(compose):
    internal = {name for name, network in compose["networks"].items() if (network or {}).get("internal")}
    servers = {name for name in compose["services"] if name.startswith(("postgres", "rabbitmq"))}
    for name in servers:
        expect(set(compose["services"][name]["networks"]) <= internal, f"{name}: is in a network that has a way out")
        expect("ports" not in compose["services"][name], f"{name}: has a port on the machine")
    # Docker takes a network from either of these ranges: a caller on the machine passes its gateway.
    trusted = compose["services"]["reseller-portal"]["environment"]["POSTRIDER__PORTAL__TRUSTED_PROXIES"]
    expect(trusted == "${PORTAL_TRUSTED_PROXIES:-172.16.0.0/12,192.168.0.0/16}", f"reseller-portal: trusts the proxies {trusted}")
    portal = set(compose["services"]["reseller-portal"]["networks"])
    beside = {name for name, service in compose["services"].items() if portal & set(service["networks"])}
    expect(beside - {"postgres-2"} == {"reseller-portal", "postgres"}, f"reseller-portal: shares networks with {sorted(beside)}")


def make_secrets(*arguments):
    """What make-secrets makes with these arguments, and that a second run changes nothing and a file that is there is not replaced."""
    with tempfile.TemporaryDirectory() as folder:
        program = shutil.copy(facts.CHECKOUT / "deploy/compose/make-secrets", folder)
        subprocess.run([program, *arguments], check=True)
        made = {path.name: path.read_text().strip() for path in Path(folder, "secrets").iterdir()}
        expect(Path(folder, "secrets").stat().st_mode & 0o777 == 0o700, "make-secrets: others may look into the folder")
        Path(folder, "secrets/smtp-url").unlink()
        subprocess.run([program, *arguments], check=True)
        again = {path.name: path.read_text().strip() for path in Path(folder, "secrets").iterdir()}
        expect(made == again, "make-secrets: a second run changes what the first has made")
    return made


def check_secrets(compose, made):
    for name, secret in compose["secrets"].items():
        expect(secret == {"file": f"{FOLDER}/{name}"}, f"secret {name}: comes from {secret}")
    expect(set(made) == set(compose["secrets"]), f"make-secrets and docker-compose.yml differ in {sorted(set(made) ^ set(compose['secrets']))}")
    given = {source for service in compose["services"].values() for source in secrets_of(service).values()}
    expect(given == set(made), f"no service is given {sorted(set(made) - given)}")
    for name, value in made.items():
        service = name.removeprefix("database-url-")
        if service != name:
            expect(value.startswith(f"postgres://postrider_{service.replace('-', '_')}:"), f"{name}: is of another role")
            expect(name in secrets_of(compose["services"]["roles"]).values(), f"{name}: its role is given no password")
    for file in (".gitignore", ".dockerignore"):
        ignored = {line.strip("/") for line in facts.read(file).splitlines()}
        expect({FOLDER, ".env"} <= ignored, f"{file}: does not name {FOLDER} and .env")


def check(compose, made):
    served = set()
    for name, service in compose["services"].items():
        command = service.get("command", [])
        if command[:1] == ["serve"]:
            expect(command == ["serve", name], f"{name}: runs {command}")
            served.add(name)
        if command[:1] in (["serve"], ["migrate"]):
            check_program(name, service)
    expect(served == facts.services() - LEFT_OUT, f"services are missing or unknown: {sorted(served ^ (facts.services() - LEFT_OUT))}")
    check_networks(compose)
    check_secrets(compose, made)


def main():
    single, added = (yaml.safe_load(facts.read(name)) for name in ("docker-compose.yml", "docker-compose.cluster.yml"))
    check(single, make_secrets())
    both, made = cluster.merged(single, added), make_secrets("--cluster")
    check(both, made)
    problems.extend(cluster.misfits(both, made))
    for problem in problems:
        print(problem, file=sys.stderr)
    sys.exit(bool(problems))


main()
