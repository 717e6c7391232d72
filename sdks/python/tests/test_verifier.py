"""What the vectors cannot say: how frameworks hand over headers and bodies, and what errors tell."""

import email.message
import pickle
import random
import unittest
from collections import Counter
from datetime import timedelta, timezone
from typing import Any

from postrider_webhooks import (
    BadBodyError,
    BadTimestampError,
    MalformedHeaderError,
    MissingHeaderError,
    NoMatchError,
    SecretError,
    TooOldError,
    VerificationError,
    Verifier,
    sign,
    signed_headers,
)

from .samples import BODY, NOW, OTHER_SECRET, SECRET, headers, verifier


def wsgi(of: dict[str, str]) -> dict[str, Any]:
    environment = {"HTTP_" + name.upper().replace("-", "_"): value for name, value in of.items()}
    return {"wsgi.version": (1, 0), "REQUEST_METHOD": "POST", **environment}


def message(of: dict[str, str]) -> email.message.Message:
    """What ``http.server`` has."""
    made = email.message.Message()
    for name, value in of.items():
        made[name.title()] = value
    return made


class HeadersTest(unittest.TestCase):
    def test_headers_are_found_in_whatever_a_framework_has(self) -> None:
        plain = headers()
        spellings: dict[str, Any] = {
            "a dictionary": plain,
            "capitals": {name.upper(): value for name, value in plain.items()},
            "words": {name.title(): value for name, value in plain.items()},
            "pairs": list(plain.items()),
            "pairs of bytes, as ASGI has them": [
                (name.encode(), value.encode()) for name, value in plain.items()
            ],
            "a dictionary of bytes": {
                name.encode(): value.encode() for name, value in plain.items()
            },
            "a list for each name": {name: [value] for name, value in plain.items()},
            "the environment of WSGI": wsgi(plain),
            "a message of http.server": message(plain),
        }
        for name, given in spellings.items():
            with self.subTest(name):
                self.assertEqual(verifier().verify(given, BODY).id, "evt_1")

    def test_a_missing_header_is_named(self) -> None:
        for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
            for given in (
                {**headers(), name: ""},
                {k: v for k, v in headers().items() if k != name},
            ):
                with self.assertRaises(MissingHeaderError) as caught:
                    verifier().verify(given, BODY)
                self.assertEqual(caught.exception.header, name)
                self.assertIn(name, str(caught.exception))

    def test_of_a_header_that_was_sent_twice_the_first_counts(self) -> None:
        twice: dict[str, Any] = {name: [value, "other"] for name, value in headers().items()}
        pairs = [*headers().items(), *((name, "other") for name in headers())]
        for given in (twice, pairs):
            self.assertEqual(verifier().verify(given, BODY).id, "evt_1")
        with self.assertRaises(MissingHeaderError):
            verifier().verify({**twice, "webhook-id": []}, BODY)

    def test_pairs_can_be_given_that_are_there_only_once(self) -> None:
        # The three are looked for in an order that is not theirs.
        pairs = reversed(list(headers().items()))
        self.assertEqual(verifier().verify(pairs, BODY).id, "evt_1")

    def test_what_cannot_be_headers_is_an_error_of_the_caller(self) -> None:
        for given in (
            None,
            7,
            "webhook-id: evt_1",
            b"",
            {"webhook-id": 7},
            {"webhook-id": [7]},
        ):
            with self.subTest(given), self.assertRaises(TypeError):
                verifier().verify(given, BODY)  # type: ignore[arg-type]

    def test_half_a_character_in_a_header_does_not_become_another_one(self) -> None:
        signed = signed_headers(SECRET, "evt?", NOW, BODY)
        for changed in (
            {"webhook-id": "evt\udcff"},
            {"webhook-signature": "\udcff" + signed["webhook-signature"]},
        ):
            with self.assertRaises(NoMatchError):
                verifier().verify_signature({**signed, **changed}, BODY)


