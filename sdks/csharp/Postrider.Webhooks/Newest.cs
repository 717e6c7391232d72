using System;
using System.Collections.Generic;

namespace Postrider.Webhooks
{
    /// <summary>
    /// Tells what is newer than everything before it from what came late, for each subject apart: a domain, a contact, whatever your
    /// objects are. Use it when only the present state of an object counts, so that a late notification can be ignored.
    /// </summary>
    /// <remarks>
    /// Threads can share one. It forgets everything when the process ends; better still, keep the time with the object:
    /// UPDATE … WHERE changed_at &lt;= the timestamp.
    /// </remarks>
    public sealed class Newest
    {
        private readonly int _maxSubjects;
        private readonly object _lock = new object();
        private readonly Dictionary<string, LinkedListNode<KeyValuePair<string, DateTimeOffset>>> _subjects =
            new Dictionary<string, LinkedListNode<KeyValuePair<string, DateTimeOffset>>>(StringComparer.Ordinal);

        // What was accepted last is at the end.
        private readonly LinkedList<KeyValuePair<string, DateTimeOffset>> _order =
            new LinkedList<KeyValuePair<string, DateTimeOffset>>();

        /// <summary>Makes one that has seen nothing.</summary>
        /// <param name="maxSubjects">
        /// How many subjects are remembered, at least one. Beyond that the one that has been quiet for longest is forgotten, and
        /// whatever comes next for it is accepted.
        /// </param>
        public Newest(int maxSubjects = 100000)
        {
            if (maxSubjects < 1)
            {
                throw new ArgumentOutOfRangeException(nameof(maxSubjects), "at least one subject must be remembered");
            }
            _maxSubjects = maxSubjects;
        }

        /// <summary>How many subjects are remembered.</summary>
        public int Count
        {
            get
            {
                lock (_lock)
                {
                    return _subjects.Count;
                }
            }
        }

        /// <summary>
        /// Says whether nothing newer has been accepted for the subject, and remembers the timestamp if so. Two events of the same
        /// moment are both accepted.
        /// </summary>
        /// <param name="subject">Your name for the object.</param>
        /// <param name="timestamp">Of the notification.</param>
        public bool Accept(string subject, DateTimeOffset timestamp)
        {
            lock (_lock)
            {
                if (_subjects.TryGetValue(subject, out var known))
                {
                    if (timestamp < known.Value.Value)
                    {
                        return false;
                    }
                    _order.Remove(known);
                }
                else if (_subjects.Count >= _maxSubjects)
                {
                    _subjects.Remove(_order.First.Value.Key);
                    _order.RemoveFirst();
                }
                _subjects[subject] = _order.AddLast(new KeyValuePair<string, DateTimeOffset>(subject, timestamp));
                return true;
            }
        }
    }
}
