using System;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Threading.Tasks;

namespace Postrider.Webhooks.Tests
{
    /// <summary>
    /// Runs every public method of every class whose name ends with Tests, and ends with 1 when one of them throws. Its argument is
    /// the path of vectors.json.
    /// </summary>
    internal static class Program
    {
        private static int Main(string[] arguments)
        {
            if (arguments.Length != 1 || !File.Exists(arguments[0]))
            {
                Console.Error.WriteLine("give the path of vectors.json, and nothing else");
                return 64;
            }
            Vectors.Path = arguments[0];
            var tests = Assembly.GetExecutingAssembly().GetTypes()
                .Where(type => type.Name.EndsWith("Tests", StringComparison.Ordinal))
                .SelectMany(type => type.GetMethods(BindingFlags.Public | BindingFlags.Static))
                .OrderBy(method => method.DeclaringType.Name + method.Name, StringComparer.Ordinal)
                .ToList();
            var failed = tests.Count(test => !Succeeds(test));
            Console.WriteLine((tests.Count - failed) + " passed, " + failed + " failed");
            return failed > 0 || tests.Count == 0 ? 1 : 0;
        }

        private static bool Succeeds(MethodInfo test)
        {
            try
            {
                (test.Invoke(null, null) as Task)?.GetAwaiter().GetResult();
                return true;
            }
            catch (Exception error)
            {
                var cause = (error as TargetInvocationException)?.InnerException ?? error;
                Console.WriteLine("FAILED " + test.DeclaringType.Name + "." + test.Name + "\n" + cause);
                return false;
            }
        }
    }
}
