"""What docker-compose.cluster.yml has to have beside what docker-compose.yml has: members that lack nothing that another one has, and that
share no data."""

import re

import facts

DATABASES = {"postgres", "postgres-2"}
BROKERS = {"rabbitmq", "rabbitmq-2", "rabbitmq-3"}
FOLDER = "./deploy/compose/cluster"
# What differs between members: their names, their data, and what waits for them.
OWN = {"hostname", "volumes", "environment", "depends_on", "secrets", "build"}


def target_of(value):
    """By what Compose knows two entries of a list for the same."""
    if isinstance(value, dict):
        return value.get("target", value.get("source"))
    return value.split(":")[1] if re.match(r"[./\w-]+:/", value) else value


def merged(one, two):
    """As Compose merges the second file into the first, as far as these two need it."""
    if isinstance(one, dict) and isinstance(two, dict):
        return {key: together(key, one.get(key), two.get(key)) for key in one | two}
    return two


def together(key, one, two):
    if one is None or two is None:
        return one if two is None else two
    if isinstance(one, list) and key not in ("command", "entrypoint"):
        return [*(value for value in one if target_of(value) not in map(target_of, two)), *two]
    return merged(one, two)


def mounts(service):
    return dict(volume.split(":")[1::-1] for volume in service["volumes"])


def misfits(compose, made):
    """What is wrong with both files together."""
    services = compose["services"]
    yield from differences(services, DATABASES)
    yield from differences(services, BROKERS)
    for name in DATABASES | BROKERS | {"require-standby"}:
        service = services[name]
        for key, wanted in (("cap_drop", ["ALL"]), ("security_opt", ["no-new-privileges:true"])):
            if service.get(key) != wanted:
                yield f"{name}: {key} is {service.get(key)}"
        if service.get("user") not in ("postgres", "rabbitmq"):
            yield f"{name}: runs as root"
        for source in mounts(service).values():
            if source.startswith("./") and not (facts.CHECKOUT / source).is_file():
                yield f"{name}: there is no {source}"
    for name in DATABASES:
        (peer,) = DATABASES - {name}
        data, beside = mounts(services[name])["/var/lib/postgresql/data"], mounts(services[peer])["/peer"]
        if data != beside or services[name]["environment"]["PEER"] != peer:
            yield f"{name}: {peer} looks at {beside} for it"
        if f"{data}:/peer:ro" not in services[peer]["volumes"]:
            yield f"{peer}: may write to the data of {name}"
    if sum("INITIALISE" in services[name]["environment"] for name in DATABASES) != 1:
        yield "not one of the two databases makes the first data"
    for name, value in made.items():
        if name.startswith("database-url-") and not value.endswith("@postgres:5432,postgres-2:5432/postrider?target_session_attrs=read-write"):
            yield f"{name}: does not name both databases"
    if set(re.findall(r"@([\w-]+):5672", made["amqp-url"])) != BROKERS:
        yield "amqp-url: does not name every node"
    nodes = re.findall(r"^cluster_formation\S* = rabbit@(\S+)$", facts.read(f"{FOLDER}/rabbitmq.conf"), re.MULTILINE)
    if set(nodes) != {services[name]["hostname"] for name in BROKERS}:
        yield f"rabbitmq.conf: names {nodes}"
    for name, service in services.items():
        if "amqp-url" in service.get("secrets", []) and not set(service["depends_on"]) >= BROKERS:
            yield f"{name}: may declare queues before there are three nodes"


def differences(services, members):
    """Members have the same, save what is their own; no two have the same volume."""
    first, *others = sorted(members)
    for name in others:
        for key in sorted((services[first].keys() | services[name].keys()) - OWN):
            if services[first].get(key) != services[name].get(key):
                yield f"{name}: differs from {first} in {key}"
    for name in sorted(members):
        if services[name]["hostname"] != name:
            yield f"{name}: is known as {services[name]['hostname']}"
    data = [mount for name in members for target, mount in mounts(services[name]).items() if target.startswith("/var/lib/")]
    if len(set(data)) != len(members):
        yield f"{sorted(members)}: share data: {sorted(data)}"
