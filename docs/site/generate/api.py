"""The reference of the reseller API, from its OpenAPI document: a page for each tag, and one of the types.

What it deliberately leaves out: what is for administrators, and the probes.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from . import samples
from .figures import read
from .markdown import Prose, badge, slug, table
from .types import Types

LEFT_OUT = {"healthz", "readyz", "docs"}
# `$ID` is a subscription everywhere; what else a path names has a variable of its own.
VARIABLES = {
    ("event-types", "name"): "EVENT_TYPE",
    ("events", "id"): "EVENT",
    ("notifications", "id"): "NOTIFICATION",
    ("visits", "id"): "VISIT",
}
# What can happen to every operation that needs a key; told once.
COMMON = {"401", "403", "408", "413", "415", "429", "500", "503"}


def write(document: Path, folder: Path) -> None:
    """Writes the pages of `document` into `folder`, and only what has changed, so that nothing is read again in vain."""
    openapi = json.loads(document.read_text(encoding="utf-8"))
    prose = Prose(read(document.parents[2] / "config/default.yaml"))
    reference = Reference(openapi, prose)
    folder.mkdir(exist_ok=True)
    pages = dict(reference.pages())
    for name, text in pages.items():
        keep_or_write(folder / f"{name}.md", text)
    for page in folder.glob("*.md"):
        if page.stem not in pages:
            page.unlink()


def keep_or_write(path: Path, text: str) -> None:
    """Leaves a file alone that holds `text` already."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


class Reference:
    """The pages of one OpenAPI document."""

    def __init__(self, openapi: dict, prose: Prose) -> None:
        self.openapi = openapi
        self.prose = prose
        self.types = Types(openapi["components"]["schemas"], prose)
        operations = (one for item in openapi["paths"].values() for one in item.values())
        self.types.taken(body_of(operation) for operation in operations)

    def pages(self) -> Iterator[tuple[str, str]]:
        """Each page's name and text."""
        for tag in self.openapi["tags"]:
            lines = [f"# {tag['name'].capitalize()}", "", self.prose(tag["description"]), ""]
            for path, method, operation in self.operations(tag["name"]):
                lines += self.operation(path, method, operation)
            yield slug(tag["name"]), "\n".join(lines)
        yield "types", "\n".join(self.types.page())
        yield "index", "\n".join(self.index(self.openapi["tags"]))

    def operations(self, tag: str) -> Iterator[tuple[str, str, dict]]:
        """Those of a tag, in the order of the document."""
        for path, item in self.openapi["paths"].items():
            for method, operation in item.items():
                if tag in operation["tags"] and operation["operationId"] not in LEFT_OUT:
                    yield path, method.upper(), operation

    def index(self, tags: list[dict]) -> Iterator[str]:
        yield "# Reseller API"
        yield ""
        for paragraph in self.openapi["info"]["description"].split("\n\n"):
            yield from (self.prose(paragraph), "")
        yield from (
            "`PORTAL_URL` is where the API is; the operators of your installation tell you. Send your key as a bearer token, as",
            "the examples do. `GET /openapi.json` is the same reference for programs and needs no key.",
            "",
            "These answers are possible everywhere and are not repeated below; [error codes](../errors.md) explains them: "
            + ", ".join(sorted(COMMON))
            + ".",
            "",
        )
        for tag in tags:
            yield from (f"## [{tag['name'].capitalize()}]({slug(tag['name'])}.md)", "")
            rows = [
                (
                    f"{badge(method)} [`{path}`](#{slug(operation['operationId'])})",
                    self.prose(operation["summary"]),
                )
                for path, method, operation in self.operations(tag["name"])
            ]
            yield from table(("operation", ""), rows)
        yield from (
            "```{toctree}",
            ":hidden:",
            "",
            *(slug(tag["name"]) for tag in tags),
            "types",
            "```",
            "",
        )

    def operation(self, path: str, method: str, operation: dict) -> Iterator[str]:
        yield from (
            f"({slug(operation['operationId'])})=",
            f"## {badge(method)} {path.replace('{', '&#123;')}",
            "",
        )
        yield from (self.prose(operation["summary"]), "")
        if operation.get("description"):
            yield from (self.prose(operation["description"]), "")
        if not operation.get("security"):
            yield from ("Needs no key.", "")
        yield from self.parameters(operation.get("parameters", []))
        body = body_of(operation)
        if body:
            yield from ("**Body**", "", *self.types.fields(body))
        yield from ("**Answers**", "", *table(("status", "", "body"), self.answers(operation)))
        yield from ("```sh", *self.curl(path, method, operation), "```", "")
        answer = answer_of(operation)
        if answer:
            told = self.types.sample(answer)
            if operation["operationId"] in samples.OPERATIONS:
                told |= samples.OPERATIONS[operation["operationId"]]
            sample = json.dumps(told, indent=2, ensure_ascii=False)
            yield from ("is answered with", "", "```json", *sample.split("\n"), "```", "")

    def parameters(self, parameters: list[dict]) -> list[str]:
        rows = []
        for parameter in parameters:
            kind = self.types.name(parameter["schema"])
            limits = self.types.limits(parameter["schema"])
            need = "required" if parameter.get("required") else "optional"
            meaning = self.prose(parameter["description"])
            rows.append(
                (f"`{parameter['name']}`", f"in the {parameter['in']}", need, kind, limits, meaning)
            )
        heading = ["**Parameters**", ""] if rows else []
        return [*heading, *table(("name", "where", "", "type", "limits", "meaning"), rows)]

    def answers(self, operation: dict) -> Iterator[tuple[str, str, str]]:
        for status, answer in operation["responses"].items():
            if status in COMMON:
                continue
            content = answer.get("content", {})
            headers = (
                f" Header `{name}`: {self.prose(header['description'])}"
                for name, header in answer.get("headers", {}).items()
            )
            meaning = self.prose(answer["description"]) + "".join(headers)
            problems = content.get("application/problem+json", {}).get("examples", {})
            if problems:
                kinds = ", ".join(f"[`{name}`](#problem-{name})" for name in problems)
                yield status, meaning, kinds
            else:
                bodies = [self.types.name(media["schema"]) for media in content.values()]
                yield status, meaning, ", ".join(bodies) or "none"

    def curl(self, path: str, method: str, operation: dict) -> list[str]:
        """The request on a command line. The names in the path become variables of the shell."""
        url = path
        whose = path.split("/")[1]
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path":
                name = parameter["name"]
                variable = VARIABLES.get((whose, name), name.upper())
                url = url.replace(f"{{{parameter['name']}}}", f"${variable}")
        lines = [f'curl "$PORTAL_URL{url}"' + (f" -X {method}" if method not in ("GET",) else "")]
        if operation.get("security"):
            lines.append('-H "Authorization: Bearer $RESELLER_KEY"')
        body = body_of(operation)
        if body:
            lines.append("-H 'Content-Type: application/json'")
            lines.append(f"-d '{json.dumps(self.types.example(body), indent=2)}'")
        return " \\\n    ".join(lines).split("\n")


def answer_of(operation: dict) -> dict | None:
    """The schema of what a success is answered with, if it is JSON: of one that was done rather than only counted."""
    good = [answer for status, answer in operation["responses"].items() if status.startswith("2")]
    content = good[-1].get("content", {}) if good else {}
    return content.get("application/json", {}).get("schema")


def body_of(operation: dict) -> dict | None:
    """The schema of the request body, if there is one."""
    content = operation.get("requestBody", {}).get("content", {})
    return next((media["schema"] for media in content.values()), None)
