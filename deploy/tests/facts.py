"""What the artefacts are compared with: the services, the keys of the configuration and the metrics, each read where it is defined."""

import re
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

# Programs read these beside the variables that are made of the keys.
OTHER_VARIABLES = {"POSTRIDER_CONFIG", "DATABASE_URL", "AMQP_URL"}


def read(path):
    return (CHECKOUT / path).read_text()


def services():
    """The names that `postrider serve` takes."""
    return set(re.findall(r'Service::(?:new|listening)\(\s*"([a-z-]+)"', read("cli/src/commands/serve.rs")))


def defaults():
    """The keys of the configuration and their defaults, from the reference in docs/configuration.md."""
    reference = read("docs/configuration.md").partition("\n## Reference\n")[2]
    return dict(re.findall(r"^\| `([\w.]+)` \| `(.*?)` \|", reference, re.MULTILINE))


def variable_of(key):
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key.replace(".", "__"))
    return f"POSTRIDER__{words.upper()}"


def variables():
    """Every variable that a process knows, with those that name a file."""
    plain = {variable_of(key) for key in defaults()} | (OTHER_VARIABLES - {"POSTRIDER_CONFIG"})
    return plain | {f"{name}_FILE" for name in plain} | {"POSTRIDER_CONFIG"}


def misfits(name, environment, handed):
    """What is wrong with the variables of a process that is handed these files, and no others, as secrets."""
    files = {value for variable, value in environment.items() if variable.endswith("_FILE")}
    yield from (f"{name}: {variable} is no variable of the configuration" for variable in environment.keys() - variables())
    yield from (f"{name}: a variable names {file}, which is not handed over" for file in files - handed)
    yield from (f"{name}: is given {file} and does not need it" for file in handed - files)


def metrics():
    return set(re.findall(r"^\| `(\w+)` \| (?:counter|gauge|histogram) ", read("docs/telemetry.md"), re.MULTILINE))


def version():
    return re.search(r'^version = "(.+)"$', read("Cargo.toml"), re.MULTILINE).group(1)