class BodyTest(unittest.TestCase):
    def test_every_kind_of_bytes_is_taken(self) -> None:
        for body in (BODY, bytearray(BODY), memoryview(BODY)):
            self.assertEqual(verifier().verify(headers(), body).data, {"domain": "example.org"})

    def test_text_and_parsed_json_are_errors_of_the_caller_that_say_what_to_do(self) -> None:
        for body in (BODY.decode(), {"id": "evt_1"}, None):
            with self.assertRaises(TypeError) as caught:
                verifier().verify(headers(), body)  # type: ignore[arg-type]
            self.assertIn("request.get_data()", str(caught.exception))

    def test_a_thousand_lists_in_each_other_are_a_bad_body_and_no_crash(self) -> None:
        body = b"[" * 200_000
        with self.assertRaises(BadBodyError):
            verifier().verify(signed_headers(SECRET, "evt_1", NOW, body), body)

    def test_the_key_is_computed_and_never_taken_from_the_header(self) -> None:
        forged = {**headers(), "idempotency-key": "0" * 64}
        genuine = headers()["idempotency-key"]
        self.assertEqual(verifier().verify(forged, BODY).idempotency_key, genuine)

    def test_times_are_aware_and_in_utc(self) -> None:
        notification = verifier().verify(headers(), BODY)
        self.assertIs(notification.timestamp.tzinfo, timezone.utc)
        self.assertIs(notification.attempted_at.tzinfo, timezone.utc)
        self.assertEqual(notification.attempted_at.timestamp(), NOW)

    def test_times_beyond_the_calendar_are_a_bad_body(self) -> None:
        for timestamp in (
            b"0001-01-01T00:00:00+01:00",
            b"9999-12-31T23:59:59-01:00",
            b"0000-01-01T00:00:00Z",
        ):
            body = BODY.replace(b"2025-07-20T08:26:40.000Z", timestamp)
            with self.subTest(timestamp), self.assertRaises(BadBodyError):
                verifier().verify(signed_headers(SECRET, "evt_1", NOW, body), body)

    def test_only_a_challenge_has_something_to_answer(self) -> None:
        for event_type, data, wanted in (
            (b"postrider.verification", b'{"challenge":"1ef5"}', "1ef5"),
            (b"postrider.verification", b'{"challenge":7}', None),
            (b"postrider.verification", b"{}", None),
            (b"domain.created", b'{"challenge":"1ef5"}', None),
        ):
            body = BODY.replace(b"domain.created", event_type).replace(
                b'{"domain":"example.org"}', data
            )
            found = verifier().verify(signed_headers(SECRET, "evt_1", NOW, body), body)
            self.assertEqual(found.challenge, wanted)


class SecretsAndTimeTest(unittest.TestCase):
    def test_old_and_new_secrets_are_known_during_a_rotation(self) -> None:
        both = signed_headers([OTHER_SECRET, SECRET], "evt_1", NOW, BODY)
        for known in ((SECRET,), (OTHER_SECRET,), (SECRET, OTHER_SECRET)):
            verifier(*known).verify_signature(both, BODY)
        with self.assertRaises(NoMatchError):
            verifier(OTHER_SECRET).verify_signature(headers(), BODY)

    def test_blanks_around_a_secret_are_no_part_of_it(self) -> None:
        verifier(f" {SECRET}\n").verify_signature(headers(), BODY)

    def test_without_secrets_nothing_is_verified_or_signed(self) -> None:
        for secrets in ([], (), iter([])):
            with self.assertRaises(SecretError) as caught:
                Verifier(secrets)
            self.assertEqual(caught.exception.code, "none")
            with self.assertRaises(SecretError):
                sign(secrets, "evt_1", NOW, BODY)

    def test_the_tolerance_counts_in_whole_seconds_and_both_ends_belong_to_it(self) -> None:
        verifier(now=NOW + 300.9).verify_signature(headers(), BODY)
        verifier(now=NOW - 300).verify_signature(headers(), BODY)
        with self.assertRaises(TooOldError):
            verifier(now=NOW + 301).verify_signature(headers(), BODY)
        for tolerance in (timedelta(seconds=5), 5, 5.0):
            shorter = Verifier(SECRET, tolerance=tolerance, clock=lambda: NOW + 6)
            with self.assertRaises(TooOldError):
                shorter.verify_signature(headers(), BODY)

    def test_a_tolerance_that_is_none_is_an_error_of_configuration(self) -> None:
        for tolerance in (-1, timedelta(seconds=-1), float("nan")):
            with self.assertRaises(ValueError):
                Verifier(SECRET, tolerance=tolerance)

    def test_digits_without_an_end_are_refused_and_not_computed(self) -> None:
        for timestamp in ("9" * 100_000, str(2**63)):
            with self.assertRaises(BadTimestampError):
                verifier().verify({**headers(), "webhook-timestamp": timestamp}, BODY)

    def test_the_real_clock_is_used_unless_another_one_is_given(self) -> None:
        with self.assertRaises(TooOldError):
            Verifier(SECRET).verify(headers(), BODY)


