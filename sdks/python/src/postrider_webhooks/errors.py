"""What can be wrong with a request, and with a secret.

Every error has a stable ``code``, the same word as in ``sdks/vectors.json`` and in the libraries
for other languages. No message repeats a secret, a signature or a body, so that all of them can be
logged.
"""

from typing import Any


def _rebuild(
    kind: type[BaseException], arguments: tuple[Any, ...], attributes: dict[str, Any]
) -> BaseException:
    """An error as it was, in a process that it was sent to."""
    error = kind.__new__(kind, *arguments)
    vars(error).update(attributes)
    return error


class VerificationError(Exception):
    """A request is not to be taken for a notification. Answer 401, or 400 to a ``BadBodyError``."""

    code: str

    def __init__(self, message: str) -> None:
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        # What pickle does by default would call the constructor of a kind with the message.
        return _rebuild, (type(self), self.args, vars(self))


class MissingHeaderError(VerificationError):
    """A header is missing or empty; ``header`` names it."""

    code = "missing_header"

    def __init__(self, header: str) -> None:
        super().__init__(
            f"the header {header} is missing; does a proxy remove it, or is this no notification?"
        )
        self.header = header


class MalformedHeaderError(VerificationError):
    """A header is there and says nothing that could be verified."""


class AmbiguousIdError(MalformedHeaderError):
    """The id holds a full stop: where it ends in what was signed would be a matter of opinion."""

    code = "ambiguous_id"

    def __init__(self) -> None:
        super().__init__("the header webhook-id holds a full stop; Postrider sends no such id")


class BadTimestampError(MalformedHeaderError):
    """The timestamp is not a whole number of seconds since 1970, written as such a number is."""

    code = "bad_timestamp"

    def __init__(self) -> None:
        super().__init__("the header webhook-timestamp is not a whole number of seconds since 1970")


class TooOldError(VerificationError):
    """The request was signed longer ago than is tolerated: a recorded one may have been sent again."""

    code = "too_old"

    def __init__(self) -> None:
        super().__init__(
            "the request was signed too long ago; is the clock of this machine ahead, or was the"
            " request recorded?"
        )


class TooNewError(VerificationError):
    """The request was signed further in the future than is tolerated: one of both clocks is wrong."""

    code = "too_new"

    def __init__(self) -> None:
        super().__init__(
            "the request was signed in the future; is the clock of this machine behind?"
        )


class NoMatchError(VerificationError):
    """No signature was made with one of the secrets for exactly these bytes."""

    code = "no_match"

    def __init__(self) -> None:
        super().__init__(
            "no signature matches; is the secret that of this endpoint, and the body as it arrived,"
            " byte by byte?"
        )


class BadBodyError(VerificationError):
    """The signature is right, and the body is no notification."""

    code = "bad_body"


class SecretError(ValueError):
    """A text is no signing secret, or there is none: an error of configuration, not of a request.

    ``code`` is ``prefix``, ``base64``, ``too_short``, ``too_long`` or ``none``.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, vars(self))
