using System.Runtime.CompilerServices;

[assembly: InternalsVisibleTo("Postrider.Webhooks.Tests")]
