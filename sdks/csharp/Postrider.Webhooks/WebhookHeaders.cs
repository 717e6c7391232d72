using System;
using System.Collections.Generic;
using System.Collections.Specialized;
using System.Linq;

namespace Postrider.Webhooks
{
    /// <summary>
    /// The headers that make a signed request, and ways to look them up. With ASP.NET Core no help is needed:
    /// <c>name => request.Headers[name]</c>.
    /// </summary>
    public static class WebhookHeaders
    {
        /// <summary>Names the notification; the same in every attempt.</summary>
        public const string Id = "webhook-id";

        /// <summary>When the attempt began, in seconds since 1970.</summary>
        public const string Timestamp = "webhook-timestamp";

        /// <summary>The signatures, with a blank between them.</summary>
        public const string Signature = "webhook-signature";

        /// <summary>
        /// Looks headers up in pairs or a dictionary, however their names are spelled. If a name is there in several spellings with
        /// different values, the header counts as missing: none of them can be preferred.
        /// </summary>
        /// <param name="headers">Names and values.</param>
        public static Func<string, string> From(IEnumerable<KeyValuePair<string, string>> headers)
        {
            if (headers == null)
            {
                throw new ArgumentNullException(nameof(headers));
            }
            return name =>
            {
                var values = headers
                    .Where(header => string.Equals(header.Key, name, StringComparison.OrdinalIgnoreCase))
                    .Select(header => header.Value)
                    .Distinct()
                    .Take(2)
                    .ToList();
                return values.Count == 1 ? values[0] : null;
            };
        }

        /// <summary>Looks headers up in those of <c>System.Net.Http</c>, such as HttpRequestMessage.Headers.</summary>
        /// <param name="headers">Names and their values.</param>
        public static Func<string, string> From(IEnumerable<KeyValuePair<string, IEnumerable<string>>> headers)
        {
            if (headers == null)
            {
                throw new ArgumentNullException(nameof(headers));
            }
            return From(headers.SelectMany(
                header => header.Value, (header, value) => new KeyValuePair<string, string>(header.Key, value)));
        }

        /// <summary>Looks headers up in those of HttpListener and of ASP.NET before Core, which disregard case themselves.</summary>
        /// <param name="headers">Names and values.</param>
        public static Func<string, string> From(NameValueCollection headers)
        {
            if (headers == null)
            {
                throw new ArgumentNullException(nameof(headers));
            }
            return name => headers[name];
        }
    }
}
