using System;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

namespace Postrider.Webhooks.Tests
{
    internal static class OnceTests
    {
        private static readonly Notification Sample = Samples.Happened("a", 0);

        public static async Task ANotificationIsProcessedOnce()
        {
            var store = new MemorySeenStore();
            var calls = 0;
            foreach (var wanted in new[] { ProcessOutcome.Processed, ProcessOutcome.Repeated, ProcessOutcome.Repeated })
            {
                Expect.Equal(wanted, await Once.ProcessAsync(store, Sample, (_, token) => Task.FromResult(++calls)));
            }
            Expect.Equal(1, calls);
        }

        public static async Task ScopesKeepSubscriptionsApart()
        {
            var store = new MemorySeenStore();
            foreach (var scope in new[] { null, "first", "second" })
            {
                var outcome = await Once.ProcessAsync(store, Sample, Succeed, Once.ScopedKey(scope, Sample));
                Expect.Equal(ProcessOutcome.Processed, outcome, scope);
            }
        }

        public static async Task AFailedHandlerIsGivenTheRetryAlsoWhenItWasCancelled()
        {
            var store = new MemorySeenStore();
            using (var source = new CancellationTokenSource())
            {
                Expect.Throws<OperationCanceledException>(() => Once.ProcessAsync(
                    store,
                    Sample,
                    (_, token) =>
                    {
                        source.Cancel();
                        token.ThrowIfCancellationRequested();
                        return Task.FromResult(0);
                    },
                    cancellationToken: source.Token).GetAwaiter().GetResult());
            }
            Expect.Equal(ProcessOutcome.Processed, await Once.ProcessAsync(store, Sample, Succeed));
        }

        public static void FailuresOfAStoreAreTold()
        {
            Expect.Throws<TimeoutException>(
                () => Once.ProcessAsync(new BrokenStore(true), Sample, Succeed).GetAwaiter().GetResult());
            var failure = Expect.Throws<NotSupportedException>(
                () => Once.ProcessAsync(new BrokenStore(false), Sample, Fail).GetAwaiter().GetResult());
            Expect.That(failure.Data[Once.RemovalFailure] is TimeoutException, "what the store threw is lost");
        }

        public static void OfManyAtOnceExactlyOneIsProcessed()
        {
            var store = new MemorySeenStore();
            int processed = 0, repeated = 0;
            Parallel.For(0, 2000, round =>
            {
                var notification = Samples.Happened((round % 50).ToString(), 0);
                var outcome = Once.ProcessAsync(store, notification, Succeed).GetAwaiter().GetResult();
                if (outcome == ProcessOutcome.Processed)
                {
                    Interlocked.Increment(ref processed);
                }
                else
                {
                    Interlocked.Increment(ref repeated);
                }
            });
            Expect.Equal((50, 1950), (processed, repeated));
        }

        public static async Task AMemoryStoreForgetsTheOldestWhenItIsFull()
        {
            var store = new MemorySeenStore(2);
            foreach (var step in new[]
            {
                ("a", true), ("b", true), ("a", false), ("c", true), ("b", false), ("a", true), ("c", false),
            })
            {
                var (key, wanted) = step;
                Expect.Equal(wanted, await store.AddAsync(key), key);
            }
            Expect.Equal(2, store.Count);
        }

        public static async Task AMemoryStoreForgetsWhatIsTooOld()
        {
            var now = Samples.Now;
            var store = new MemorySeenStore(maxAge: TimeSpan.FromHours(1), clock: () => now);
            await store.AddAsync("a");
            now += TimeSpan.FromHours(1);
            Expect.That(!await store.AddAsync("a"), "forgotten too early");
            now += TimeSpan.FromTicks(1);
            Expect.That(await store.AddAsync("b") && store.Count == 1 && await store.AddAsync("a"), "remembered too long");
        }

        public static async Task AMemoryStoreForgetsNothingEarlierWhenTheClockIsSetBack()
        {
            var now = Samples.Now;
            var store = new MemorySeenStore(maxAge: TimeSpan.FromHours(1), clock: () => now);
            foreach (var step in new[]
            {
                (0, "a", true), (-120, "b", true), (0, "a", false), (1, "b", false), (240, "b", true),
            })
            {
                var (minutes, key, wanted) = step;
                now += TimeSpan.FromMinutes(minutes);
                Expect.Equal(wanted, await store.AddAsync(key), key + " after " + minutes);
            }
            Expect.Equal(1, store.Count);
        }

        private static Task Succeed(Notification notification, CancellationToken token)
        {
            return Task.FromResult(0);
        }

        private static Task Fail(Notification notification, CancellationToken token)
        {
            throw new NotSupportedException();
        }

        private sealed class BrokenStore : ISeenStore
        {
            private readonly bool _failsToAdd;

            internal BrokenStore(bool failsToAdd)
            {
                _failsToAdd = failsToAdd;
            }

            public Task<bool> AddAsync(string key, CancellationToken cancellationToken)
            {
                return _failsToAdd ? throw new TimeoutException() : Task.FromResult(true);
            }

            public Task RemoveAsync(string key, CancellationToken cancellationToken)
            {
                throw new TimeoutException();
            }
        }
    }
}
