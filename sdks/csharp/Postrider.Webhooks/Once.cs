using System;
using System.Threading;
using System.Threading.Tasks;

namespace Postrider.Webhooks
{
    /// <summary>What <see cref="Once.ProcessAsync"/> did. Answer 200 either way.</summary>
    public enum ProcessOutcome
    {
        /// <summary>The handler has run and succeeded.</summary>
        Processed,

        /// <summary>The key had been seen, and the handler has not run.</summary>
        Repeated,
    }

    /// <summary>Processes a notification once, although it may arrive several times.</summary>
    public static class Once
    {
        /// <summary>How long a store should remember: a replay reaches back 30 days, and retries come on top of that.</summary>
        public static readonly TimeSpan DefaultSeenAge = TimeSpan.FromDays(35);

        /// <summary>
        /// Where <see cref="Exception.Data"/> of what a handler threw holds what the store threw when the key was to be removed. Roll
        /// back then, or a retry counts as a repetition.
        /// </summary>
        public const string RemovalFailure = "Postrider.Webhooks.RemovalFailure";

        /// <summary>
        /// The key of a notification within a scope, such as the name of a subscription. Two subscriptions that select the same
        /// event get it with the same id: give each its scope if both are to count. Without a scope the key is the id.
        /// </summary>
        /// <param name="scope">Any text of yours, null or empty for none.</param>
        /// <param name="notification">What arrived.</param>
        public static string ScopedKey(string scope, Notification notification)
        {
            // An id holds no full stop, so that it stays clear where the scope ends.
            return string.IsNullOrEmpty(scope) ? notification.Id : scope + "." + notification.Id;
        }

        /// <summary>Calls the handler unless the key has been seen.</summary>
        /// <remarks>
        /// <para>
        /// The key is added first. When the handler throws, the key is removed again and the exception goes on: answer 500, and the
        /// notification comes again. If it could not be removed, as on a transaction that is beyond use, the same exception goes on
        /// and holds that failure, see <see cref="RemovalFailure"/>.
        /// </para>
        /// <para>
        /// While the handler is at work the key counts as seen: a repetition that comes meanwhile, as after your answer took too
        /// long, is answered 200, and nothing comes after it if the handler fails then. A process that is killed leaves the key
        /// behind, and so may a store that fails to answer. Where a notification must not be lost like this, use a
        /// <see cref="SqlSeenStore"/> on the transaction that the handler writes in, and commit afterwards: a repetition waits until
        /// that transaction has ended.
        /// </para>
        /// </remarks>
        /// <param name="store">Remembers what was seen.</param>
        /// <param name="notification">What arrived.</param>
        /// <param name="handler">Does what is to be done because of it.</param>
        /// <param name="key">See <see cref="ScopedKey"/>; the notification's id when null.</param>
        /// <param name="cancellationToken">Goes to the store and the handler.</param>
        public static async Task<ProcessOutcome> ProcessAsync(
            ISeenStore store,
            Notification notification,
            Func<Notification, CancellationToken, Task> handler,
            string key = null,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            if (store == null)
            {
                throw new ArgumentNullException(nameof(store));
            }
            if (notification == null)
            {
                throw new ArgumentNullException(nameof(notification));
            }
            if (handler == null)
            {
                throw new ArgumentNullException(nameof(handler));
            }
            var chosen = key ?? notification.Id;
            if (!await store.AddAsync(chosen, cancellationToken).ConfigureAwait(false))
            {
                return ProcessOutcome.Repeated;
            }
            try
            {
                await handler(notification, cancellationToken).ConfigureAwait(false);
            }
            catch (Exception failure)
            {
                await ForgetAsync(store, chosen, failure).ConfigureAwait(false);
                throw;
            }
            return ProcessOutcome.Processed;
        }

        // Not with the caller's token: the handler may have failed because it was cancelled. What the handler threw counts for more
        // than what is thrown here: callers decide by its type.
        private static async Task ForgetAsync(ISeenStore store, string key, Exception failure)
        {
            try
            {
                await store.RemoveAsync(key, CancellationToken.None).ConfigureAwait(false);
            }
            catch (Exception removal)
            {
                failure.Data[RemovalFailure] = removal;
            }
        }
    }
}
