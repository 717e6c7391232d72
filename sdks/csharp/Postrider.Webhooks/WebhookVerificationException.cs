using System;

namespace Postrider.Webhooks
{
    /// <summary>Why a notification was refused. It repeats nothing of a secret, a signature or a body.</summary>
    /// <remarks>Its subclasses tell the reasons apart; <see cref="Code"/> does as well.</remarks>
    public abstract class WebhookVerificationException : Exception
    {
        internal WebhookVerificationException(string code, string message) : base(message + " (" + code + ")")
        {
            Code = code;
        }

        /// <summary>Names the reason. It is stable: decide by it, log it, count it.</summary>
        public string Code { get; }
    }

    /// <summary>The headers cannot be those of a signed request; says nothing about who sent it.</summary>
    public abstract class MalformedHeaderException : WebhookVerificationException
    {
        internal MalformedHeaderException(string code, string message) : base(code, message)
        {
        }
    }

    /// <summary><c>missing_header</c>: a header is missing or empty.</summary>
    public sealed class MissingHeaderException : MalformedHeaderException
    {
        internal MissingHeaderException(string header)
            : base("missing_header", "the header " + header + " is missing or empty")
        {
            Header = header;
        }

        /// <summary>The name of the missing one, in lower case.</summary>
        public string Header { get; }
    }

    /// <summary><c>ambiguous_id</c>: webhook-id holds a full stop, so that it would be unclear what was signed.</summary>
    public sealed class AmbiguousIdException : MalformedHeaderException
    {
        internal AmbiguousIdException() : base("ambiguous_id", "the header webhook-id holds a full stop")
        {
        }
    }

    /// <summary><c>bad_timestamp</c>: webhook-timestamp is not a whole number of seconds since 1970.</summary>
    public sealed class BadTimestampException : MalformedHeaderException
    {
        internal BadTimestampException()
            : base("bad_timestamp", "the header webhook-timestamp is not a whole number of seconds since 1970")
        {
        }
    }

    /// <summary><c>too_old</c>: signed before the tolerance began. Perhaps a recorded request was sent again.</summary>
    public sealed class TooOldException : WebhookVerificationException
    {
        internal TooOldException()
            : base("too_old", "it was signed longer ago than tolerated; if this happens to new ones, set this machine's clock")
        {
        }
    }

    /// <summary><c>too_new</c>: signed after the tolerance ends. One of both clocks is wrong.</summary>
    public sealed class TooNewException : WebhookVerificationException
    {
        internal TooNewException()
            : base("too_new", "it was signed further in the future than tolerated; set this machine's clock")
        {
        }
    }

    /// <summary><c>no_match</c>: no signature was made with a known secret for exactly these bytes.</summary>
    public sealed class NoMatchException : WebhookVerificationException
    {
        internal NoMatchException()
            : base(
                "no_match",
                "no signature was made with a known secret for this body; compare the secret, and pass the body on as it "
                    + "arrived, before anything parses it")
        {
        }
    }

    /// <summary><c>bad_body</c>: the signature is right, but the body is no notification.</summary>
    public sealed class BadBodyException : WebhookVerificationException
    {
        internal BadBodyException(string detail) : base("bad_body", "the body is no notification: " + detail)
        {
        }
    }
}
