using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Text;

namespace Postrider.Webhooks.Tests
{
    internal static class JsonTests
    {
        public static void ValuesOfEveryKindAreRead()
        {
            foreach (var step in new[]
            {
                ("null", "null"), ("true", "Boolean True"), ("false", "Boolean False"), ("0", "Int64 0"), ("-0", "Int64 0"),
                ("9223372036854775807", "Int64 9223372036854775807"), ("-9223372036854775808", "Int64 -9223372036854775808"),
                ("9223372036854775808", "Double 9.22337203685478E+18"), ("1.5", "Double 1.5"), ("1e2", "Double 100"),
                ("1E-2", "Double 0.01"), ("1e-999", "Double 0"), ("\"\"", "''"), ("\"\\u0041\\n\\/\\\\\\\"\"", "'A\n/\\\"'"),
                ("\"\\ud83e\\udd80\"", "'🦀'"), ("\"🦀 é\"", "'🦀 é'"), ("\"\u007f\"", "'\u007f'"), ("[]", "[]"),
                (" [ 1 , [ ] ] ", "[Int64 1,[]]"), ("{}", "{}"), ("{\"a\":1,\"a\":2,\"A\":3}", "{'A':Int64 3,'a':Int64 2}"),
            })
            {
                var (text, wanted) = step;
                var found = JsonReader.ReadObject("{\"v\":" + text + "}", "", out _)["v"];
                // Older and newer frameworks write the last digits of a double in different ways.
                var shown = found is double number
                    ? "Double " + number.ToString("G15", CultureInfo.InvariantCulture)
                    : VectorTests.Canonical(found);
                Expect.Equal(wanted, shown, text);
            }
        }

        public static void WhatIsNoJsonIsRefused()
        {
            foreach (var text in new[]
            {
                "", " ", "nul", "nulll", "True", "NaN", "Infinity", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "0x1", "1_0", "1e999",
                "-1e999", "\"", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\n\"", "\"\0\"", "\"\\ud800\"", "\"\\udc00\"",
                "\"\\ud800\\ud800\"", "\"\\ud800x\"", "'a'", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "{", "{]", "{\"a\"",
                "{\"a\":", "{\"a\":}", "{\"a\":1,}", "{a:1}", "{1:1}", "{\"a\" 1}", "/**/1", "1//", "\uFEFF1", "\u00A01", "\u20281", "١",
                "1\0", "\f1", "\v1",
            })
            {
                Expect.Throws<JsonException>(() => JsonReader.ReadObject("{\"v\":" + text + "}", "", out _), text);
            }
            foreach (var text in new[] { "", "1", "[]", "{}{}", "{} x", "null", "\"{}\"" })
            {
                Expect.Throws<JsonException>(() => JsonReader.ReadObject(text, "", out _), text);
            }
        }

        public static void TimeGrowsWithTheLengthOfATextAlone()
        {
            // Work that grew with the square of this would take minutes.
            var text = new string('a', 1 << 23);
            var found = JsonReader.ReadObject("{\"v\":\"\\n" + text + "\"}", "", out _)["v"];
            Expect.That((string)found == "\n" + text, "another text was read");
        }

        public static void DepthIsBounded()
        {
            JsonReader.ReadObject(Nested(JsonReader.MaxDepth - 1), "", out _);
            Expect.Throws<JsonException>(() => JsonReader.ReadObject(Nested(JsonReader.MaxDepth), "", out _));
            foreach (var opening in new[] { "[", "{\"a\":", "[{\"a\":" })
            {
                var hostile = "{\"v\":" + string.Concat(Enumerable.Repeat(opening, 1000000));
                Expect.Throws<JsonException>(() => JsonReader.ReadObject(hostile, "", out _));
            }
        }

