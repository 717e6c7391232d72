using System;

namespace Postrider.Webhooks
{
    /// <summary>A secret cannot be used: the configuration is at fault, not a request. It repeats nothing of the secret.</summary>
    public sealed class SecretException : ArgumentException
    {
        internal SecretException(string code, string message) : base(message + " (" + code + ")")
        {
            Code = code;
        }

        /// <summary>
        /// <c>prefix</c>, <c>base64</c>, <c>too_short</c> or <c>too_long</c>, and <c>none</c> when there is no secret at all.
        /// </summary>
        public string Code { get; }
    }
}
