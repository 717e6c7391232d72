// The least that an endpoint needs: WEBHOOK_SECRETS holds its secrets, with blanks between them.
using Postrider.Webhooks;

var secrets = Environment.GetEnvironmentVariable("WEBHOOK_SECRETS") ?? "";
var verifier = new WebhookVerifier(secrets.Split(' ', StringSplitOptions.RemoveEmptyEntries));
var seen = new MemorySeenStore();
var app = WebApplication.Create(args);

app.MapPost("/", async (HttpRequest request) =>
{
    using var buffer = new MemoryStream();
    await request.Body.CopyToAsync(buffer);
    if (!verifier.TryVerify(name => request.Headers[name], buffer.ToArray(), out var notification, out var error))
    {
        return Results.Text(error.Message, statusCode: StatusCodes.Status401Unauthorized);
    }
    if (notification.Challenge is string challenge)
    {
        return Results.Text(challenge);
    }
    if (await seen.AddAsync(notification.Id))
    {
        Console.WriteLine($"{notification.Id} {notification.Type} {notification.DataJson}");
    }
    return Results.Ok();
});

app.Run($"http://127.0.0.1:{Environment.GetEnvironmentVariable("PORT") ?? "8000"}");
