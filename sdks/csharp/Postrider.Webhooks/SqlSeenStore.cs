using System;
using System.Data.Common;
using System.Text.RegularExpressions;
using System.Threading;
using System.Threading.Tasks;

namespace Postrider.Webhooks
{
    /// <summary>
    /// Remembers keys in a table of your database:
    /// <code>
    /// CREATE TABLE seen_notifications (
    ///     notification_key VARCHAR(255) PRIMARY KEY,
    ///     seen_at          BIGINT NOT NULL  -- seconds since 1970
    /// )
    /// </code>
    /// </summary>
    /// <remarks>
    /// With a transaction it remembers a notification if and only if what you do because of it is committed: this is the one way to
    /// process it exactly once. Another transaction that adds the same key waits until this one has ended. It opens, commits and
    /// closes nothing, and is as safe to share between threads as its connection is.
    /// </remarks>
    public sealed class SqlSeenStore : ISeenStore
    {
        // What the column takes. MySQL may cut a longer key short instead of refusing it.
        private const int MaxKeyLength = 255;

        private static readonly Regex TableName = new Regex(@"\A[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?\z");

        private readonly DbConnection _connection;
        private readonly DbTransaction _transaction;
        private readonly SqlDialect _dialect;
        private readonly string _table;
        private readonly Func<DateTimeOffset> _now;

        /// <summary>Makes a store on an open connection. The table must be there, or be made by CreateTableAsync.</summary>
        /// <param name="connection">It must be open when the store is used.</param>
        /// <param name="dialect">Of the database.</param>
        /// <param name="transaction">The one that your handler writes in; null for none.</param>
        /// <param name="table">Letters, digits and underscores, with a schema and a full stop before it if need be.</param>
        /// <param name="clock">Replaces the system's clock, for tests.</param>
        public SqlSeenStore(
            DbConnection connection,
            SqlDialect dialect,
            DbTransaction transaction = null,
            string table = "seen_notifications",
            Func<DateTimeOffset> clock = null)
        {
            _connection = connection ?? throw new ArgumentNullException(nameof(connection));
            _dialect = dialect ?? throw new ArgumentNullException(nameof(dialect));
            _transaction = transaction;
            // It becomes a part of statements, where no parameter can stand.
            if (table == null || !TableName.IsMatch(table))
            {
                throw new ArgumentException("no name of a table; use letters, digits and underscores", nameof(table));
            }
            _table = table;
            _now = clock ?? (() => DateTimeOffset.UtcNow);
        }

        /// <summary>Makes the table unless it is there.</summary>
        /// <param name="cancellationToken">Ends the wait.</param>
        public Task CreateTableAsync(CancellationToken cancellationToken = default(CancellationToken))
        {
            return ExecuteAsync(_dialect.Create, null, null, cancellationToken);
        }

        /// <summary>Remembers a key of at most 255 characters and says whether it is new.</summary>
        /// <param name="key">See <see cref="Once.ScopedKey"/>.</param>
        /// <param name="cancellationToken">Ends the wait.</param>
        public async Task<bool> AddAsync(string key, CancellationToken cancellationToken = default(CancellationToken))
        {
            if (key == null)
            {
                throw new ArgumentNullException(nameof(key));
            }
            if (key.Length > MaxKeyLength)
            {
                throw new ArgumentException(
                    "a key has " + key.Length + " characters, more than " + MaxKeyLength + "; use a shorter scope", nameof(key));
            }
            return await ExecuteAsync(_dialect.Add, key, _now(), cancellationToken).ConfigureAwait(false) == 1;
        }

        /// <summary>Forgets a key. In a transaction that has failed there is nothing to forget: roll it back.</summary>
        /// <param name="key">What was added.</param>
        /// <param name="cancellationToken">Ends the wait.</param>
        public Task RemoveAsync(string key, CancellationToken cancellationToken = default(CancellationToken))
        {
            if (key == null)
            {
                throw new ArgumentNullException(nameof(key));
            }
            return ExecuteAsync("DELETE FROM {table} WHERE notification_key = @key", key, null, cancellationToken);
        }

        /// <summary>Forgets the keys that are older than this and says how many. Call it once a day.</summary>
        /// <param name="age">For instance <see cref="Once.DefaultSeenAge"/>.</param>
        /// <param name="cancellationToken">Ends the wait.</param>
        public Task<int> PruneAsync(TimeSpan age, CancellationToken cancellationToken = default(CancellationToken))
        {
            return ExecuteAsync("DELETE FROM {table} WHERE seen_at < @at", null, _now() - age, cancellationToken);
        }

        private async Task<int> ExecuteAsync(
            string statement, string key, DateTimeOffset? at, CancellationToken cancellationToken)
        {
            using (var command = _connection.CreateCommand())
            {
                command.CommandText = statement.Replace("{table}", _table);
                command.Transaction = _transaction;
                if (key != null)
                {
                    AddParameter(command, "@key", key);
                }
                if (at != null)
                {
                    AddParameter(command, "@at", at.Value.ToUnixTimeSeconds());
                }
                return await command.ExecuteNonQueryAsync(cancellationToken).ConfigureAwait(false);
            }
        }

        private static void AddParameter(DbCommand command, string name, object value)
        {
            var parameter = command.CreateParameter();
            parameter.ParameterName = name;
            parameter.Value = value;
            command.Parameters.Add(parameter);
        }
    }
}
