using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;

namespace Postrider.Webhooks.Tests
{
    internal static class VectorTests
    {
        public static void SecretsAreReadAsTheVectorsSay()
        {
            foreach (var vector in Vectors.Section("secrets"))
            {
                if (vector["error"] == null)
                {
                    var key = BitConverter.ToString(Secret.Decode(vector.Text("secret"), "")).Replace("-", "").ToLowerInvariant();
                    Expect.Equal(vector.Text("keyHex"), key, vector.Name);
                }
                else
                {
                    var error = Expect.Throws<SecretException>(() => Secret.Decode(vector.Text("secret"), ""), vector.Name);
                    Expect.Equal(vector.Text("error"), error.Code, vector.Name);
                }
            }
        }

        public static void SignaturesAreThoseOfTheVectors()
        {
            foreach (var vector in Vectors.Section("sign"))
            {
                var signature = WebhookSigner.Sign(vector.Secrets, vector.Text("id"), vector.Time("timestamp"), vector.Body);
                Expect.Equal(vector.Text("signature"), signature, vector.Name);
                Expect.Equal(vector.Text("idempotencyKey"), WebhookSigner.IdempotencyKey(vector.Body), vector.Name);
            }
        }

        public static void RequestsAreAcceptedAndRefusedAsTheVectorsSay()
        {
            foreach (var vector in Vectors.Section("verify"))
            {
                if (!vector.Secrets.Any())
                {
                    // This library goes one further: it does not let you receive without a secret.
                    Expect.Equal("none", Expect.Throws<SecretException>(() => vector.Verifier()).Code, vector.Name);
                    continue;
                }
                var result = ResultOf(() => vector.Verifier().VerifySignature(vector.Headers, vector.Body));
                Expect.Equal(vector.Text("result"), result, vector.Name);
            }
        }

        public static void NotificationsAreReadAsTheVectorsSay()
        {
            foreach (var vector in Vectors.Section("notifications"))
            {
                vector.Verifier().TryVerify(vector.Headers, vector.Body, out var found, out var error);
                Expect.Equal(vector.Text("result"), error == null ? "ok" : error.Code, vector.Name);
                if (error != null)
                {
                    continue;
                }
                var wanted = new Vector((Dictionary<string, object>)vector["notification"]);
                Expect.Equal(wanted.Text("id"), found.Id, vector.Name);
                Expect.Equal(wanted.Text("type"), found.Type, vector.Name);
                Expect.Equal(wanted.Text("idempotencyKey"), found.IdempotencyKey, vector.Name);
                Expect.Equal((long)wanted["timestampMillis"], found.Timestamp.ToUnixTimeMilliseconds(), vector.Name);
                Expect.Equal(TimeSpan.Zero, found.Timestamp.Offset, vector.Name);
                Expect.Equal(wanted.Time("attemptedAt"), found.AttemptedAt, vector.Name);
                Expect.Equal(Canonical(wanted["data"]), Canonical(found.Data), vector.Name);
                var again = JsonReader.ReadObject(found.DataJson, "", out _);
                Expect.Equal(Canonical(wanted["data"]), Canonical(again), vector.Name);
            }
        }

        private static string ResultOf(Action action)
        {
            try
            {
                action();
                return "ok";
            }
            catch (WebhookVerificationException error)
            {
                return error.Code;
            }
        }

        /// <summary>The same text for values that are the same, whatever the order of their members.</summary>
        internal static string Canonical(object value)
        {
            if (value is IReadOnlyDictionary<string, object> members)
            {
                return "{" + string.Join(",", members.OrderBy(member => member.Key, StringComparer.Ordinal)
                    .Select(member => "'" + member.Key + "':" + Canonical(member.Value))) + "}";
            }
            if (value is string text)
            {
                return "'" + text + "'";
            }
            if (value is IEnumerable values)
            {
                return "[" + string.Join(",", values.Cast<object>().Select(Canonical)) + "]";
            }
            return value == null
                ? "null"
                : value.GetType().Name + " " + Convert.ToString(value, CultureInfo.InvariantCulture);
        }
    }
}
