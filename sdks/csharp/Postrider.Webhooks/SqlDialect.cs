namespace Postrider.Webhooks
{
    /// <summary>How a database spells the statements of a <see cref="SqlSeenStore"/>.</summary>
    public sealed class SqlDialect
    {
        private const string Standard =
            "CREATE TABLE IF NOT EXISTS {table} (notification_key VARCHAR(255) PRIMARY KEY, seen_at BIGINT NOT NULL)";

        private const string OnConflict =
            "INSERT INTO {table} (notification_key, seen_at) VALUES (@key, @at) ON CONFLICT DO NOTHING";

        /// <summary>PostgreSQL from 9.5.</summary>
        public static readonly SqlDialect PostgreSql = new SqlDialect(Standard, OnConflict);

        /// <summary>SQLite from 3.24.</summary>
        public static readonly SqlDialect Sqlite = new SqlDialect(Standard, OnConflict);

        /// <summary>MySQL from 5.7, and MariaDB. By default they would compare keys without regard to case.</summary>
        public static readonly SqlDialect MySql = new SqlDialect(
            "CREATE TABLE IF NOT EXISTS {table} (notification_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin "
                + "PRIMARY KEY, seen_at BIGINT NOT NULL)",
            "INSERT IGNORE INTO {table} (notification_key, seen_at) VALUES (@key, @at)");

        /// <summary>
        /// SQL Server from 2016. The locks keep another connection from adding the key between the question and the answer.
        /// </summary>
        public static readonly SqlDialect SqlServer = new SqlDialect(
            "IF OBJECT_ID('{table}') IS NULL CREATE TABLE {table} (notification_key NVARCHAR(255) "
                + "COLLATE Latin1_General_BIN2 PRIMARY KEY, seen_at BIGINT NOT NULL)",
            "INSERT INTO {table} (notification_key, seen_at) SELECT @key, @at WHERE NOT EXISTS "
                + "(SELECT 1 FROM {table} WITH (UPDLOCK, HOLDLOCK) WHERE notification_key = @key)");

        private SqlDialect(string create, string add)
        {
            Create = create;
            Add = add;
        }

        internal string Create { get; }

        internal string Add { get; }
    }
}
