using System;
using System.Collections.Generic;
using System.Globalization;
using System.Security.Cryptography;
#if NET8_0_OR_GREATER
using Bytes = System.ReadOnlySpan<byte>;
#else
using Bytes = System.ArraySegment<byte>;
#endif

namespace Postrider.Webhooks
{
    /// <summary>Signs bodies as Postrider does, for tests of your own receiver.</summary>
    public static class WebhookSigner
    {
        /// <summary>
        /// The value of the header webhook-signature: one signature for each secret, in their order, with a blank between them.
        /// </summary>
        /// <param name="secrets">As the portal showed them: <c>whsec_</c> and base64.</param>
        /// <param name="id">Of the notification; not empty, and without a full stop.</param>
        /// <param name="timestamp">Of the attempt; whole seconds count. Not before 1970.</param>
        /// <param name="body">The bytes that are sent.</param>
        /// <exception cref="SecretException">A secret cannot be used.</exception>
        /// <exception cref="ArgumentException">The id or the timestamp cannot be signed.</exception>
        public static string Sign(IEnumerable<string> secrets, string id, DateTimeOffset timestamp, byte[] body)
        {
            var keys = Secret.DecodeAll(secrets);
            if (string.IsNullOrEmpty(id) || id.IndexOf('.') >= 0)
            {
                throw new ArgumentException("an id to sign must not be empty and must not hold a full stop", nameof(id));
            }
            if (timestamp.ToUnixTimeSeconds() < 0)
            {
                throw new ArgumentException("a timestamp to sign must not lie before 1970", nameof(timestamp));
            }
            if (body == null)
            {
                throw new ArgumentNullException(nameof(body));
            }
            var signatures = new List<string>();
            foreach (var key in keys)
            {
                signatures.Add(Signature.Of(key, id, Seconds(timestamp), new Bytes(body)));
            }
            return string.Join(" ", signatures);
        }

        /// <summary>Every header that Postrider sends with a body. It fails as <see cref="Sign"/> does.</summary>
        /// <param name="secrets">As the portal showed them.</param>
        /// <param name="id">Of the notification.</param>
        /// <param name="timestamp">Of the attempt.</param>
        /// <param name="body">The bytes that are sent.</param>
        public static IReadOnlyDictionary<string, string> SignedHeaders(
            IEnumerable<string> secrets, string id, DateTimeOffset timestamp, byte[] body)
        {
            var signature = Sign(secrets, id, timestamp, body);
            return new Dictionary<string, string>(StringComparer.OrdinalIgnoreCase)
            {
                { "content-type", "application/json" },
                { WebhookHeaders.Id, id },
                { "event-id", id },
                { WebhookHeaders.Timestamp, Seconds(timestamp) },
                { WebhookHeaders.Signature, signature },
                { "idempotency-key", IdempotencyKey(body) },
            };
        }

        /// <summary>SHA-256 over the exact bytes of a body, in hexadecimal: what Postrider sends as idempotency-key.</summary>
        /// <param name="body">The bytes as they arrived.</param>
        public static string IdempotencyKey(byte[] body)
        {
            if (body == null)
            {
                throw new ArgumentNullException(nameof(body));
            }
            using (var hash = SHA256.Create())
            {
                return BitConverter.ToString(hash.ComputeHash(body)).Replace("-", "").ToLowerInvariant();
            }
        }

        private static string Seconds(DateTimeOffset timestamp)
        {
            return timestamp.ToUnixTimeSeconds().ToString(CultureInfo.InvariantCulture);
        }
    }
}
