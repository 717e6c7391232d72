using System;
using System.Collections.Generic;

namespace Postrider.Webhooks
{
    /// <summary>
    /// Holds notifications back for a while and gives them out in the order in which things happened. What comes later than the
    /// delay still comes out of order; a retry can be minutes late, so prefer <see cref="Newest"/> wherever it will do.
    /// </summary>
    /// <remarks>
    /// Threads can share one. What waits is lost when the process ends: store notifications before you answer 200, and push what is
    /// stored.
    /// </remarks>
    public sealed class Reorderer
    {
        private readonly TimeSpan _delay;
        private readonly int _maxWaiting;
        private readonly object _lock = new object();

        // By timestamp, then by id.
        private readonly List<Waiting> _waiting = new List<Waiting>();

        /// <summary>Makes an empty one.</summary>
        /// <param name="delay">How long each notification is held back; not negative.</param>
        /// <param name="maxWaiting">How many can wait at a time, at least one.</param>
        public Reorderer(TimeSpan delay, int maxWaiting = 10000)
        {
            if (delay < TimeSpan.Zero)
            {
                throw new ArgumentOutOfRangeException(nameof(delay), "the delay must not be negative");
            }
            if (maxWaiting < 1)
            {
                throw new ArgumentOutOfRangeException(nameof(maxWaiting), "at least one notification must be able to wait");
            }
            _delay = delay;
            _maxWaiting = maxWaiting;
        }

        /// <summary>How many wait.</summary>
        public int Count
        {
            get
            {
                lock (_lock)
                {
                    return _waiting.Count;
                }
            }
        }

        /// <summary>
        /// Takes a notification that came now. False says that there is no room: answer 503, and it comes again.
        /// </summary>
        /// <param name="notification">What arrived.</param>
        /// <param name="now">The present.</param>
        public bool TryPush(Notification notification, DateTimeOffset now)
        {
            if (notification == null)
            {
                throw new ArgumentNullException(nameof(notification));
            }
            lock (_lock)
            {
                if (_waiting.Count >= _maxWaiting)
                {
                    return false;
                }
                _waiting.Insert(PlaceOf(notification), new Waiting(notification, now + _delay));
                return true;
            }
        }

        /// <summary>
        /// Gives out what has waited for the delay, ordered by timestamp and then id. What happened before such a notification comes
        /// along with it, however short its wait: to hold it back would put it out of order for certain.
        /// </summary>
        /// <param name="now">The present.</param>
        public IReadOnlyList<Notification> Ready(DateTimeOffset now)
        {
            lock (_lock)
            {
                return Take(_waiting.FindLastIndex(waiting => waiting.Due <= now) + 1);
            }
        }

        /// <summary>Gives out everything, in the same order, for instance before the process ends.</summary>
        public IReadOnlyList<Notification> Drain()
        {
            lock (_lock)
            {
                return Take(_waiting.Count);
            }
        }

        private IReadOnlyList<Notification> Take(int count)
        {
            var taken = _waiting.GetRange(0, count).ConvertAll(waiting => waiting.Notification);
            _waiting.RemoveRange(0, count);
            return taken;
        }

        // Behind everything that happened before it or is equal to it.
        private int PlaceOf(Notification notification)
        {
            var (low, high) = (0, _waiting.Count);
            while (low < high)
            {
                var middle = (low + high) / 2;
                if (Compare(notification, _waiting[middle].Notification) < 0)
                {
                    high = middle;
                }
                else
                {
                    low = middle + 1;
                }
            }
            return low;
        }

        private static int Compare(Notification one, Notification other)
        {
            var byTime = one.Timestamp.CompareTo(other.Timestamp);
            return byTime != 0 ? byTime : string.CompareOrdinal(one.Id, other.Id);
        }

        private struct Waiting
        {
            internal Waiting(Notification notification, DateTimeOffset due)
            {
                Notification = notification;
                Due = due;
            }

            internal Notification Notification { get; }

            internal DateTimeOffset Due { get; }
        }
    }
}
