using System;
using System.Collections.Generic;
using System.Text;

namespace Postrider.Webhooks
{
    /// <summary>Reads a body whose signature was right.</summary>
    internal static class NotificationReader
    {
        // Neither writes nor swallows a byte order mark, and takes nothing that is no UTF-8.
        private static readonly Encoding Utf8 = new UTF8Encoding(false, true);

        private static readonly long LastSecond = DateTimeOffset.MaxValue.ToUnixTimeSeconds();

        /// <summary>Gives the error, or null and the notification.</summary>
        internal static BadBodyException Read(string id, long seconds, byte[] body, out Notification notification)
        {
            notification = null;
            Dictionary<string, object> members;
            string dataJson;
            try
            {
                members = JsonReader.ReadObject(Utf8.GetString(body), "data", out dataJson);
            }
            catch (DecoderFallbackException)
            {
                return new BadBodyException("it is not UTF-8");
            }
            catch (JsonException error)
            {
                return new BadBodyException(error.Message);
            }
            if (!TryText(members, "id", out var own) || !TryText(members, "type", out var type))
            {
                return new BadBodyException("its \"id\" or \"type\" is no text");
            }
            if (own != id)
            {
                return new BadBodyException("its \"id\" is not that of the header webhook-id");
            }
            if (!TryText(members, "timestamp", out var text) || !Rfc3339.TryParse(text, out var timestamp))
            {
                return new BadBodyException("its \"timestamp\" is no time as RFC 3339 has it");
            }
            if (!members.TryGetValue("data", out var value) || !(value is IReadOnlyDictionary<string, object> data))
            {
                return new BadBodyException("its \"data\" is no object");
            }
            // With an enormous tolerance an attempt can lie beyond the calendar.
            var attemptedAt = DateTimeOffset.FromUnixTimeSeconds(Math.Min(seconds, LastSecond));
            notification = new Notification(
                id, type, timestamp, data, dataJson, WebhookSigner.IdempotencyKey(body), attemptedAt);
            return null;
        }

        private static bool TryText(Dictionary<string, object> members, string name, out string text)
        {
            text = members.TryGetValue(name, out var value) ? value as string : null;
            return !string.IsNullOrEmpty(text);
        }
    }
}
