using System;
using System.Collections.Generic;
using System.Collections.Specialized;
using System.Globalization;
using System.Linq;
using System.Threading.Tasks;

namespace Postrider.Webhooks.Tests
{
    internal static class VerifierTests
    {
        private static readonly byte[] Body = Samples.Bytes(Samples.Body);

        public static void VerifyGivesBackEveryFieldOfANotification()
        {
            var headers = Samples.Signed(Body, Samples.Secret);
            headers["idempotency-key"] = "another sender's";
            var found = Samples.Verifier(Samples.Secret).Verify(WebhookHeaders.From(headers), Body);
            Expect.Equal("evt_1", found.Id);
            Expect.Equal("domain.created", found.Type);
            Expect.Equal(Samples.Now.AddMilliseconds(125), found.Timestamp);
            Expect.Equal(Samples.Now, found.AttemptedAt);
            Expect.Equal(WebhookSigner.IdempotencyKey(Body), found.IdempotencyKey, "the header is not signed");
            var domain = (IReadOnlyDictionary<string, object>)found.Data["domain"];
            Expect.Equal("example.org", (string)domain["name"]);
            Expect.Equal("{\"domain\":{\"name\":\"example.org\"}, \"serial\":12345678901234567890}", found.DataJson);
            Expect.Equal(null, found.Challenge);
        }

        public static void HeadersAreFoundHoweverTheyAreSpelled()
        {
            var signed = Samples.Signed(Body, Samples.Secret);
            var shouted = signed.ToDictionary(header => header.Key.ToUpperInvariant(), header => header.Value);
            var lists = shouted.Select(
                header => new KeyValuePair<string, IEnumerable<string>>(header.Key, new[] { header.Value }));
            var collection = new NameValueCollection();
            foreach (var header in shouted)
            {
                collection.Add(header.Key, header.Value);
            }
            foreach (var lookup in new[]
            {
                WebhookHeaders.From(signed), WebhookHeaders.From(shouted), WebhookHeaders.From(lists), WebhookHeaders.From(collection),
            })
            {
                Samples.Verifier(Samples.Secret).VerifySignature(lookup, Body);
            }
        }

        public static void ContradictingSpellingsOfAHeaderCountAsMissing()
        {
            var headers = Samples.Signed(Body, Samples.Secret);
            headers["Webhook-Id"] = "evt_2";
            Expect.Throws<MissingHeaderException>(
                () => Samples.Verifier(Samples.Secret).VerifySignature(WebhookHeaders.From(headers), Body));
        }

        public static void MissingHeadersAreNamed()
        {
            foreach (var name in new[] { WebhookHeaders.Id, WebhookHeaders.Timestamp, WebhookHeaders.Signature })
            {
                var headers = Samples.Signed(Body, Samples.Secret);
                headers.Remove(name);
                var error = Expect.Throws<MissingHeaderException>(
                    () => Samples.Verifier(Samples.Secret).VerifySignature(WebhookHeaders.From(headers), Body));
                Expect.Equal(name, error.Header);
                Expect.That(error.Message.Contains(name), error.Message);
            }
        }

        public static void AnySecretThatIsStillValidWillDo()
        {
            string older = Samples.SecretOf('o'), newer = Samples.SecretOf('n'), foreign = Samples.SecretOf('f');
            var headers = WebhookHeaders.From(Samples.Signed(Body, newer, older));
            foreach (var known in new[] { new[] { older }, new[] { newer }, new[] { foreign, older } })
            {
                Samples.Verifier(known).VerifySignature(headers, Body);
            }
            Expect.Throws<NoMatchException>(() => Samples.Verifier(foreign).VerifySignature(headers, Body));
        }

        public static void EveryChangedBitIsFound()
        {
            var verifier = Samples.Verifier(Samples.Secret);
            var headers = WebhookHeaders.From(Samples.Signed(Body, Samples.Secret));
            for (var bit = 0; bit < Body.Length * 8; bit++)
            {
                var changed = (byte[])Body.Clone();
                changed[bit / 8] ^= (byte)(1 << (bit % 8));
                verifier.TryVerify(headers, changed, out _, out var error);
                Expect.That(error is NoMatchException, "bit " + bit);
            }
        }

        public static void TimestampsHaveOneSpelling()
        {
            foreach (var text in new[]
            {
                "+1700000000", "01700000000", "1700000000.0", "1.7e9", " 1700000000", "-1", "9223372036854775808", "١", "x", "0x1",
            })
            {
                var headers = Samples.Signed(Body, Samples.Secret);
                headers[WebhookHeaders.Timestamp] = text;
                Expect.Throws<BadTimestampException>(
                    () => Samples.Verifier(Samples.Secret).VerifySignature(WebhookHeaders.From(headers), Body), text);
            }
        }

        public static void NoClockAndNoToleranceOverflows()
        {
            var headers = Samples.Signed(Body, Samples.Secret);
            headers[WebhookHeaders.Timestamp] = long.MaxValue.ToString(CultureInfo.InvariantCulture);
            foreach (var clock in new[] { DateTimeOffset.MinValue, DateTimeOffset.MaxValue })
            {
                var verifier = new WebhookVerifier(new[] { Samples.Secret }, TimeSpan.MaxValue, () => clock);
                Expect.Throws<TooNewException>(() => verifier.VerifySignature(WebhookHeaders.From(headers), Body));
            }
        }

