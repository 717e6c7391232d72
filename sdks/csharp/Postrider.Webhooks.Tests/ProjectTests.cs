using System.IO;
using System.Linq;
using System.Xml;

namespace Postrider.Webhooks.Tests
{
    /// <summary>What can be told of the project files without the .NET SDK, which is not everywhere where these tests run.</summary>
    internal static class ProjectTests
    {
        public static void ProjectsAreXmlAndWhatTheyNameIsThere()
        {
            var sdks = Path.GetDirectoryName(Path.GetFullPath(Vectors.Path));
            var projects = new[] { "csharp", "examples/csharp" }
                .SelectMany(folder => Directory.GetFiles(Path.Combine(sdks, folder), "*.csproj", SearchOption.AllDirectories))
                .ToList();
            Expect.Equal(5, projects.Count, "projects in " + sdks);
            foreach (var project in projects)
            {
                var document = new XmlDocument();
                document.Load(project);
                foreach (XmlAttribute named in document.SelectNodes("//@Include"))
                {
                    var path = Path.Combine(Path.GetDirectoryName(project), named.Value);
                    Expect.That(File.Exists(path), project + " names " + named.Value);
                }
            }
        }
    }
}