class RubbishTest(unittest.TestCase):
    def test_no_request_makes_it_raise_anything_but_its_own_errors(self) -> None:
        chance = random.Random(6)
        letters = 'v1,.= \t\n\0eé٣\ud800{}[]":0129aZ+/_-'
        genuine, judged = headers(), Counter[str]()
        for _ in range(4_000):
            given: dict[str, Any] = dict(genuine)
            body = bytearray(BODY)
            for _ in range(chance.randrange(3)):
                name = chance.choice(["webhook-id", "webhook-timestamp", "webhook-signature"])
                given[name] = "".join(chance.choices(letters, k=chance.randrange(70)))
            for _ in range(chance.randrange(4)):
                body[chance.randrange(len(body))] = chance.randrange(256)
            if chance.random() < 0.5 and given == genuine:
                given = signed_headers(SECRET, "evt_1", NOW, body)
            try:
                verifier().verify(given, body)
                judged["ok"] += 1
            except VerificationError as error:
                judged[error.code] += 1
        for verdict in ("ok", "bad_body", "no_match", "missing_header", "bad_timestamp"):
            self.assertGreater(judged[verdict], 20, judged)


class ErrorsTest(unittest.TestCase):
    def wrong(self) -> list[Exception]:
        signed = headers()
        found: list[Exception] = []
        bad = b'{"id":"evt_1","secret":"hush"}'
        for given, body, now in (
            ({}, BODY, NOW),
            ({**signed, "webhook-id": "hush.hush"}, BODY, NOW),
            ({**signed, "webhook-timestamp": "hush"}, BODY, NOW),
            (signed, BODY, NOW + 999),
            (signed, BODY, NOW - 999),
            (signed, BODY + b"hush", NOW),
            (signed_headers(SECRET, "evt_1", NOW, bad), bad, NOW),
            (signed_headers(SECRET, "evt_1", NOW, b"hush"), b"hush", NOW),
            (signed_headers(SECRET, "hush", NOW, BODY), BODY, NOW),
        ):
            with self.assertRaises(VerificationError) as caught:
                verifier(now=now).verify(given, body)
            found.append(caught.exception)
        for secret in ("hush", "whsec_hush", "whsec_hush!" * 9, SECRET * 4):
            with self.assertRaises(SecretError) as caught_secret:
                Verifier(secret)
            found.append(caught_secret.exception)
        return found

    def test_no_error_repeats_anything_that_was_given(self) -> None:
        for error in self.wrong():
            # Also not in what a traceback would show as its cause.
            chain = [
                error,
                error.__cause__,
                None if error.__suppress_context__ else error.__context__,
            ]
            for part in ("hush", SECRET[6:], headers()["webhook-signature"][3:], "example.org"):
                for shown in filter(None, chain):
                    self.assertNotIn(part, f"{shown} {shown!r} {vars(shown)}")

    def test_every_kind_has_a_code_of_its_own_and_one_base(self) -> None:
        codes = {error.code for error in self.wrong() if isinstance(error, VerificationError)}
        wanted = {"missing_header", "ambiguous_id", "bad_timestamp", "too_old", "too_new"}
        self.assertEqual(codes, wanted | {"no_match", "bad_body"})
        self.assertTrue(issubclass(BadTimestampError, MalformedHeaderError))
        self.assertFalse(issubclass(SecretError, VerificationError))

    def test_errors_survive_being_sent_to_another_process(self) -> None:
        for error in self.wrong():
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual(
                (type(again), str(again), vars(again)), (type(error), str(error), vars(error))
            )


class SigningTest(unittest.TestCase):
    def test_what_receivers_refuse_is_not_signed(self) -> None:
        for message_id in ("", "evt.1"):
            with self.assertRaises(ValueError):
                sign(SECRET, message_id, NOW, BODY)
        with self.assertRaises(TypeError):
            sign(SECRET, "evt_1", NOW, BODY.decode())  # type: ignore[arg-type]

    def test_all_headers_of_a_request_are_made(self) -> None:
        names = ["content-type", "event-id", "idempotency-key", "webhook-id"]
        self.assertEqual(sorted(headers()), [*names, "webhook-signature", "webhook-timestamp"])
