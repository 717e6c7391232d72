using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Postrider.Webhooks
{
    /// <summary>
    /// Remembers keys until the process ends. It keeps them for a time and no more of them than it may; beyond that it forgets the
    /// oldest, whose notifications would then be processed again. Threads can share one.
    /// </summary>
    public sealed class MemorySeenStore : ISeenStore
    {
        private readonly int _maxEntries;
        private readonly TimeSpan _maxAge;
        private readonly Func<DateTimeOffset> _now;
        private readonly object _lock = new object();
        private readonly Dictionary<string, LinkedListNode<Seen>> _entries =
            new Dictionary<string, LinkedListNode<Seen>>(StringComparer.Ordinal);

        // The oldest comes first: keys are added at the end only. A clock that is set back makes it keep them for longer.
        private readonly LinkedList<Seen> _order = new LinkedList<Seen>();

        /// <summary>Makes an empty store.</summary>
        /// <param name="maxEntries">How many keys are kept, at least one. 100,000 take some 20 MB.</param>
        /// <param name="maxAge">How long a key is kept, more than no time; <see cref="Once.DefaultSeenAge"/> when null.</param>
        /// <param name="clock">Replaces the system's clock, for tests.</param>
        public MemorySeenStore(int maxEntries = 100000, TimeSpan? maxAge = null, Func<DateTimeOffset> clock = null)
        {
            if (maxEntries < 1)
            {
                throw new ArgumentOutOfRangeException(nameof(maxEntries), "at least one key must be kept");
            }
            if (maxAge <= TimeSpan.Zero)
            {
                throw new ArgumentOutOfRangeException(nameof(maxAge), "keys must be kept for some time");
            }
            _maxEntries = maxEntries;
            _maxAge = maxAge ?? Once.DefaultSeenAge;
            _now = clock ?? (() => DateTimeOffset.UtcNow);
        }

        /// <summary>How many keys are kept.</summary>
        public int Count
        {
            get
            {
                lock (_lock)
                {
                    return _entries.Count;
                }
            }
        }

        /// <inheritdoc />
        public Task<bool> AddAsync(string key, CancellationToken cancellationToken = default(CancellationToken))
        {
            lock (_lock)
            {
                var now = _now();
                while (_order.Count > 0 && now - _order.First.Value.At > _maxAge)
                {
                    Drop(_order.First);
                }
                if (_entries.ContainsKey(key))
                {
                    return Task.FromResult(false);
                }
                if (_entries.Count >= _maxEntries)
                {
                    Drop(_order.First);
                }
                _entries[key] = _order.AddLast(new Seen(key, now));
                return Task.FromResult(true);
            }
        }

        /// <inheritdoc />
        public Task RemoveAsync(string key, CancellationToken cancellationToken = default(CancellationToken))
        {
            lock (_lock)
            {
                if (_entries.TryGetValue(key, out var node))
                {
                    Drop(node);
                }
            }
            return Task.FromResult(true);
        }

        private void Drop(LinkedListNode<Seen> node)
        {
            _entries.Remove(node.Value.Key);
            _order.Remove(node);
        }

        private struct Seen
        {
            internal Seen(string key, DateTimeOffset at)
            {
                Key = key;
                At = at;
            }

            internal string Key { get; }

            internal DateTimeOffset At { get; }
        }
    }
}