        public static void TheTextOfAMemberIsKeptFromTheOutermostObjectAlone()
        {
            JsonReader.ReadObject("{\"a\":{\"data\":1},\"d\\u0061ta\" : [ 1, 2 ] ,\"b\":[{\"data\":3}]}", "data", out var kept);
            Expect.Equal("[ 1, 2 ]", kept);
            JsonReader.ReadObject("{\"a\":{\"data\":1}}", "data", out kept);
            Expect.Equal(null, kept);
        }

        public static void WhatWasWrittenIsReadBack()
        {
            var random = new Random(7);
            for (var round = 0; round < 500; round++)
            {
                var value = new Dictionary<string, object> { { "v", RandomValue(random, 5) } };
                var text = Written(value, random);
                Expect.Equal(
                    VectorTests.Canonical(value), VectorTests.Canonical(JsonReader.ReadObject(text, "", out _)), text);
            }
        }

        public static void EveryCutAndEveryChangedSignEndsInAValueOrAnError()
        {
            var random = new Random(8);
            const string signs = "{}[]\",:\\u0d8.-+eE \0\ud800tfn";
            for (var round = 0; round < 20000; round++)
            {
                var text = new StringBuilder(Samples.Body);
                text.Length = random.Next(1, text.Length + 1);
                for (var change = random.Next(3); change >= 0; change--)
                {
                    text[random.Next(text.Length)] = signs[random.Next(signs.Length)];
                }
                try
                {
                    JsonReader.ReadObject(text.ToString(), "data", out _);
                }
                catch (JsonException)
                {
                    // This is the other way to end.
                }
            }
        }

        private static string Nested(int depth)
        {
            return "{\"v\":" + new string('[', depth) + new string(']', depth) + "}";
        }

        private static object RandomValue(Random random, int depth)
        {
            switch (random.Next(depth > 0 ? 7 : 5))
            {
                case 0:
                    return null;
                case 1:
                    return random.Next(2) == 0;
                case 2:
                    return (long)random.Next() * (random.Next() - (1 << 30));
                case 3:
                    return random.Next(1, 1000) / 8.0 + 0.0625;
                case 4:
                    return RandomText(random);
                case 5:
                    return Enumerable.Range(0, random.Next(4)).Select(_ => RandomValue(random, depth - 1)).ToList();
                default:
                    var members = new Dictionary<string, object>();
                    for (var count = random.Next(4); count > 0; count--)
                    {
                        members[RandomText(random)] = RandomValue(random, depth - 1);
                    }
                    return members;
            }
        }

        private static string RandomText(Random random)
        {
            const string letters = "ab\"\\/\b\f\n\r\t\0\u001f é日\u2028";
            return string.Concat(Enumerable.Range(0, random.Next(6)).Select(_ => letters[random.Next(letters.Length)]));
        }

        private static string Written(object value, Random random)
        {
            if (value is string text)
            {
                return "\"" + string.Concat(text.Select(sign => WrittenSign(sign, random))) + "\"";
            }
            if (value is Dictionary<string, object> members)
            {
                return "{" + string.Join(",", members.Select(member => Padded(Written(member.Key, random), random)
                    + ":" + Padded(Written(member.Value, random), random))) + "}";
            }
            if (value is List<object> values)
            {
                return "[" + string.Join(",", values.Select(entry => Padded(Written(entry, random), random))) + "]";
            }
            if (value is bool truth)
            {
                return truth ? "true" : "false";
            }
            return value == null ? "null" : Convert.ToString(value, CultureInfo.InvariantCulture);
        }

        private static string Padded(string text, Random random)
        {
            var blanks = new[] { "", " ", "\n", "\t\r" };
            return blanks[random.Next(4)] + text + blanks[random.Next(4)];
        }

        private static string WrittenSign(char sign, Random random)
        {
            var mustBeEscaped = sign < ' ' || sign == '"' || sign == '\\';
            return mustBeEscaped || random.Next(4) == 0 ? "\\u" + ((int)sign).ToString("x4") : sign.ToString();
        }
    }
}
