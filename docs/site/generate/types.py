"""The types of an OpenAPI document in words and tables."""

import json
from collections.abc import Iterable, Iterator

from . import samples
from .markdown import Prose, slug, table
from .samples import TIME

PREFIX = "#/components/schemas/"
LIST = "List_"
# Of the house; no operation of resellers uses them.
LEFT_OUT = {"AdminQuotaRequest", "Approval", "Denial", "Readiness"}
ID = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d"
# Lists within lists are shown empty from here on.
DEEPEST = 4


class Types:
    """The schemas of a document, and how they are told."""

    def __init__(self, schemas: dict[str, dict], prose: Prose) -> None:
        self.schemas = schemas
        self.prose = prose

    def taken(self, schemas: Iterable[dict | None]) -> None:
        """Notes which types are bodies of requests: what is required there, an answer always has."""
        references = (schema.get("$ref", "") for schema in schemas if schema)
        self.requests = {reference.removeprefix(PREFIX) for reference in references}

    def resolve(self, schema: dict) -> dict:
        """What a reference stands for."""
        reference = schema.get("$ref")
        return self.schemas[reference.removeprefix(PREFIX)] if reference else schema

    def name(self, schema: dict) -> str:
        """A type in a word or two; those of the document are links."""
        if "$ref" in schema:
            name = schema["$ref"].removeprefix(PREFIX)
            if name.startswith(LIST):
                return f"[list](#type-list) of {self.link(name.removeprefix(LIST))}"
            return self.link(name)
        if "oneOf" in schema:
            return " or ".join(self.name(option) for option in schema["oneOf"])
        kind = schema.get("type", "any")
        kinds = [kind] if isinstance(kind, str) else kind
        if "array" in kinds:
            kinds = [
                f"array of {self.name(schema['items'])}" if one == "array" else one for one in kinds
            ]
        elif "string" in kinds and schema.get("format") in ("uuid", "date-time"):
            kinds = [
                {"uuid": "UUID", "date-time": "time"}[schema["format"]] if one == "string" else one
                for one in kinds
            ]
        return " or ".join(kinds)

    @staticmethod
    def link(name: str) -> str:
        return f"[{name}](#type-{slug(name)})"

    @staticmethod
    def limits(schema: dict) -> str:
        """What a value must keep to."""
        said = []
        for key, words in (
            ("minimum", "at least {}"),
            ("maximum", "at most {}"),
            ("minLength", "at least {} characters"),
            ("maxLength", "at most {} bytes"),
            ("minItems", "at least {} entries"),
            ("maxItems", "at most {} entries"),
            ("default", "default {}"),
        ):
            if schema.get(key) is not None and not (key == "minimum" and schema[key] == 0):
                said.append(
                    words.format(
                        f"{schema[key]:,}" if isinstance(schema[key], int) else schema[key]
                    )
                )
        return ", ".join(said)

    def fields(self, schema: dict, need: str = "required") -> list[str]:
        """A table of an object's fields. `need` is said of those that are never missing."""
        schema = self.resolve(schema)
        lines: list[str] = []
        for part in schema.get("allOf", []):
            if "$ref" in part:
                lines += [f"Everything of {self.name(part)}, and:", ""]
            else:
                lines += self.fields(part, need)
        required = set(schema.get("required", []))
        rows = []
        for name, field in schema.get("properties", {}).items():
            said = need if name in required else "optional"
            example = f" Example: `{code(field['example'])}`" if "example" in field else ""
            meaning = (
                self.prose(field.get("description") or self.option_description(field)) + example
            )
            rows.append((f"`{name}`", self.name(field), said, self.limits(field), meaning))
        return lines + table(("field", "type", "", "limits", "meaning"), rows)

    @staticmethod
    def option_description(field: dict) -> str:
        """Of a field that may be null, what is said of it otherwise."""
        options = (option.get("description") for option in field.get("oneOf", []))
        return next((option for option in options if option), "")

    def page(self) -> Iterator[str]:
        """The page of all types."""
        yield from ("# Types", "", "What bodies are made of. Times are RFC 3339, in UTC.", "")
        yield from ("(type-list)=", "## Lists", "")
        yield from (
            "A list comes in parts: `items` holds entries, and `next` is the `cursor` of the following part, or null at the end. A part",
            "may be short, or empty, and still have a `next`.",
            "",
        )
        for name, schema in self.schemas.items():
            if name.startswith(LIST) or name in LEFT_OUT:
                continue
            yield from (
                f"(type-{slug(name)})=",
                f"## {name}",
                "",
                self.prose(schema.get("description", "")),
                "",
            )
            if "enum" in schema:
                yield from (
                    "One of " + ", ".join(f"`{value}`" for value in schema["enum"]) + ".",
                    "",
                )
            yield from self.fields(schema, "required" if name in self.requests else "always")

    def sample(self, schema: dict, depth: int = 0) -> object:
        """An answer as it looks, with everything that it can hold."""
        if "example" in schema:
            return schema["example"]
        called = schema.get("$ref", "").removeprefix(PREFIX)
        schema = self.resolve(schema)
        if "example" in schema:
            return schema["example"]
        options = [one for one in schema.get("oneOf", []) if one.get("type") != "null"]
        if options:
            return self.sample(options[0], depth)
        if "enum" in schema:
            return schema["enum"][0]
        merged: dict = {}
        for part in schema.get("allOf", []):
            merged |= self.sample(part, depth)
        for name, field in schema.get("properties", {}).items():
            merged[name] = self.sample(field, depth + 1)
        if merged or "properties" in schema:
            if called.startswith(LIST):
                # The document repeats a type within lists of it.
                entry = samples.TYPES.get(called.removeprefix(LIST), {})
                merged["items"] = [one | entry for one in merged["items"]]
            return merged | samples.TYPES.get(called, {})
        kinds = schema.get("type", "object")
        if "null" in kinds:
            return None
        kind = kinds if isinstance(kinds, str) else kinds[0]
        if kind == "array":
            return [] if depth > DEEPEST else [self.sample(schema["items"], depth + 1)]
        forms = {"date-time": TIME, "date": TIME[:10], "uuid": ID}
        return {
            "string": forms.get(schema.get("format", ""), "…"),
            "integer": schema.get("default", schema.get("minimum", 0)),
            "number": 0.0,
            "boolean": True,
            "object": {},
        }.get(kind)

    def example(self, schema: dict) -> object:
        """A value that keeps to the schema, of what is required and what has an example."""
        if "example" in schema:
            return schema["example"]
        schema = self.resolve(schema)
        if "properties" not in schema:
            return self.sample(schema)
        required = schema.get("required", [])
        return {
            name: self.example(field)
            for name, field in schema["properties"].items()
            if "example" in field or name in required
        }


def code(value: object) -> str:
    """A value as it is written in JSON, save for texts, which stand alone."""
    return value if isinstance(value, str) else json.dumps(value)
