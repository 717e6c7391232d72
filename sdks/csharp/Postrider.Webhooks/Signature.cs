using System;
using System.Runtime.CompilerServices;
using System.Security.Cryptography;
using System.Text;
#if NET8_0_OR_GREATER
using System.Runtime.InteropServices;
using Bytes = System.ReadOnlySpan<byte>;
#else
using Bytes = System.ArraySegment<byte>;
#endif

namespace Postrider.Webhooks
{
    /// <summary>Makes signatures and compares them.</summary>
    internal static class Signature
    {
        private const string Version = "v1,";

        /// <summary>
        /// A signature with its version. The timestamp is text, so that a receiver checks the very characters that arrived.
        /// </summary>
        internal static string Of(byte[] key, string id, string timestamp, Bytes body)
        {
            var head = Encoding.UTF8.GetBytes(id + "." + timestamp + ".");
            return Version + Convert.ToBase64String(Hmac(key, head, body));
        }

        /// <summary>Whether one of the signatures in a header is this one. A signature has one spelling only.</summary>
        internal static bool IsAmong(string expected, string signatures)
        {
            for (var start = 0; start <= signatures.Length;)
            {
                var end = signatures.IndexOf(' ', start);
                if (end < 0)
                {
                    end = signatures.Length;
                }
                if (end - start == expected.Length && FixedTimeEquals(expected, signatures, start))
                {
                    return true;
                }
                start = end + 1;
            }
            return false;
        }

#if NET8_0_OR_GREATER
        private static byte[] Hmac(byte[] key, byte[] head, Bytes body)
        {
            using (var hmac = IncrementalHash.CreateHMAC(HashAlgorithmName.SHA256, key))
            {
                hmac.AppendData(head);
                hmac.AppendData(body);
                return hmac.GetHashAndReset();
            }
        }

        private static bool FixedTimeEquals(string expected, string text, int start)
        {
            return CryptographicOperations.FixedTimeEquals(
                MemoryMarshal.AsBytes(expected.AsSpan()), MemoryMarshal.AsBytes(text.AsSpan(start, expected.Length)));
        }
#else
        private static byte[] Hmac(byte[] key, byte[] head, Bytes body)
        {
            using (var hmac = new HMACSHA256(key))
            {
                hmac.TransformBlock(head, 0, head.Length, null, 0);
                hmac.TransformFinalBlock(body.Array, body.Offset, body.Count);
                return hmac.Hash;
            }
        }

        // .NET Standard 2.0 has no such comparison. Without optimisation the compiler may not end the loop early.
        [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)]
        private static bool FixedTimeEquals(string expected, string text, int start)
        {
            var difference = 0;
            for (var index = 0; index < expected.Length; index++)
            {
                difference |= expected[index] ^ text[start + index];
            }
            return difference == 0;
        }
#endif
    }
}
