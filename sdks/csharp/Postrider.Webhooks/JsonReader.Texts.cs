using System;
using System.Text;

namespace Postrider.Webhooks
{
    /// <content>How it reads texts: what stands between quotation marks.</content>
    internal sealed partial class JsonReader
    {
        private string ReadText()
        {
            Take('"');
            var start = _position;
            while (Peek() != '"' && Peek() != '\\')
            {
                TakePlain();
            }
            if (TryTake('"'))
            {
                return _text.Substring(start, _position - 1 - start);
            }
            var text = new StringBuilder(_text, start, _position - start, Math.Max(16, (_position - start) * 2));
            while (!TryTake('"'))
            {
                text.Append(TryTake('\\') ? ReadEscape() : TakePlain());
            }
            var whole = text.ToString();
            CheckSurrogates(whole);
            return whole;
        }

        private char TakePlain()
        {
            if (Peek() < ' ')
            {
                throw Problem("a text has no end, or holds a control sign");
            }
            return _text[_position++];
        }

        private char ReadEscape()
        {
            var sign = Peek();
            _position++;
            switch (sign)
            {
                case '"':
                case '\\':
                case '/':
                    return sign;
                case 'b':
                    return '\b';
                case 'f':
                    return '\f';
                case 'n':
                    return '\n';
                case 'r':
                    return '\r';
                case 't':
                    return '\t';
                case 'u':
                    return ReadCodeUnit();
                default:
                    _position--;
                    throw Problem("unknown escape");
            }
        }

        private char ReadCodeUnit()
        {
            var unit = 0;
            for (var digit = 0; digit < 4; digit++)
            {
                var value = "0123456789abcdef".IndexOf(char.ToLowerInvariant(Peek()));
                if (value < 0)
                {
                    throw Problem("an escape has not four hexadecimal digits");
                }
                unit = unit * 16 + value;
                _position++;
            }
            return (char)unit;
        }

        // Escapes can write half of a character, which no UTF-8 could stand for.
        private void CheckSurrogates(string text)
        {
            for (var index = 0; index < text.Length; index++)
            {
                if (!char.IsSurrogate(text[index]))
                {
                    continue;
                }
                if (index + 1 >= text.Length || !char.IsSurrogatePair(text[index], text[index + 1]))
                {
                    throw Problem("half of a character is escaped in the text that ends");
                }
                index++;
            }
        }
    }
}
