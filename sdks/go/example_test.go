package webhooks_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"postrider.dev/webhooks"
)

func Example() {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	body := []byte(`{"id":"order-4711","type":"domain.created","timestamp":"2026-11-21T09:51:36.518Z",` +
		`"data":{"domain":{"name":"example.org"}}}`)
	// In your own tests SignedHeaders stands in for Postrider. In a handler the header is r.Header.
	header, err := webhooks.SignedHeaders([]string{secret}, "order-4711", time.Now(), body)
	if err != nil {
		panic(err)
	}

	verifier, err := webhooks.NewVerifier([]string{secret})
	if err != nil {
		panic(err)
	}
	notification, err := verifier.Verify(header, body)
	if err != nil {
		panic(err)
	}
	var data struct {
		Domain struct{ Name string }
	}
	if err := notification.DecodeData(&data); err != nil {
		panic(err)
	}
	fmt.Println(notification.ID, notification.Type, data.Domain.Name)
	// Output: order-4711 domain.created example.org
}

func ExampleError() {
	verifier, err := webhooks.NewVerifier([]string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
	if err != nil {
		panic(err)
	}
	_, err = verifier.Verify(webhooks.HeaderMap{"Webhook-Id": "order-4711"}, []byte("{}"))
	var refusal *webhooks.Error
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Code, refusal.Header)
	}
	// Output: missing_header webhook-timestamp
}

func ExampleProcessOnce() {
	store := webhooks.NewMemoryStore()
	notification := &webhooks.Notification{ID: "order-4711", Type: "domain.created"}
	for attempt := 1; attempt <= 2; attempt++ {
		outcome, err := webhooks.ProcessOnce(context.Background(), store, notification,
			func(_ context.Context, n *webhooks.Notification) error {
				fmt.Println("working on", n.ID)
				return nil
			})
		fmt.Println(outcome, err)
	}
	// Output:
	// working on order-4711
	// processed <nil>
	// repeated <nil>
}

// A notification is remembered if and only if what is done because of it is committed.
func ExampleSQLStore() {
	receive := func(ctx context.Context, db *sql.DB, notification *webhooks.Notification) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		// Does nothing after the commit.
		defer func() { _ = tx.Rollback() }()
		seen, err := webhooks.NewSQLStore(tx, webhooks.PostgreSQL)
		if err != nil {
			return err
		}
		work := func(ctx context.Context, n *webhooks.Notification) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO inbox (id, type, data) VALUES ($1, $2, $3)", n.ID, n.Type, string(n.Data))
			return err
		}
		if _, err := webhooks.ProcessOnce(ctx, seen, notification, work); err != nil {
			return err
		}
		return tx.Commit()
	}
	_ = receive
}
