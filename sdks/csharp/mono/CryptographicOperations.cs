using System.Runtime.CompilerServices;

namespace System.Security.Cryptography
{
    /// <summary>
    /// What .NET 8 has and Mono lacks of all that the library uses. With it Mono compiles and tests the parts that are meant for
    /// .NET 8, too. It is in no package.
    /// </summary>
    internal static class CryptographicOperations
    {
        [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.NoOptimization)]
        internal static bool FixedTimeEquals(ReadOnlySpan<byte> left, ReadOnlySpan<byte> right)
        {
            if (left.Length != right.Length)
            {
                return false;
            }
            var difference = 0;
            for (var index = 0; index < left.Length; index++)
            {
                difference |= left[index] ^ right[index];
            }
            return difference == 0;
        }
    }
}
