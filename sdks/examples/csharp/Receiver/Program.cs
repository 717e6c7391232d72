// An endpoint for the notifications of Postrider, complete and small enough to begin a service of your own with.
//
// Environment:
//   WEBHOOK_SECRETS_FILE  a file with one signing secret a line. It is read again for each request, so that a rotation needs no
//                         restart: write the new secret below the old one, and remove the old one a day later.
//   LISTEN                host:port; port 0 takes any that is free. Default 127.0.0.1:8000.
//
// It prints "listening on HOST:PORT" and then one line for each request: "processed ID TYPE", "repeated ID", "refused CODE",
// "challenge answered", or "failed ID" when the work itself failed.
using Postrider.Webhooks;
using Receiver;

// Far more than a notification has; it keeps a stranger from filling the memory.
const long maxBodyBytes = 4 << 20;

var secrets = new SecretsFile(Environment.GetEnvironmentVariable("WEBHOOK_SECRETS_FILE"));
// A restart forgets. With a database take SqlSeenStore, on the transaction that your work writes in.
ISeenStore seen = new MemorySeenStore();

var builder = WebApplication.CreateSlimBuilder(args);
builder.Logging.ClearProviders();
builder.WebHost.ConfigureKestrel(kestrel => kestrel.Limits.MaxRequestBodySize = maxBodyBytes);
var app = builder.Build();
app.Urls.Add("http://" + (Environment.GetEnvironmentVariable("LISTEN") ?? "127.0.0.1:8000"));
app.MapPost("/{**path}", ReceiveAsync);

await app.StartAsync();
Console.WriteLine("listening on " + new Uri(app.Urls.First()).Authority);
await app.WaitForShutdownAsync();

async Task<IResult> ReceiveAsync(HttpRequest request, CancellationToken cancelled)
{
    // The bytes as they came: nothing may parse them before the signature is checked.
    using var buffer = new MemoryStream();
    await request.Body.CopyToAsync(buffer, cancelled);
    if (!secrets.Verifier().TryVerify(
        name => request.Headers[name], buffer.ToArray(), out var notification, out var error))
    {
        Console.WriteLine($"refused {error.Code}");
        var status = error is BadBodyException ? StatusCodes.Status400BadRequest : StatusCodes.Status401Unauthorized;
        // The first bytes of an answer can be read with the attempt in the reseller API: say why.
        return Results.Text(error.Code, statusCode: status);
    }
    if (notification.Challenge is string challenge)
    {
        Console.WriteLine("challenge answered");
        return Results.Text(challenge);
    }
    return await ProcessAsync(notification, cancelled);
}

async Task<IResult> ProcessAsync(Notification notification, CancellationToken cancelled)
{
    try
    {
        var outcome = await Once.ProcessAsync(seen, notification, WorkAsync, cancellationToken: cancelled);
        Console.WriteLine(outcome == ProcessOutcome.Processed
            ? $"processed {notification.Id} {notification.Type}"
            : $"repeated {notification.Id}");
        return Results.Ok();
    }
    catch (Exception failure)
    {
        Console.WriteLine($"failed {notification.Id} {failure.Message}");
        // 5xx and not 4xx: the notification comes again.
        return Results.StatusCode(StatusCodes.Status500InternalServerError);
    }
}

// Stands for what your service does because of a notification. It must be quick: your endpoint has ten seconds to answer unless the
// subscription says otherwise. Better store the notification and work on it afterwards.
Task WorkAsync(Notification notification, CancellationToken cancelled) => Task.CompletedTask;
