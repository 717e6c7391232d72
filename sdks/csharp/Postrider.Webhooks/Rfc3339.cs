using System;

namespace Postrider.Webhooks
{
    /// <summary>
    /// Reads times such as 2026-11-21T09:51:36.518Z, with one to nine digits of a second or none. The framework's own parsers depend
    /// on a fixed number of them, or take much that is no RFC 3339.
    /// </summary>
    internal static class Rfc3339
    {
        private const string Pattern = "0000-00-00T00:00:00";
        private const int MaxFractionDigits = 9;

        internal static bool TryParse(string text, out DateTimeOffset time)
        {
            time = default(DateTimeOffset);
            if (text.Length <= Pattern.Length || !HasShape(text, Pattern, 0))
            {
                return false;
            }
            var position = Pattern.Length;
            if (!TryFraction(text, ref position, out var ticks) || !TryOffset(text, position, out var offset))
            {
                return false;
            }
            try
            {
                var local = new DateTime(
                    Number(text, 0, 4), Number(text, 5, 2), Number(text, 8, 2),
                    Number(text, 11, 2), Number(text, 14, 2), Number(text, 17, 2));
                time = new DateTimeOffset(local.AddTicks(ticks) - offset, TimeSpan.Zero);
                return true;
            }
            catch (ArgumentOutOfRangeException)
            {
                // No such day or time, or beyond the calendar.
                return false;
            }
        }

        // What is finer than a tick of 100 nanoseconds is cut off.
        private static bool TryFraction(string text, ref int position, out long ticks)
        {
            ticks = 0;
            if (position >= text.Length || text[position] != '.')
            {
                return true;
            }
            var start = ++position;
            for (var worth = TimeSpan.TicksPerSecond / 10; position < text.Length && IsDigit(text[position]); position++)
            {
                ticks += worth * (text[position] - '0');
                worth /= 10;
            }
            return position > start && position <= start + MaxFractionDigits;
        }

        private static bool TryOffset(string text, int position, out TimeSpan offset)
        {
            offset = TimeSpan.Zero;
            if (text.Length == position + 1)
            {
                return text[position] == 'Z';
            }
            if (text.Length != position + 6 || (text[position] != '+' && text[position] != '-')
                || !HasShape(text, "00:00", position + 1))
            {
                return false;
            }
            var hours = Number(text, position + 1, 2);
            var minutes = Number(text, position + 4, 2);
            offset = TimeSpan.FromMinutes((hours * 60 + minutes) * (text[position] == '-' ? -1 : 1));
            return hours < 24 && minutes < 60;
        }

        // A 0 of the pattern stands for any digit, everything else for itself.
        private static bool HasShape(string text, string pattern, int start)
        {
            for (var index = 0; index < pattern.Length; index++)
            {
                var sign = text[start + index];
                if (pattern[index] == '0' ? !IsDigit(sign) : sign != pattern[index])
                {
                    return false;
                }
            }
            return true;
        }

        private static int Number(string text, int start, int length)
        {
            var number = 0;
            for (var index = start; index < start + length; index++)
            {
                number = number * 10 + (text[index] - '0');
            }
            return number;
        }

        private static bool IsDigit(char sign)
        {
            return sign >= '0' && sign <= '9';
        }
    }
}