        public static void BothEndsOfTheToleranceAreInside()
        {
            foreach (var step in new[]
            {
                (-301, "too_old"), (-300, null), (0, null), (300, null), (301, "too_new"),
            })
            {
                var (shift, wanted) = step;
                var headers = WebhookSigner.SignedHeaders(
                    new[] { Samples.Secret }, "evt_1", Samples.Now.AddSeconds(shift), Body);
                Samples.Verifier(Samples.Secret).TryVerify(WebhookHeaders.From(headers), Body, out _, out var error);
                Expect.Equal(wanted, error?.Code, "shift " + shift);
            }
        }

        public static void ChallengesAreReadFromVerificationsAlone()
        {
            foreach (var step in new[] { (Notification.VerificationType, "abc"), ("domain.created", null) })
            {
                var (type, wanted) = step;
                var body = Samples.Bytes(
                    "{\"id\":\"evt_1\",\"type\":\"" + type + "\",\"timestamp\":\"2023-11-14T22:13:20Z\","
                    + "\"data\":{\"challenge\":\"abc\"}}");
                var found = Samples.Verifier(Samples.Secret).Verify(
                    WebhookHeaders.From(Samples.Signed(body, Samples.Secret)), body);
                Expect.Equal(wanted, found.Challenge, type);
            }
        }

        public static void TimesHaveAtMostNineDigitsOfASecond()
        {
            foreach (var step in new[] { (".123456789Z", null), (".1234567890Z", "bad_body"), (".0000000000+01:00", "bad_body") })
            {
                var (end, wanted) = step;
                var body = Samples.Bytes(
                    "{\"id\":\"evt_1\",\"type\":\"a.b\",\"timestamp\":\"2023-11-14T22:13:20" + end + "\",\"data\":{}}");
                var headers = WebhookHeaders.From(Samples.Signed(body, Samples.Secret));
                Samples.Verifier(Samples.Secret).TryVerify(headers, body, out _, out var error);
                Expect.Equal(wanted, error?.Code, end);
            }
        }

        public static void ErrorsRepeatNothingOfSecretsSignaturesAndBodies()
        {
            const string marker = "Tm90aGluZw";
            var badSecret = Expect.Throws<SecretException>(() => Samples.Verifier(Samples.Secret, "whsec_" + marker));
            Expect.That(badSecret.Message.Contains("secret 2"), "it is not said which secret is wrong");
            var headers = Samples.Signed(Body, Samples.Secret);
            headers[WebhookHeaders.Signature] = "v1," + marker;
            var noMatch = Expect.Throws<NoMatchException>(
                () => Samples.Verifier(Samples.Secret).VerifySignature(WebhookHeaders.From(headers), Body));
            var body = Samples.Bytes("{\"id\":\"evt_1\",\"" + marker + "\":" + marker + "}");
            var badBody = Expect.Throws<BadBodyException>(() => Samples.Verifier(Samples.Secret).Verify(
                WebhookHeaders.From(Samples.Signed(body, Samples.Secret)), body));
            foreach (var error in new Exception[] { badSecret, noMatch, badBody })
            {
                Expect.That(!error.ToString().Contains(marker), error.ToString());
            }
        }

        public static void WhatCannotBeUsedIsRefusedAtOnce()
        {
            Expect.Throws<ArgumentOutOfRangeException>(
                () => new WebhookVerifier(new[] { Samples.Secret }, TimeSpan.FromSeconds(-1)));
            Expect.Throws<ArgumentNullException>(() => Samples.Verifier(Samples.Secret).VerifySignature(null, Body));
            Expect.Throws<ArgumentNullException>(
                () => Samples.Verifier(Samples.Secret).Verify(name => null, null));
            foreach (var id in new[] { "", "a.b" })
            {
                Expect.Throws<ArgumentException>(
                    () => WebhookSigner.Sign(new[] { Samples.Secret }, id, Samples.Now, Body), id);
            }
            Expect.Throws<ArgumentException>(() => WebhookSigner.Sign(
                new[] { Samples.Secret }, "a", DateTimeOffset.FromUnixTimeSeconds(-1), Body));
        }

#if NET8_0_OR_GREATER
        public static void APartOfABufferCanBeVerifiedWhereItIs()
        {
            var buffer = Samples.Bytes("before" + Samples.Body + "behind");
            var headers = WebhookHeaders.From(Samples.Signed(Body, Samples.Secret));
            var verifier = Samples.Verifier(Samples.Secret);
            verifier.VerifySignature(headers, new ReadOnlySpan<byte>(buffer, 6, Body.Length));
            Expect.Throws<NoMatchException>(
                () => verifier.VerifySignature(headers, new ReadOnlySpan<byte>(buffer, 5, Body.Length)));
        }
#endif

        public static void OneVerifierServesManyThreads()
        {
            var verifier = Samples.Verifier(Samples.SecretOf('f'), Samples.Secret);
            var headers = WebhookHeaders.From(Samples.Signed(Body, Samples.Secret));
            Parallel.For(0, 1000, round => Expect.Equal("evt_1", verifier.Verify(headers, Body).Id));
        }
    }
}
