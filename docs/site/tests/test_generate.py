"""The generated pages have all that the product has, and the build fails when a page lacks a word about something."""

import json
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from generate import api, errors, figures, samples
from generate.markdown import Prose, badge, slug

SITE = Path(__file__).resolve().parents[1]
CHECKOUT = SITE.parents[1]
DOCUMENT = CHECKOUT / "docs/openapi/reseller-portal.json"
OPENAPI = json.loads(DOCUMENT.read_text(encoding="utf-8"))
CONFIG = figures.read(CHECKOUT / "config/default.yaml")
VECTORS = json.loads((CHECKOUT / "sdks/vectors.json").read_text(encoding="utf-8"))


class Reference(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.pages = dict(api.Reference(OPENAPI, Prose(CONFIG)).pages())
        cls.text = "\n".join(cls.pages.values())

    def operations(self) -> "list[tuple[str, str, dict]]":
        return [
            (path, method, operation)
            for path, item in OPENAPI["paths"].items()
            for method, operation in item.items()
            if operation["operationId"] not in api.LEFT_OUT
        ]

    def section(self, operation: dict) -> str:
        page = self.pages[slug(operation["tags"][0])]
        return page.split(f"({slug(operation['operationId'])})=")[1].split("\n## ")[1]

    def test_every_operation_has_its_parameters_and_answers(self) -> None:
        self.assertGreater(len(self.operations()), 25)
        for path, method, operation in self.operations():
            section = self.section(operation)
            self.assertTrue(
                section.startswith(f"{badge(method.upper())} {path.replace('{', '&#123;')}"), section
            )
            for parameter in operation.get("parameters", []):
                self.assertIn(f"| `{parameter['name']}` |", section)
            for status in operation["responses"]:
                self.assertTrue(
                    status in api.COMMON or f"| {status} |" in section, f"{status} in {section}"
                )

    def test_every_field_of_a_body_has_its_limits(self) -> None:
        section = self.section(OPENAPI["paths"]["/subscriptions"]["post"])
        for part in (
            "| `url` | string | required | at most 2,048 bytes |",
            "| `eventTypes` | array of string | required | at least 1 entries, at most 200 entries |",
            "| `email` | string | required | at most 254 bytes |",
            "| `description` | string or null | optional | at most 500 bytes |",
            "at most 30,000 (by default)",
        ):
            self.assertIn(part, section)

    def test_every_field_of_every_type_is_told(self) -> None:
        page = self.pages["types"]
        for name in ("Subscription", "Notification", "Attempt", "Replay", "Quota", "Secret"):
            section = page.split(f"(type-{slug(name)})=")[1].split("\n## ")[1]
            schema = OPENAPI["components"]["schemas"][name]
            fields = [
                field
                for part in schema.get("allOf", [schema])
                for field in part.get("properties", {})
            ]
            self.assertTrue(fields)
            for field in fields:
                self.assertIn(f"| `{field}` |", section, name)

    def test_examples_are_commands_with_a_body_of_json(self) -> None:
        for _, method, operation in self.operations():
            example = self.section(operation).split("```sh\n")[1].split("\n```")[0]
            subprocess.run(["bash", "-n", "-c", example], check=True)
            body = api.body_of(operation)
            if body:
                sent = json.loads(example.split("-d '")[1].rsplit("'", 1)[0])
                self.assertEqual(faults(body, sent), [], operation["operationId"])
            self.assertEqual("-X" in example, method != "get")

    def test_a_sample_that_is_refused_is_found(self) -> None:
        links = api.body_of(OPENAPI["paths"]["/portal-links"]["post"])
        for sent, fault in (
            ({}, "person is missing"),
            ({"person": "2026-11-20T00:00:00Z"}, "person is no object"),
            ({"person": {"name": "Anna"}}, "person.id is missing"),
            ({"person": {"id": "a"}, "visitMinutes": 1}, "visitMinutes is out of bounds"),
            ({"person": {"id": "a"}, "colour": "red"}, "colour is unknown"),
        ):
            self.assertEqual(faults(links, sent), [fault])

    def test_a_map_in_a_sample_holds_what_it_is_for(self) -> None:
        section = self.section(OPENAPI["paths"]["/subscriptions/{id}/signature-checks"]["post"])
        self.assertIn('"webhook-signature": "v1,', section)

    def test_a_variable_stands_for_one_thing_on_all_pages(self) -> None:
        for path, method, operation in self.operations():
            example = self.section(operation).split("```sh\n")[1].split("\n```")[0]
            self.assertEqual("$ID" in example, path.startswith("/subscriptions/{id}"), path)

    def test_an_answer_is_shown_with_every_field_that_it_always_has(self) -> None:
        shown = 0
        for _, _, operation in self.operations():
            answer = api.answer_of(operation)
            if not answer:
                continue
            section = self.section(operation)
            sample = json.loads(section.split("```json\n")[1].split("\n```")[0])
            schema = OPENAPI["components"]["schemas"][answer["$ref"].rsplit("/", 1)[1]]
            for part in schema.get("allOf", [schema]):
                self.assertLessEqual(set(part.get("required", [])), set(sample), operation["operationId"])
            shown += 1
        self.assertGreater(shown, 20)

    def properties(self, schema: dict) -> dict:
        """The fields of a type, with those of the types that it is made of."""
        if "$ref" in schema:
            schema = OPENAPI["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
        fields = dict(schema.get("properties", {}))
        for part in schema.get("allOf", []):
            fields |= self.properties(part)
        return fields

    def test_what_samples_hold_besides_their_own_examples_are_fields_and_values_of_their_types(self) -> None:
        types = OPENAPI["components"]["schemas"]
        told = [(name, types[name], fields) for name, fields in samples.TYPES.items()]
        for _, _, operation in self.operations():
            name = operation["operationId"]
            if name in samples.OPERATIONS:
                told.append((name, api.answer_of(operation), samples.OPERATIONS[name]))
        self.assertEqual(len(told), len(samples.TYPES) + len(samples.OPERATIONS))
        for name, schema, fields in told:
            known = self.properties(schema)
            for field, value in fields.items():
                self.assertEqual(faults(known[field], value), [], f"{name}.{field}")

    def test_a_sample_does_not_contradict_itself(self) -> None:
        def sample(path: str, method: str) -> dict:
            section = self.section(OPENAPI["paths"][path][method])
            return json.loads(section.split("```json\n")[1].split("\n```")[0])

        self.assertFalse(sample("/endpoint-checks", "post")["passed"], "one of its steps failed")
        for act, state in (("activate", "ACTIVE"), ("deactivate", "DEACTIVATED"), ("verify", "PENDING_VERIFICATION")):
            self.assertEqual(sample(f"/subscriptions/{{id}}/{act}", "post")["state"], state)
        listed = sample("/subscriptions/{id}/notifications", "get")["items"][0]
        self.assertEqual((listed["status"], listed["end"]), ("RETRY", None))
        self.assertFalse(sample("/subscriptions/{id}/resends", "post")["dryRun"], "it was not asked for")
        self.assertEqual(sample("/subscriptions/{id}/replays", "post")["status"], "RUNNING")

    def test_an_answer_tells_its_headers(self) -> None:
        section = self.section(OPENAPI["paths"]["/subscriptions/{id}"]["get"])
        self.assertIn("Header `ETag`: ", section)

    def test_nothing_of_the_house_is_told(self) -> None:
        self.assertNotRegex(self.text, r"\b(reseller|portal)\.[a-z]+[A-Z.]")
        self.assertNotIn("/admin/", self.text)
        self.assertNotIn("AdminQuotaRequest", self.text)


def luminance(colour: str) -> float:
    """The relative luminance of `#rrggbb`, as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


class Methods(unittest.TestCase):
    def test_each_method_has_a_colour_that_its_white_text_is_read_on(self) -> None:
        css = (SITE / "_static/site.css").read_text(encoding="utf-8")
        rules = r"article \.method\.([a-z]+) \{\s*background: (#[0-9a-f]{6});"
        colours = dict(re.findall(rules, css))
        methods = {method for item in OPENAPI["paths"].values() for method in item}
        self.assertLessEqual(methods, set(colours))
        self.assertEqual(len(set(colours.values())), len(colours))
        for method, colour in colours.items():
            contrast = 1.05 / (luminance(colour) + 0.05)
            self.assertGreaterEqual(contrast, 4.5, f"{method}: WCAG AA asks for 4.5")


KINDS = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def faults(schema: dict, value: object, path: str = "") -> "list[str]":
    """Why the API would refuse a value, by the words of JSON Schema that its document uses."""
    if "$ref" in schema:
        schema = OPENAPI["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    if "oneOf" in schema:
        return min((faults(option, value, path) for option in schema["oneOf"]), key=len)
    kinds = schema.get("type", list(KINDS))
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(isinstance(value, KINDS[kind]) for kind in kinds):
        return [f"{path} is no {kinds[0]}"]
    found = []
    if isinstance(value, dict):
        fields, rest = schema.get("properties"), schema.get("additionalProperties")
        below = f"{path}." if path else ""
        found += [f"{below}{name} is missing" for name in schema.get("required", []) if name not in value]
        for name, one in value.items():
            if fields and name not in fields:
                found.append(f"{below}{name} is unknown")
            elif fields or rest:
                found += faults(fields[name] if fields else rest, one, below + name)
    elif isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{path} has too few or too many entries")
        for one in value:
            found += faults(schema.get("items", {}), one, path)
    elif isinstance(value, str):
        size = len(value.encode())
        if not schema.get("minLength", 0) <= size <= schema.get("maxLength", size):
            found.append(f"{path} is too short or too long")
        if value not in schema.get("enum", [value]):
            found.append(f"{path} is none of its values")
        forms = {"date-time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "uuid": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"}
        if not re.fullmatch(forms.get(schema.get("format", ""), ".*"), value, re.DOTALL):
            found.append(f"{path} is no {schema['format']}")
    elif isinstance(value, (int, float)):
        if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
            found.append(f"{path} is out of bounds")
    return found


class Completeness(unittest.TestCase):
    def site(self) -> Path:
        folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        for name in ("errors.md", "delivery.md"):
            shutil.copy(SITE / name, folder)
        return folder

    def test_a_failure_without_a_word_about_it_fails_the_build(self) -> None:
        vectors = {**VECTORS, "verify": [*VECTORS["verify"], {"result": "on_the_moon"}]}
        with self.assertRaisesRegex(ValueError, "errors.md: say what these mean: on_the_moon"):
            errors.check_page(OPENAPI, vectors, self.site())
        errors.check_page(OPENAPI, VECTORS, self.site())

    def test_a_status_without_a_word_about_it_fails_the_build(self) -> None:
        site = self.site()
        page = site / "delivery.md"
        page.write_text(
            page.read_text(encoding="utf-8").replace("`GIVEN_UP`", "given up"), encoding="utf-8"
        )
        with self.assertRaisesRegex(ValueError, "delivery.md: say what these mean: GIVEN_UP"):
            errors.check_page(OPENAPI, VECTORS, site)

    def test_a_problem_without_advice_fails_the_build(self) -> None:
        document = json.loads(json.dumps(OPENAPI).replace('"last-secret"', '"lost-secret"'))
        with self.assertRaisesRegex(ValueError, "lost-secret"):
            errors.problems(document, Prose(CONFIG))

    def test_a_problem_of_no_operation_is_told_as_the_code_has_it(self) -> None:
        kinds = (CHECKOUT / "libs/http-api/src/kind.rs").read_text(encoding="utf-8")
        for name, (_, meaning) in errors.EVERYWHERE.items():
            self.assertIn(f'"{name}"', kinds)
            self.assertIn(f'"{meaning}"', kinds)
        self.assertIn("`method-not-allowed` | 405 |", "\n".join(errors.problems(OPENAPI, Prose(CONFIG))))


class Figures(unittest.TestCase):
    def test_figures_are_those_of_the_configuration(self) -> None:
        told = figures.figures(CHECKOUT / "config/default.yaml")
        self.assertEqual(told["retries"], "three")
        self.assertEqual(told["retry_delays"], "30 seconds, 2 minutes and 8 minutes")
        self.assertEqual((told["degraded_after"], told["deactivated_after"]), ("2 days", "5 days"))

    def test_other_settings_make_other_words(self) -> None:
        text = (CHECKOUT / "config/default.yaml").read_text(encoding="utf-8")
        self.assertIn("maxRetries: 3", text)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as changed:
            changed.write(
                text.replace("maxRetries: 3", "maxRetries: 5").replace(
                    "maxDelayInSeconds: 3600", "maxDelayInSeconds: 1200"
                )
            )
            changed.flush()
            told = figures.figures(Path(changed.name))
        self.assertEqual(
            told["retry_delays"], "30 seconds, 2 minutes, 8 minutes, 20 minutes and 20 minutes"
        )
        self.assertEqual(told["attempts"], "six")

    def test_figures_that_no_setting_changes_are_those_of_the_code(self) -> None:
        for source, constant, page, words in (
            (
                "libs/domain/src/notification/retry.rs",
                f"const FACTOR: u32 = {figures.FACTOR};",
                "delivery.md",
                "{{ retry_delays }}",
            ),
            (
                "libs/domain/src/notification/retry.rs",
                "const SPREAD: f64 = 0.25;",
                "delivery.md",
                "up to a quarter shorter or longer",
            ),
            (
                "libs/engine/src/webhook/challenge.rs",
                "const LONGEST: Duration = Duration::from_secs(10);",
                "subscriptions.md",
                "You have ten seconds",
            ),
            (
                "libs/domain/src/subscription/field.rs",
                "const URL_MAX_BYTES: usize = 2_048;",
                "subscriptions.md",
                "at most 2048 bytes",
            ),
            (
                "libs/domain/src/subscription/field.rs",
                "const DESCRIPTION_MAX_BYTES: usize = 500;",
                "subscriptions.md",
                "at most 500 bytes",
            ),
            (
                "libs/domain/src/subscription/field.rs",
                "const FILTER_MAX: usize = 200;",
                "subscriptions.md",
                "at most 200",
            ),
            (
                "libs/store/src/webhook/secrets.rs",
                "pub const VALID_SECRETS_MAX: u32 = 5;",
                "subscriptions.md",
                "At most five are valid",
            ),
            (
                "libs/store/src/webhook/replay_step.rs",
                "SETTLED_AFTER: Duration = Duration::from_secs(10);",
                "subscriptions.md",
                "ends ten seconds after",
            ),
            (
                "libs/store/queries/webhook/claim_emails.sql",
                "interval '1 hour'",
                "delivery.md",
                "at most one an hour",
            ),
            (
                "services/reseller-portal/src/notifications/list.rs",
                "TimeDelta::days(7)",
                "subscriptions.md",
                "the last 7 days",
            ),
            (
                "services/reseller-portal/src/limits.rs",
                "(per(50), per(200))",
                "errors.md",
                "50 times a second, 200 at once",
            ),
            (
                "services/reseller-portal/src/limits.rs",
                "(per(2), per(120))",
                "errors.md",
                "2 a second and 120 at once",
            ),
            (
                "libs/signing/src/verify.rs",
                "Duration::from_secs(300)",
                "signatures.md",
                "more than five minutes",
            ),
            (
                "libs/signing/src/secret.rs",
                "MIN_SECRET_BYTES: usize = 24;",
                "errors.md",
                "fewer than 24",
            ),
            (
                "libs/signing/src/secret.rs",
                "MAX_SECRET_BYTES: usize = 64;",
                "errors.md",
                "more than 64 bytes",
            ),
        ):
            with self.subTest(source=source, page=page):
                self.assertIn(
                    constant,
                    (CHECKOUT / source).read_text(encoding="utf-8"),
                    f"then change {page}: {words}",
                )
                self.assertIn(
                    words, " ".join((SITE / page).read_text(encoding="utf-8").split()), page
                )

    def test_plain_text_is_shown_as_it_is(self) -> None:
        prose = Prose({"reseller.replay.perSecond": 100})
        self.assertEqual(
            prose("prefixes such as domain.*, or * for all"),
            r"prefixes such as domain.\*, or \* for all",
        )
        self.assertEqual(prose("the `next` of {id}\nand <b>"), r"the `next` of \{id\} and \<b\>")
        self.assertEqual(
            prose("at most reseller.replay.perSecond."),
            "at most 100 a second (by default).",
        )
        switch = Prose({"portal.secrets.reveal": True, "reseller.replay.maxAgeInDays": 30})
        self.assertEqual(
            switch("Where portal.secrets.reveal is off; at most reseller.replay.maxAgeInDays ago"),
            "Where the operators' setting, on by default, is off; at most 30 days (by default) ago",
        )
        self.assertEqual(
            switch("whether it is shown is portal.secrets.reveal. Without"),
            "whether it is shown is the operators' setting, on by default. Without",
        )


if __name__ == "__main__":
    unittest.main()
