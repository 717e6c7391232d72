using System.Threading;
using System.Threading.Tasks;

namespace Postrider.Webhooks
{
    /// <summary>Remembers the keys of notifications. Write one for what you have: two methods.</summary>
    public interface ISeenStore
    {
        /// <summary>
        /// Remembers a key and says whether it is new. It must be atomic: of several calls with one key, exactly one gets true.
        /// </summary>
        /// <param name="key">See <see cref="Once.ScopedKey"/>.</param>
        /// <param name="cancellationToken">Ends the wait.</param>
        Task<bool> AddAsync(string key, CancellationToken cancellationToken = default(CancellationToken));

        /// <summary>Forgets a key; one that is not there is no error.</summary>
        /// <param name="key">What was added.</param>
        /// <param name="cancellationToken">Ends the wait.</param>
        Task RemoveAsync(string key, CancellationToken cancellationToken = default(CancellationToken));
    }
}
