using System;

namespace Postrider.Webhooks
{
    /// <summary>A text is not JSON. Says where, and repeats nothing of it.</summary>
    internal sealed class JsonException : Exception
    {
        internal JsonException(string problem, int position) : base(problem + " at character " + (position + 1))
        {
        }
    }
}
