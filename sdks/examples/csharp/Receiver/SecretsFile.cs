using Postrider.Webhooks;

namespace Receiver;

/// <summary>Gives a verifier that knows the secrets which a file holds at present.</summary>
internal sealed class SecretsFile
{
    private readonly string _path;
    private readonly object _lock = new();
    private string _text;
    private WebhookVerifier _current;

    /// <summary>
    /// Fails unless the file holds at least one secret, and good ones only: a service that refuses everything should not even start.
    /// </summary>
    internal SecretsFile(string? path)
    {
        _path = path ?? throw new InvalidOperationException(
            "set WEBHOOK_SECRETS_FILE to a file with one signing secret a line");
        _text = File.ReadAllText(_path);
        _current = Read(_text);
    }

    /// <summary>
    /// Reads the file again. While it cannot be used, for instance because it is just being written, what it held before counts.
    /// </summary>
    internal WebhookVerifier Verifier()
    {
        lock (_lock)
        {
            try
            {
                var text = File.ReadAllText(_path);
                if (text != _text)
                {
                    _current = Read(text);
                    _text = text;
                }
            }
            catch (Exception error) when (error is IOException or UnauthorizedAccessException or SecretException)
            {
                Console.Error.WriteLine($"the secrets stay as they were: {error.Message}");
            }
            return _current;
        }
    }

    private static WebhookVerifier Read(string text)
    {
        return new WebhookVerifier(text.Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries));
    }
}
