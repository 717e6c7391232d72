using System;
using System.Collections.Generic;

namespace Postrider.Webhooks
{
    /// <summary>Reads signing secrets: <c>whsec_</c> and the base64 of 24 to 64 bytes.</summary>
    internal static class Secret
    {
        private const string Prefix = "whsec_";
        private const int MinBytes = 24;

        // HMAC would shorten a longer key.
        private const int MaxBytes = 64;

        /// <summary>The keys of secrets, in their order.</summary>
        internal static byte[][] DecodeAll(IEnumerable<string> secrets)
        {
            if (secrets == null)
            {
                throw new ArgumentNullException(nameof(secrets));
            }
            var keys = new List<byte[]>();
            foreach (var secret in secrets)
            {
                keys.Add(Decode(secret, "secret " + (keys.Count + 1) + ": "));
            }
            if (keys.Count == 0)
            {
                throw new SecretException(
                    "none", "no signing secret was given; pass the one that making the subscription showed");
            }
            return keys.ToArray();
        }

        /// <summary>The key of one; blanks around it are no part of it.</summary>
        internal static byte[] Decode(string secret, string where)
        {
            var text = (secret ?? "").Trim();
            if (!text.StartsWith(Prefix, StringComparison.Ordinal))
            {
                throw new SecretException("prefix", where + "a signing secret begins with " + Prefix);
            }
            var key = DecodeBase64(text.Substring(Prefix.Length));
            if (key == null)
            {
                throw new SecretException(
                    "base64", where + "what follows " + Prefix + " is not base64 (standard alphabet, with padding); copy all of it");
            }
            if (key.Length < MinBytes)
            {
                throw new SecretException(
                    "too_short", where + "it has " + key.Length + " bytes, fewer than " + MinBytes + "; copy all of it");
            }
            if (key.Length > MaxBytes)
            {
                throw new SecretException(
                    "too_long", where + "it has " + key.Length + " bytes, more than " + MaxBytes + "; give one secret at a time");
            }
            return key;
        }

        private static byte[] DecodeBase64(string encoded)
        {
            try
            {
                var key = Convert.FromBase64String(encoded);
                // The decoder passes over blanks and bits that stand for nothing: two texts would be one secret.
                return string.Equals(Convert.ToBase64String(key), encoded, StringComparison.Ordinal) ? key : null;
            }
            catch (FormatException)
            {
                return null;
            }
        }
    }
}
