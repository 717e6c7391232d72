using System;
using System.Collections.Generic;

namespace Postrider.Webhooks.Tests
{
    /// <summary>What a test wants to be so.</summary>
    internal static class Expect
    {
        internal static void That(bool condition, string otherwise)
        {
            if (!condition)
            {
                throw new InvalidOperationException(otherwise);
            }
        }

        internal static void Equal<T>(T wanted, T found, string where = "")
        {
            That(EqualityComparer<T>.Default.Equals(wanted, found), where + ": wanted " + wanted + ", found " + found);
        }

        internal static TError Throws<TError>(Action action, string where = "") where TError : Exception
        {
            try
            {
                action();
            }
            catch (TError error)
            {
                return error;
            }
            throw new InvalidOperationException(where + ": " + typeof(TError).Name + " was not thrown");
        }
    }
}
