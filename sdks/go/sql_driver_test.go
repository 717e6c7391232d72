package webhooks

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"
	"sync"
)

// A tableDriver stands in for a database with one table, since the standard library has an interface to databases but none to talk
// to. It tells the statements apart by how they begin; that they are right is tried out with real databases.
type tableDriver struct {
	mutex      sync.Mutex
	rows       map[string]int64
	statements []string
	failure    error
}

func (d *tableDriver) Connect(context.Context) (driver.Conn, error) {
	return &tableConnection{table: d}, nil
}
func (d *tableDriver) Driver() driver.Driver { return nil }

type tableConnection struct {
	table *tableDriver
	// What was there when the transaction began; nil outside of one.
	before map[string]int64
}

func (c *tableConnection) Prepare(string) (driver.Stmt, error) {
	return nil, fmt.Errorf("nothing needs prepared statements")
}

func (c *tableConnection) Close() error { return nil }

func (c *tableConnection) Begin() (driver.Tx, error) {
	c.table.mutex.Lock()
	defer c.table.mutex.Unlock()
	c.before = make(map[string]int64)
	for key, at := range c.table.rows {
		c.before[key] = at
	}
	return c, nil
}

func (c *tableConnection) Commit() error { return nil }

func (c *tableConnection) Rollback() error {
	c.table.mutex.Lock()
	defer c.table.mutex.Unlock()
	c.table.rows = c.before
	return nil
}

// ExecContext makes database/sql pass statements on without preparing them.
func (c *tableConnection) ExecContext(_ context.Context, query string, arguments []driver.NamedValue) (driver.Result, error) {
	c.table.mutex.Lock()
	defer c.table.mutex.Unlock()
	c.table.statements = append(c.table.statements, query)
	if c.table.failure != nil {
		return nil, c.table.failure
	}
	before := len(c.table.rows)
	switch {
	case strings.Contains(query, "CREATE TABLE"):
	case strings.HasPrefix(query, "INSERT"):
		key, at := arguments[0].Value.(string), arguments[1].Value.(int64)
		if _, seen := c.table.rows[key]; !seen {
			c.table.rows[key] = at
		}
		return driver.RowsAffected(len(c.table.rows) - before), nil
	case strings.HasPrefix(query, "DELETE") && strings.Contains(query, "seen_at <"):
		for key, at := range c.table.rows {
			if at < arguments[0].Value.(int64) {
				delete(c.table.rows, key)
			}
		}
	case strings.HasPrefix(query, "DELETE"):
		delete(c.table.rows, arguments[0].Value.(string))
	default:
		return nil, fmt.Errorf("unknown statement: %s", query)
	}
	return driver.RowsAffected(before - len(c.table.rows)), nil
}
