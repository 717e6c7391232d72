package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// DefaultSeenAge is how long a store remembers a key: a replay reaches back 30 days, and retries come on top of that.
const DefaultSeenAge = 35 * 24 * time.Hour

// A SeenStore remembers the keys of notifications. It must be safe for use by many goroutines at once.
type SeenStore interface {
	// Add remembers a key and says whether it is new. It must be atomic: of several calls with one key, exactly one gets true.
	Add(ctx context.Context, key string) (bool, error)
	// Remove forgets a key; one that is not there is no error.
	Remove(ctx context.Context, key string) error
}

// An Outcome says what ProcessOnce did.
type Outcome int

const (
	// Failed means that the notification is not processed; the error says why. Answer 5xx, and it comes again.
	Failed Outcome = iota
	// Processed means that the handler has run and succeeded. Answer 200.
	Processed
	// Repeated means that the key had been seen and the handler has not run. Answer 200 as well.
	Repeated
)

// String gives the outcome in lower case.
func (o Outcome) String() string {
	switch o {
	case Processed:
		return "processed"
	case Repeated:
		return "repeated"
	default:
		return "failed"
	}
}

// ScopedKey is the key of a notification within a scope, such as the name of a subscription. Two subscriptions that select the
// same event get it with the same ID: give each its scope if both are to count. Without a scope the key is the ID.
func ScopedKey(scope string, notification *Notification) string {
	if scope == "" {
		return notification.ID
	}
	// An ID holds no full stop, so that it stays clear where the scope ends.
	return scope + "." + notification.ID
}

// ProcessOnce runs the handler unless the notification's ID is in the store; see ProcessOnceAs.
func ProcessOnce(
	ctx context.Context, store SeenStore, notification *Notification,
	handler func(context.Context, *Notification) error,
) (Outcome, error) {
	return ProcessOnceAs(ctx, store, notification.ID, notification, handler)
}

// ProcessOnceAs runs the handler unless the key is in the store.
//
// The key is added first. When the handler fails or panics, the key is removed again and the failure goes on to the caller, so
// that a retry is worked on.
//
// While the handler is at work the key counts as seen: a repetition that comes meanwhile, as after your answer took too long, is
// answered 200, and nothing comes after it if the handler fails then. A process that is killed leaves the key behind, and so may a
// store that fails to answer. Where a notification must not be lost like this, use a SQLStore on the transaction that the handler
// writes in, and roll back when this fails: a repetition waits until that transaction has ended.
func ProcessOnceAs(
	ctx context.Context, store SeenStore, key string, notification *Notification,
	handler func(context.Context, *Notification) error,
) (outcome Outcome, err error) {
	isNew, err := store.Add(ctx, key)
	if err != nil {
		return Failed, fmt.Errorf("webhooks: cannot remember a notification: %w", err)
	}
	if !isNew {
		return Repeated, nil
	}
	finished := false
	defer func() {
		if finished && err == nil {
			return
		}
		if removal := forget(store, key); removal != nil && err != nil {
			err = &handlerError{handler: err, removal: removal}
		}
	}()
	err = handler(ctx, notification)
	finished = true
	if err != nil {
		return Failed, err
	}
	return Processed, nil
}

// forget has a time of its own: the handler may have failed because the caller's context ended.
func forget(store SeenStore, key string) error {
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return store.Remove(ctx, key)
}

// A handlerError is what the handler said when, on top of that, its key could not be removed.
type handlerError struct {
	handler, removal error
}

func (e *handlerError) Error() string {
	return fmt.Sprintf("%v; and its key could not be removed, so that a retry counts as a repetition unless you roll back: %v",
		e.handler, e.removal)
}

func (e *handlerError) Unwrap() error { return e.handler }

func (e *handlerError) Is(target error) bool { return errors.Is(e.removal, target) }

func (e *handlerError) As(target any) bool { return errors.As(e.removal, target) }
