package webhooks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// DefaultSeenTable is the table of a SQLStore unless WithTable says otherwise.
const DefaultSeenTable = "seen_notifications"

// maxKeyBytes is what the column takes. MySQL may cut a longer key short instead of refusing it.
const maxKeyBytes = 255

// A Dialect is how a database spells the statements of a SQLStore. Where keys are compared without regard to case by default,
// its table says otherwise.
type Dialect struct {
	create, add, remove, prune string
}

// The databases that a SQLStore knows. {table} stands for the table.
var (
	// PostgreSQL from 9.5.
	PostgreSQL = Dialect{
		create: `CREATE TABLE IF NOT EXISTS {table} (notification_key VARCHAR(255) PRIMARY KEY, seen_at BIGINT NOT NULL)`,
		add:    `INSERT INTO {table} (notification_key, seen_at) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
		remove: `DELETE FROM {table} WHERE notification_key = $1`,
		prune:  `DELETE FROM {table} WHERE seen_at < $1`,
	}
	// SQLite from 3.24.
	SQLite = Dialect{
		create: `CREATE TABLE IF NOT EXISTS {table} (notification_key VARCHAR(255) PRIMARY KEY, seen_at BIGINT NOT NULL)`,
		add:    `INSERT INTO {table} (notification_key, seen_at) VALUES (?, ?) ON CONFLICT DO NOTHING`,
		remove: `DELETE FROM {table} WHERE notification_key = ?`,
		prune:  `DELETE FROM {table} WHERE seen_at < ?`,
	}
	// MySQL from 5.7, and MariaDB.
	MySQL = Dialect{
		create: `CREATE TABLE IF NOT EXISTS {table} (notification_key VARCHAR(255) ` +
			`CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PRIMARY KEY, seen_at BIGINT NOT NULL)`,
		add:    `INSERT IGNORE INTO {table} (notification_key, seen_at) VALUES (?, ?)`,
		remove: `DELETE FROM {table} WHERE notification_key = ?`,
		prune:  `DELETE FROM {table} WHERE seen_at < ?`,
	}
	// SQLServer from 2016.
	SQLServer = Dialect{
		create: `IF OBJECT_ID('{table}') IS NULL CREATE TABLE {table} (notification_key NVARCHAR(255) ` +
			`COLLATE Latin1_General_BIN2 PRIMARY KEY, seen_at BIGINT NOT NULL)`,
		// The locks keep another connection from adding the key between the question and the answer.
		add: `INSERT INTO {table} (notification_key, seen_at) SELECT @p1, @p2 WHERE NOT EXISTS ` +
			`(SELECT 1 FROM {table} WITH (UPDLOCK, HOLDLOCK) WHERE notification_key = @p1)`,
		remove: `DELETE FROM {table} WHERE notification_key = @p1`,
		prune:  `DELETE FROM {table} WHERE seen_at < @p1`,
	}
)

// An Executor runs a statement: *sql.DB, *sql.Tx and *sql.Conn do.
type Executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// A SQLStore is a SeenStore in a table of your database:
//
//	CREATE TABLE seen_notifications (
//	    notification_key VARCHAR(255) PRIMARY KEY,
//	    seen_at          BIGINT NOT NULL  -- seconds since 1970
//	)
//
// Made on a *sql.Tx, it remembers a notification if and only if what you do because of it is committed: this is the one way to
// process it exactly once. Another transaction that adds the same key waits until this one has ended.
type SQLStore struct {
	executor Executor
	dialect  Dialect
	table    string
	now      func() time.Time
}

// A SQLOption changes how a SQLStore works.
type SQLOption func(*SQLStore)

// WithTable names the table: letters, digits and underscores, with a schema and a full stop before it if need be.
func WithTable(name string) SQLOption {
	return func(s *SQLStore) { s.table = name }
}

var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

// NewSQLStore makes a store on a database, a connection or a transaction. It asks the database nothing; the table must be there, or
// be made by CreateTable.
func NewSQLStore(executor Executor, dialect Dialect, options ...SQLOption) (*SQLStore, error) {
	store := &SQLStore{executor: executor, dialect: dialect, table: DefaultSeenTable, now: time.Now}
	for _, option := range options {
		option(store)
	}
	if dialect.add == "" {
		return nil, errors.New("webhooks: an empty Dialect; pass PostgreSQL, SQLite, MySQL or SQLServer")
	}
	if !tableName.MatchString(store.table) {
		return nil, fmt.Errorf("webhooks: %q is no name of a table; use letters, digits and underscores", store.table)
	}
	return store, nil
}

// CreateTable makes the table unless it is there.
func (s *SQLStore) CreateTable(ctx context.Context) error {
	_, err := s.execute(ctx, s.dialect.create)
	return err
}

// Add remembers a key of at most 255 bytes and says whether it is new.
func (s *SQLStore) Add(ctx context.Context, key string) (bool, error) {
	if len(key) > maxKeyBytes {
		return false, fmt.Errorf("webhooks: a key has %d bytes, more than %d; use a shorter scope", len(key), maxKeyBytes)
	}
	added, err := s.execute(ctx, s.dialect.add, key, s.now().Unix())
	return added == 1, err
}

// Remove forgets a key. In a transaction that has failed there is nothing to forget: roll it back.
func (s *SQLStore) Remove(ctx context.Context, key string) error {
	_, err := s.execute(ctx, s.dialect.remove, key)
	return err
}

// Prune forgets the keys that are older than age, for instance DefaultSeenAge, and says how many. Call it once a day.
func (s *SQLStore) Prune(ctx context.Context, age time.Duration) (int64, error) {
	return s.execute(ctx, s.dialect.prune, s.now().Add(-age).Unix())
}

func (s *SQLStore) execute(ctx context.Context, statement string, arguments ...any) (int64, error) {
	result, err := s.executor.ExecContext(ctx, strings.ReplaceAll(statement, "{table}", s.table), arguments...)
	if err != nil {
		return 0, fmt.Errorf("webhooks: table %s: %w", s.table, err)
	}
	return result.RowsAffected()
}
