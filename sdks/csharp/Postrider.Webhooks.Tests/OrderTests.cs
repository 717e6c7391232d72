using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;

namespace Postrider.Webhooks.Tests
{
    internal static class OrderTests
    {
        private static readonly DateTimeOffset Now = Samples.Now;

        public static void NewestRefusesWhatIsOlderForEachSubjectApart()
        {
            var newest = new Newest();
            foreach (var step in new[]
            {
                ("a", 5, true), ("a", 4, false), ("a", 5, true), ("b", 4, true), ("a", 6, true), ("a", 5, false),
            })
            {
                var (subject, millis, wanted) = step;
                Expect.Equal(wanted, newest.Accept(subject, Now.AddMilliseconds(millis)), subject + millis);
            }
        }

        public static void NewestForgetsTheSubjectThatHasBeenQuietForLongest()
        {
            var newest = new Newest(2);
            foreach (var subject in new[] { "a", "b", "a", "c" })
            {
                newest.Accept(subject, Now);
            }
            var earlier = Now.AddSeconds(-1);
            Expect.Equal(2, newest.Count);
            Expect.That(!newest.Accept("a", earlier) && !newest.Accept("c", earlier), "a recent one was forgotten");
            Expect.That(newest.Accept("b", earlier), "the quiet one was remembered");
        }

        public static void ReorderedNotificationsComeByTimeThenById()
        {
            var reorderer = new Reorderer(TimeSpan.FromSeconds(1));
            foreach (var step in new[] { ("d", 30), ("b", 10), ("c", 10), ("a", 20) })
            {
                var (id, millis) = step;
                Expect.That(reorderer.TryPush(Samples.Happened(id, millis), Now), "no room");
            }
            Expect.Equal("", Ids(reorderer.Ready(Now.AddMilliseconds(999))), "too early");
            Expect.Equal("b c a d", Ids(reorderer.Ready(Now.AddSeconds(1))));
            Expect.Equal(0, reorderer.Count);
        }

        public static void WhatHappenedEarlierComesAlongAndWhatHappenedLaterWaits()
        {
            var reorderer = new Reorderer(TimeSpan.FromSeconds(1));
            reorderer.TryPush(Samples.Happened("second", 20), Now);
            reorderer.TryPush(Samples.Happened("first", 10), Now.AddMilliseconds(900));
            reorderer.TryPush(Samples.Happened("third", 30), Now.AddMilliseconds(900));
            Expect.Equal("first second", Ids(reorderer.Ready(Now.AddSeconds(1))));
            Expect.Equal("third", Ids(reorderer.Drain()));
        }

        public static void AFullReordererSaysSo()
        {
            var reorderer = new Reorderer(TimeSpan.FromSeconds(1), 1);
            Expect.That(reorderer.TryPush(Samples.Happened("a", 0), Now), "no room for the first");
            Expect.That(!reorderer.TryPush(Samples.Happened("b", 0), Now), "room for a second");
            Expect.Equal("a", Ids(reorderer.Drain()));
        }

        public static void NothingIsLostOrDoubledByManyWhoPushAndTake()
        {
            var reorderer = new Reorderer(TimeSpan.Zero);
            var newest = new Newest(3);
            var taken = new ConcurrentBag<string>();
            Parallel.For(0, 3000, round =>
            {
                Expect.That(reorderer.TryPush(Samples.Happened(round.ToString(), round % 7), Now), "no room");
                newest.Accept((round % 5).ToString(), Now.AddMilliseconds(round));
                if (round % 10 == 0)
                {
                    foreach (var notification in reorderer.Ready(Now))
                    {
                        taken.Add(notification.Id);
                    }
                }
            });
            var all = taken.Concat(reorderer.Drain().Select(notification => notification.Id)).ToList();
            Expect.Equal((3000, 3000, 3), (all.Count, all.Distinct().Count(), newest.Count));
        }

        public static void LimitsThatMakeNoSenseAreRefused()
        {
            Expect.Throws<ArgumentOutOfRangeException>(() => new Newest(0));
            Expect.Throws<ArgumentOutOfRangeException>(() => new Reorderer(TimeSpan.FromSeconds(-1)));
            Expect.Throws<ArgumentOutOfRangeException>(() => new Reorderer(TimeSpan.Zero, 0));
            Expect.Throws<ArgumentOutOfRangeException>(() => new MemorySeenStore(0));
            Expect.Throws<ArgumentOutOfRangeException>(() => new MemorySeenStore(maxAge: TimeSpan.Zero));
        }

        private static string Ids(IEnumerable<Notification> notifications)
        {
            return string.Join(" ", notifications.Select(notification => notification.Id));
        }
    }
}
