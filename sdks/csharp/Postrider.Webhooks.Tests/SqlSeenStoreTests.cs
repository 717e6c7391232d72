#if MONO
using System;
using System.Threading.Tasks;
using Mono.Data.Sqlite;

namespace Postrider.Webhooks.Tests
{
    /// <summary>With a real SQLite, which Mono brings along; the .NET SDK would need a package for it.</summary>
    internal static class SqlSeenStoreTests
    {
        public static async Task AKeyIsAddedOnceAndForgottenOnDemand()
        {
            using (var connection = Open())
            {
                var store = new SqlSeenStore(connection, SqlDialect.Sqlite, clock: () => Samples.Now);
                await store.CreateTableAsync();
                await store.CreateTableAsync();
                Expect.That(await store.AddAsync("a"), "it is new");
                Expect.That(!await store.AddAsync("a"), "it has been seen");
                Expect.That(await store.AddAsync("A"), "another one is new");
                await store.RemoveAsync("a");
                await store.RemoveAsync("never there");
                Expect.That(await store.AddAsync("a"), "it is new again");
                Expect.Equal(Samples.Now.ToUnixTimeSeconds(), Scalar(connection, "SELECT MIN(seen_at) FROM seen_notifications"));
            }
        }

        public static async Task ARolledBackTransactionForgetsWhatItHasSeen()
        {
            using (var connection = Open())
            {
                await new SqlSeenStore(connection, SqlDialect.Sqlite).CreateTableAsync();
                foreach (var commits in new[] { false, true })
                {
                    using (var transaction = connection.BeginTransaction())
                    {
                        var store = new SqlSeenStore(connection, SqlDialect.Sqlite, transaction);
                        var outcome = await Once.ProcessAsync(store, Samples.Happened("a", 0), (_, token) => Task.FromResult(0));
                        Expect.Equal(ProcessOutcome.Processed, outcome);
                        if (commits)
                        {
                            transaction.Commit();
                        }
                        else
                        {
                            transaction.Rollback();
                        }
                    }
                    Expect.Equal(commits ? 1L : 0L, Scalar(connection, "SELECT COUNT(*) FROM seen_notifications"));
                }
            }
        }

        public static async Task WhatIsTooOldIsPruned()
        {
            using (var connection = Open())
            {
                var now = Samples.Now;
                var store = new SqlSeenStore(connection, SqlDialect.Sqlite, table: "main.hooks", clock: () => now);
                await store.CreateTableAsync();
                await store.AddAsync("old");
                now += TimeSpan.FromSeconds(1);
                await store.AddAsync("young");
                now += Once.DefaultSeenAge;
                Expect.Equal(1, await store.PruneAsync(Once.DefaultSeenAge));
                Expect.Equal(1L, Scalar(connection, "SELECT COUNT(*) FROM hooks"));
            }
        }

        public static async Task WhatWouldBreakAStatementIsRefused()
        {
            using (var connection = Open())
            {
                foreach (var name in new[] { null, "", "a b", "a;DROP TABLE b", "a.b.c", "\"a\"", "1a", "a\n" })
                {
                    Expect.Throws<ArgumentException>(() => new SqlSeenStore(connection, SqlDialect.Sqlite, table: name), name);
                }
                var store = new SqlSeenStore(connection, SqlDialect.Sqlite);
                await store.CreateTableAsync();
                Expect.Throws<ArgumentException>(() => store.AddAsync(new string('a', 256)).GetAwaiter().GetResult());
                Expect.Throws<ArgumentNullException>(() => store.AddAsync(null).GetAwaiter().GetResult());
                Expect.Throws<ArgumentNullException>(() => store.RemoveAsync(null).GetAwaiter().GetResult());
                Expect.That(await store.AddAsync("'); DROP TABLE seen_notifications; --"), "keys are parameters");
            }
        }

        private static SqliteConnection Open()
        {
            var connection = new SqliteConnection("Data Source=:memory:");
            connection.Open();
            return connection;
        }

        private static long Scalar(SqliteConnection connection, string query)
        {
            using (var command = connection.CreateCommand())
            {
                command.CommandText = query;
                return Convert.ToInt64(command.ExecuteScalar());
            }
        }
    }
}
#endif
