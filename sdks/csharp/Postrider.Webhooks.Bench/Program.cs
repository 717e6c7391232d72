using System;
using System.Diagnostics;
using System.Globalization;
using System.Linq;
using System.Security.Cryptography;
using System.Text;

namespace Postrider.Webhooks.Bench
{
    /// <summary>
    /// Shows what a verification costs beside the bare HMAC over the same content, in microseconds: of several rounds the fastest
    /// counts, since whatever else the machine does only ever adds to it.
    /// </summary>
    internal static class Program
    {
        private const string Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        private const int Rounds = 15;

        private static void Main()
        {
            Console.WriteLine("  bytes        HMAC   signature               verify");
            foreach (var size in new[] { 256, 1024, 4096, 65536 })
            {
                Show(size);
            }
        }

        private static void Show(int size)
        {
            var body = BodyOf(size);
            var now = DateTimeOffset.UtcNow;
            var verifier = new WebhookVerifier(new[] { Secret }, clock: () => now);
            var signed = WebhookSigner.SignedHeaders(new[] { Secret }, "evt_1", now, body).ToDictionary(
                header => header.Key, header => header.Value, StringComparer.OrdinalIgnoreCase);
            Func<string, string> headers = name => signed.TryGetValue(name, out var value) ? value : null;

            var key = Convert.FromBase64String(Secret.Substring("whsec_".Length));
            var content = Encoding.UTF8.GetBytes("evt_1." + now.ToUnixTimeSeconds() + ".").Concat(body).ToArray();
            var times = Fastest(
                Math.Max(20, 4000000 / (size + 1000)),
                () => Bare(key, content),
                () => verifier.VerifySignature(headers, body),
                () => verifier.Verify(headers, body));
            Console.WriteLine(string.Format(
                CultureInfo.InvariantCulture,
                "{0,7} {1,11:F1} {2,11:F1} ({3:F2} times) {4,8:F1} ({5:F2} times)",
                size, times[0], times[1], times[1] / times[0], times[2], times[2] / times[0]));
        }

        private static void Bare(byte[] key, byte[] content)
        {
            using (var hmac = new HMACSHA256(key))
            {
                hmac.ComputeHash(content);
            }
        }

        // One after the other in each round, so that a slow moment meets all of them.
        private static double[] Fastest(int count, params Action[] actions)
        {
            var fastest = actions.Select(action => double.MaxValue).ToArray();
            for (var round = 0; round < Rounds; round++)
            {
                for (var index = 0; index < actions.Length; index++)
                {
                    var watch = Stopwatch.StartNew();
                    for (var repetition = 0; repetition < count; repetition++)
                    {
                        actions[index]();
                    }
                    fastest[index] = Math.Min(fastest[index], watch.Elapsed.TotalMilliseconds * 1000 / count);
                }
            }
            return fastest;
        }

        private static byte[] BodyOf(int size)
        {
            const string head =
                "{\"id\":\"evt_1\",\"type\":\"domain.created\",\"timestamp\":\"2023-11-14T22:13:20.125Z\",\"data\":{\"text\":\"";
            const string tail = "\"}}";
            return Encoding.UTF8.GetBytes(head + new string('a', size - head.Length - tail.Length) + tail);
        }
    }
}
