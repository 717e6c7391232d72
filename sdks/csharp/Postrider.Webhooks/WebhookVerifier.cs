using System;
using System.Collections.Generic;
using System.Globalization;
#if NET8_0_OR_GREATER
using Bytes = System.ReadOnlySpan<byte>;
#else
using Bytes = System.ArraySegment<byte>;
#endif

namespace Postrider.Webhooks
{
    /// <summary>
    /// Tells notifications that were signed with one of its secrets from everything else. It never changes, so that threads can
    /// share one. To rotate a secret make another: it costs next to nothing.
    /// </summary>
    public sealed class WebhookVerifier
    {
        /// <summary>How far webhook-timestamp may be away from now when nothing else is said.</summary>
        public static readonly TimeSpan DefaultTolerance = TimeSpan.FromMinutes(5);

        private readonly byte[][] _keys;
        private readonly long _toleranceSeconds;
        private readonly Func<DateTimeOffset> _now;

        /// <summary>Makes a verifier that knows one secret.</summary>
        /// <param name="secret">As the portal showed it: <c>whsec_</c> and base64.</param>
        /// <exception cref="SecretException">The secret cannot be used.</exception>
        public WebhookVerifier(string secret) : this(new[] { secret })
        {
        }

        /// <summary>Makes a verifier that knows these secrets: while one is being replaced, the old and the new one.</summary>
        /// <param name="secrets">As the portal showed them: <c>whsec_</c> and base64.</param>
        /// <param name="tolerance">
        /// How far webhook-timestamp may be away from now, in whole seconds; exactly as far is accepted. Five minutes when null.
        /// </param>
        /// <param name="clock">Replaces the system's clock, for tests.</param>
        /// <exception cref="SecretException">A secret cannot be used, or there is none.</exception>
        /// <exception cref="ArgumentOutOfRangeException">The tolerance is negative.</exception>
        public WebhookVerifier(
            IEnumerable<string> secrets, TimeSpan? tolerance = null, Func<DateTimeOffset> clock = null)
        {
            _keys = Secret.DecodeAll(secrets);
            var chosen = tolerance ?? DefaultTolerance;
            if (chosen < TimeSpan.Zero)
            {
                throw new ArgumentOutOfRangeException(nameof(tolerance), "the tolerance must not be negative");
            }
            _toleranceSeconds = (long)chosen.TotalSeconds;
            _now = clock ?? (() => DateTimeOffset.UtcNow);
        }

        /// <summary>Checks the signature of a request and reads its body.</summary>
        /// <param name="header">Looks a header up by its name without regard to case; null or empty when it is missing.</param>
        /// <param name="body">
        /// The bytes as they arrived: JSON that was parsed and written again is another message.
        /// </param>
        /// <exception cref="WebhookVerificationException">The request is refused; the subclass says why.</exception>
        public Notification Verify(Func<string, string> header, byte[] body)
        {
            if (!TryVerify(header, body, out var notification, out var error))
            {
                throw error;
            }
            return notification;
        }

        /// <summary>Does what <see cref="Verify"/> does without throwing.</summary>
        /// <param name="header">As there.</param>
        /// <param name="body">As there.</param>
        /// <param name="notification">What was sent; null when it is refused.</param>
        /// <param name="error">Why it is refused; null when it is not.</param>
        public bool TryVerify(
            Func<string, string> header, byte[] body, out Notification notification, out WebhookVerificationException error)
        {
            notification = null;
            RequireBody(body);
            error = Check(header, new Bytes(body), out var attempt);
            if (error == null)
            {
                error = NotificationReader.Read(attempt.Id, attempt.Seconds, body, out notification);
            }
            return error == null;
        }

        /// <summary>Checks the signature alone and parses nothing.</summary>
        /// <param name="header">As for <see cref="Verify"/>.</param>
        /// <param name="body">As for <see cref="Verify"/>.</param>
        /// <exception cref="WebhookVerificationException">The request is refused, though never for its body.</exception>
        public void VerifySignature(Func<string, string> header, byte[] body)
        {
            RequireBody(body);
            var error = Check(header, new Bytes(body), out _);
            if (error != null)
            {
                throw error;
            }
        }

#if NET8_0_OR_GREATER
        /// <summary>Checks the signature alone and parses nothing.</summary>
        /// <param name="header">As for <see cref="Verify"/>.</param>
        /// <param name="body">As for <see cref="Verify"/>.</param>
        /// <exception cref="WebhookVerificationException">The request is refused, though never for its body.</exception>
        public void VerifySignature(Func<string, string> header, ReadOnlySpan<byte> body)
        {
            var error = Check(header, body, out _);
            if (error != null)
            {
                throw error;
            }
        }
#endif

        private WebhookVerificationException Check(Func<string, string> header, Bytes body, out Attempt attempt)
        {
            attempt = default(Attempt);
            if (header == null)
            {
                throw new ArgumentNullException(nameof(header));
            }
            var id = header(WebhookHeaders.Id);
            if (string.IsNullOrEmpty(id))
            {
                return new MissingHeaderException(WebhookHeaders.Id);
            }
            var timestamp = header(WebhookHeaders.Timestamp);
            if (string.IsNullOrEmpty(timestamp))
            {
                return new MissingHeaderException(WebhookHeaders.Timestamp);
            }
            var signatures = header(WebhookHeaders.Signature);
            if (string.IsNullOrEmpty(signatures))
            {
                return new MissingHeaderException(WebhookHeaders.Signature);
            }
            if (id.IndexOf('.') >= 0)
            {
                return new AmbiguousIdException();
            }
            if (!TryParseSeconds(timestamp, out var seconds))
            {
                return new BadTimestampException();
            }
            attempt = new Attempt(id, seconds);
            return CheckTime(seconds) ?? CheckSignatures(id, timestamp, signatures, body);
        }

        // Both ends of the tolerance belong to it.
        private WebhookVerificationException CheckTime(long seconds)
        {
            // Neither side overflows: clock and tolerance hold a few thousand years, and seconds are not negative.
            var now = _now().ToUnixTimeSeconds();
            if (seconds < now - _toleranceSeconds)
            {
                return new TooOldException();
            }
            return seconds - _toleranceSeconds > now ? new TooNewException() : null;
        }

        private WebhookVerificationException CheckSignatures(string id, string timestamp, string signatures, Bytes body)
        {
            foreach (var key in _keys)
            {
                if (Signature.IsAmong(Signature.Of(key, id, timestamp, body), signatures))
                {
                    return null;
                }
            }
            return new NoMatchException();
        }

        // Takes only the one way to write a number, since the text is what was signed.
        private static bool TryParseSeconds(string text, out long seconds)
        {
            seconds = 0;
            foreach (var sign in text)
            {
                if (sign < '0' || sign > '9')
                {
                    return false;
                }
            }
            return (text.Length == 1 || text[0] != '0')
                && long.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out seconds);
        }

        private static void RequireBody(byte[] body)
        {
            if (body == null)
            {
                throw new ArgumentNullException(nameof(body));
            }
        }

        /// <summary>What the headers of a request say.</summary>
        private struct Attempt
        {
            internal Attempt(string id, long seconds)
            {
                Id = id;
                Seconds = seconds;
            }

            internal string Id { get; }

            internal long Seconds { get; }
        }
    }
}
