using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Text;

namespace Postrider.Webhooks.Tests
{
    /// <summary>The vectors that every language runs; the README beside the file explains them.</summary>
    internal static class Vectors
    {
        internal static string Path { get; set; }

        /// <summary>The entries of one section.</summary>
        internal static List<Vector> Section(string name)
        {
            var all = JsonReader.ReadObject(File.ReadAllText(Path, Encoding.UTF8), "", out _);
            Expect.Equal(2L, all["format"], "format of vectors.json");
            var entries = ((List<object>)all[name]).Select(entry => new Vector((Dictionary<string, object>)entry)).ToList();
            Expect.That(entries.Count > 0, "the section " + name + " is empty");
            return entries;
        }
    }

    /// <summary>One entry.</summary>
    internal sealed class Vector
    {
        private readonly IReadOnlyDictionary<string, object> _members;

        internal Vector(IReadOnlyDictionary<string, object> members)
        {
            _members = members;
        }

        internal string Name => Text("name");

        internal object this[string member] => _members.TryGetValue(member, out var value) ? value : null;

        internal IEnumerable<string> Secrets => ((List<object>)this["secrets"]).Cast<string>();

        internal Func<string, string> Headers => WebhookHeaders.From(
            ((Dictionary<string, object>)this["headers"])
                .Select(header => new KeyValuePair<string, string>(header.Key, (string)header.Value)));

        internal byte[] Body => this["body"] != null
            ? Encoding.UTF8.GetBytes(Text("body"))
            : Convert.FromBase64String(Text("bodyBase64"));

        internal string Text(string member)
        {
            return (string)this[member];
        }

        internal DateTimeOffset Time(string member)
        {
            // One vector's clock is further ahead than the calendar of .NET reaches.
            return DateTimeOffset.FromUnixTimeSeconds(
                Math.Min((long)this[member], DateTimeOffset.MaxValue.ToUnixTimeSeconds()));
        }

        internal WebhookVerifier Verifier()
        {
            return new WebhookVerifier(
                Secrets, TimeSpan.FromSeconds((long)this["toleranceSeconds"]), () => Time("now"));
        }
    }
}
