package webhooks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func openTable(t *testing.T) (*sql.DB, *tableDriver) {
	t.Helper()
	table := &tableDriver{rows: make(map[string]int64)}
	db := sql.OpenDB(table)
	t.Cleanup(func() { must(t, db.Close()) })
	return db, table
}

func storeOn(t *testing.T, executor Executor, dialect Dialect, options ...SQLOption) *SQLStore {
	t.Helper()
	store, err := NewSQLStore(executor, dialect, options...)
	must(t, err)
	store.now = func() time.Time { return testNow }
	return store
}

func TestASQLStoreAddsAKeyOnceAndForgetsItOnDemand(t *testing.T) {
	for name, dialect := range map[string]Dialect{
		"PostgreSQL": PostgreSQL, "SQLite": SQLite, "MySQL": MySQL, "SQLServer": SQLServer,
	} {
		db, table := openTable(t)
		store := storeOn(t, db, dialect)
		must(t, store.CreateTable(context.Background()))
		for _, want := range []bool{true, false, true} {
			if got, err := store.Add(context.Background(), "a"); got != want || err != nil {
				t.Errorf("%s: got %v, %v", name, got, err)
			}
			if !want {
				must(t, store.Remove(context.Background(), "a"))
			}
		}
		if table.rows["a"] != testNow.Unix() {
			t.Errorf("%s: seen at %d", name, table.rows["a"])
		}
	}
}

func TestASQLStorePrunesWhatIsTooOld(t *testing.T) {
	db, table := openTable(t)
	table.rows["old"] = testNow.Add(-DefaultSeenAge).Unix() - 1
	table.rows["young"] = testNow.Add(-DefaultSeenAge).Unix()
	count, err := storeOn(t, db, PostgreSQL).Prune(context.Background(), DefaultSeenAge)
	if _, kept := table.rows["young"]; count != 1 || err != nil || !kept {
		t.Errorf("%d pruned, %v", count, err)
	}
}

func TestARolledBackTransactionForgetsWhatItHasSeen(t *testing.T) {
	db, table := openTable(t)
	for _, commit := range []bool{false, true} {
		tx, err := db.BeginTx(context.Background(), nil)
		must(t, err)
		handler := &counter{}
		outcome, err := ProcessOnce(context.Background(), storeOn(t, tx, PostgreSQL), notificationOf("a"), handler.handle)
		if outcome != Processed || err != nil {
			t.Errorf("got %v, %v", outcome, err)
		}
		if commit {
			must(t, tx.Commit())
		} else {
			must(t, tx.Rollback())
		}
		if _, seen := table.rows["a"]; seen != commit {
			t.Errorf("committed: %v, remembered: %v", commit, seen)
		}
	}
}

func TestASQLStoreNamesItsTableInEveryStatement(t *testing.T) {
	db, table := openTable(t)
	store := storeOn(t, db, SQLServer, WithTable("hooks.seen"))
	must(t, store.CreateTable(context.Background()))
	_, err := store.Add(context.Background(), "a")
	must(t, err)
	must(t, store.Remove(context.Background(), "a"))
	_, err = store.Prune(context.Background(), time.Hour)
	must(t, err)
	for _, statement := range table.statements {
		if !strings.Contains(statement, "hooks.seen") || strings.ContainsAny(statement, "{}") {
			t.Errorf("got %s", statement)
		}
	}
}

func TestASQLStoreRefusesWhatWouldBreakItsStatements(t *testing.T) {
	db, _ := openTable(t)
	for _, name := range []string{"", "a b", "a;DROP TABLE b", "a.b.c", `"a"`, "1a"} {
		if _, err := NewSQLStore(db, SQLite, WithTable(name)); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
	if _, err := NewSQLStore(db, Dialect{}); err == nil {
		t.Error("no dialect was accepted")
	}
	if _, err := storeOn(t, db, SQLite).Add(context.Background(), strings.Repeat("a", 256)); err == nil {
		t.Error("a key that does not fit was accepted")
	}
}

func TestFailuresOfADatabaseAreTold(t *testing.T) {
	db, table := openTable(t)
	table.failure = errStore
	isNew, err := storeOn(t, db, SQLite).Add(context.Background(), "a")
	if isNew || !errors.Is(err, errStore) || !strings.Contains(fmt.Sprint(err), DefaultSeenTable) {
		t.Errorf("got %v, %v", isNew, err)
	}
}
