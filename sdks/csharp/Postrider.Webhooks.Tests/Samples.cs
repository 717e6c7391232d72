using System;
using System.Collections.Generic;
using System.Text;

namespace Postrider.Webhooks.Tests
{
    /// <summary>What several tests begin with.</summary>
    internal static class Samples
    {
        internal const string Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

        internal const string Body =
            "{\"id\":\"evt_1\",\"type\":\"domain.created\",\"timestamp\":\"2023-11-14T22:13:20.125Z\","
            + "\"data\":{\"domain\":{\"name\":\"example.org\"}, \"serial\":12345678901234567890}}";

        internal static readonly DateTimeOffset Now = new DateTimeOffset(2023, 11, 14, 22, 13, 20, TimeSpan.Zero);

        internal static string SecretOf(char fill)
        {
            return "whsec_" + Convert.ToBase64String(Bytes(new string(fill, 32)));
        }

        internal static byte[] Bytes(string text)
        {
            return Encoding.UTF8.GetBytes(text);
        }

        internal static WebhookVerifier Verifier(params string[] secrets)
        {
            return new WebhookVerifier(secrets, clock: () => Now);
        }

        internal static Dictionary<string, string> Signed(byte[] body, params string[] secrets)
        {
            var headers = new Dictionary<string, string>();
            foreach (var header in WebhookSigner.SignedHeaders(secrets, "evt_1", Now, body))
            {
                headers.Add(header.Key, header.Value);
            }
            return headers;
        }

        internal static Notification Happened(string id, int millis)
        {
            return new Notification(
                id, "domain.created", Now.AddMilliseconds(millis), new Dictionary<string, object>(), "{}", "", Now);
        }
    }
}
