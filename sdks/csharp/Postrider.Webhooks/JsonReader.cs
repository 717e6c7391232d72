using System;
using System.Collections.Generic;
using System.Globalization;

namespace Postrider.Webhooks
{
    /// <summary>
    /// Reads JSON as RFC 8259 has it, and nothing else. .NET Standard 2.0 has no JSON in its standard library, and a package for it
    /// would be a dependency that every user inherits, in a version that may not be theirs.
    /// </summary>
    /// <remarks>
    /// The depth is bounded, so that a hostile text cannot exhaust the stack; time and memory grow with the length alone. Of members
    /// with one name the last counts. It deliberately maps nothing to classes: <see cref="Notification.DataJson"/> is for that.
    /// </remarks>
    internal sealed partial class JsonReader
    {
        /// <summary>As deep as Postrider itself lets a body be.</summary>
        internal const int MaxDepth = 128;

        private readonly string _text;
        private readonly string _kept;
        private int _position;
        private int _depth;
        private string _keptText;

        private JsonReader(string text, string kept)
        {
            _text = text;
            _kept = kept;
        }

        /// <summary>Reads a text that is one object.</summary>
        /// <param name="text">The whole of it.</param>
        /// <param name="kept">The name of a member of the outermost object.</param>
        /// <param name="keptText">The text of that member's value; null when there is none.</param>
        internal static Dictionary<string, object> ReadObject(string text, string kept, out string keptText)
        {
            var reader = new JsonReader(text, kept);
            reader.SkipBlanks();
            if (reader.Peek() != '{')
            {
                throw reader.Problem("it is not a JSON object: unexpected sign");
            }
            var members = reader.ReadObject();
            reader.SkipBlanks();
            if (reader._position < text.Length)
            {
                throw reader.Problem("something follows the JSON object");
            }
            keptText = reader._keptText;
            return members;
        }

        private object ReadValue()
        {
            switch (Peek())
            {
                case '{':
                    return ReadObject();
                case '[':
                    return ReadList();
                case '"':
                    return ReadText();
                case 't':
                    return ReadWord("true", true);
                case 'f':
                    return ReadWord("false", false);
                case 'n':
                    return ReadWord("null", null);
                default:
                    return ReadNumber();
            }
        }

        private Dictionary<string, object> ReadObject()
        {
            Enter();
            var members = new Dictionary<string, object>(StringComparer.Ordinal);
            SkipBlanks();
            if (!TryTake('}'))
            {
                do
                {
                    SkipBlanks();
                    var name = ReadText();
                    SkipBlanks();
                    Take(':');
                    SkipBlanks();
                    var start = _position;
                    members[name] = ReadValue();
                    if (_depth == 1 && name == _kept)
                    {
                        _keptText = _text.Substring(start, _position - start);
                    }
                    SkipBlanks();
                }
                while (TryTake(','));
                Take('}');
            }
            _depth--;
            return members;
        }

        private List<object> ReadList()
        {
            Enter();
            var values = new List<object>();
            SkipBlanks();
            if (!TryTake(']'))
            {
                do
                {
                    SkipBlanks();
                    values.Add(ReadValue());
                    SkipBlanks();
                }
                while (TryTake(','));
                Take(']');
            }
            _depth--;
            return values;
        }

        private void Enter()
        {
            if (++_depth > MaxDepth)
            {
                throw Problem("it is nested more than " + MaxDepth + " deep");
            }
            _position++;
        }

        private object ReadNumber()
        {
            var start = _position;
            TryTake('-');
            if (!TryTake('0'))
            {
                TakeDigits();
            }
            var isWhole = true;
            if (TryTake('.'))
            {
                isWhole = false;
                TakeDigits();
            }
            if (TryTake('e') || TryTake('E'))
            {
                isWhole = false;
                if (!TryTake('+'))
                {
                    TryTake('-');
                }
                TakeDigits();
            }
            var digits = _text.Substring(start, _position - start);
            if (isWhole && long.TryParse(digits, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out var whole))
            {
                return whole;
            }
            // Older frameworks fail for a number beyond every double, newer ones call it infinite.
            if (!double.TryParse(digits, NumberStyles.Float, CultureInfo.InvariantCulture, out var number)
                || double.IsInfinity(number))
            {
                throw Problem("a number is too large");
            }
            return number;
        }

        private void TakeDigits()
        {
            if (!IsDigit(Peek()))
            {
                throw Problem("unexpected sign");
            }
            while (IsDigit(Peek()))
            {
                _position++;
            }
        }

        private object ReadWord(string word, object value)
        {
            if (string.CompareOrdinal(_text, _position, word, 0, word.Length) != 0)
            {
                throw Problem("unexpected sign");
            }
            _position += word.Length;
            return value;
        }

        private void SkipBlanks()
        {
            while (Peek() == ' ' || Peek() == '\t' || Peek() == '\n' || Peek() == '\r')
            {
                _position++;
            }
        }

        private void Take(char sign)
        {
            if (!TryTake(sign))
            {
                throw Problem("unexpected sign");
            }
        }

        private bool TryTake(char sign)
        {
            if (Peek() != sign)
            {
                return false;
            }
            _position++;
            return true;
        }

        // The end reads as a control sign, which is allowed nowhere.
        private char Peek()
        {
            return _position < _text.Length ? _text[_position] : '\0';
        }

        private JsonException Problem(string problem)
        {
            return new JsonException(problem, _position);
        }

        private static bool IsDigit(char sign)
        {
            return sign >= '0' && sign <= '9';
        }
    }
}
