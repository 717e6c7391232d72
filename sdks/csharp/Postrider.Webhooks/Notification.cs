using System;
using System.Collections.Generic;

namespace Postrider.Webhooks
{
    /// <summary>A request that was signed with one of your secrets.</summary>
    public sealed class Notification
    {
        /// <summary>The type of the challenge to a new or changed endpoint; see <see cref="Challenge"/>.</summary>
        public const string VerificationType = "postrider.verification";

        /// <summary>The type of what the reseller API sends to try an endpoint.</summary>
        public const string TestType = "postrider.test";

        /// <summary>Makes one, for tests of your own handlers.</summary>
        /// <param name="id">See <see cref="Id"/>.</param>
        /// <param name="type">See <see cref="Type"/>.</param>
        /// <param name="timestamp">See <see cref="Timestamp"/>.</param>
        /// <param name="data">See <see cref="Data"/>.</param>
        /// <param name="dataJson">See <see cref="DataJson"/>.</param>
        /// <param name="idempotencyKey">See <see cref="IdempotencyKey"/>.</param>
        /// <param name="attemptedAt">See <see cref="AttemptedAt"/>.</param>
        public Notification(
            string id,
            string type,
            DateTimeOffset timestamp,
            IReadOnlyDictionary<string, object> data,
            string dataJson,
            string idempotencyKey,
            DateTimeOffset attemptedAt)
        {
            Id = id ?? throw new ArgumentNullException(nameof(id));
            Type = type ?? throw new ArgumentNullException(nameof(type));
            Timestamp = timestamp;
            Data = data ?? throw new ArgumentNullException(nameof(data));
            DataJson = dataJson ?? throw new ArgumentNullException(nameof(dataJson));
            IdempotencyKey = idempotencyKey ?? throw new ArgumentNullException(nameof(idempotencyKey));
            AttemptedAt = attemptedAt;
        }

        /// <summary>Names the event. The same in every attempt, in every resend, and for each of your subscriptions.</summary>
        public string Id { get; }

        /// <summary>The event type, such as domain.created.</summary>
        public string Type { get; }

        /// <summary>When it happened, in UTC.</summary>
        public DateTimeOffset Timestamp { get; }

        /// <summary>
        /// What happened. Values are null, bool, string, long (a whole number that fits), double (every other number),
        /// <c>IReadOnlyList&lt;object&gt;</c> and <c>IReadOnlyDictionary&lt;string, object&gt;</c>.
        /// </summary>
        public IReadOnlyDictionary<string, object> Data { get; }

        /// <summary>
        /// The same as text, as it arrived, for a JSON library and a class of yours. Attributes may be added to event types, so do
        /// not refuse those that you do not know.
        /// </summary>
        public string DataJson { get; }

        /// <summary>SHA-256 over the body, in hexadecimal, computed here. Two events never share one.</summary>
        public string IdempotencyKey { get; }

        /// <summary>When this attempt to deliver began, in UTC and whole seconds.</summary>
        public DateTimeOffset AttemptedAt { get; }

        /// <summary>
        /// What to answer a notification of <see cref="VerificationType"/> with, as the whole body and status 200; null for every
        /// other notification.
        /// </summary>
        public string Challenge
        {
            get
            {
                if (Type == VerificationType && Data.TryGetValue("challenge", out var challenge))
                {
                    return challenge as string;
                }
                return null;
            }
        }
    }
}
