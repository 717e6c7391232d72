package webhooks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	errHandler = errors.New("the handler failed")
	errStore   = errors.New("the store failed")
)

func notificationOf(id string) *Notification { return &Notification{ID: id, Type: "domain.created"} }

// A counter is a handler that counts its calls and gives what it is told to.
type counter struct {
	calls int
	err   error
}

func (c *counter) handle(context.Context, *Notification) error {
	c.calls++
	return c.err
}

// A brokenStore fails where it is told to.
type brokenStore struct{ add, remove error }

func (s brokenStore) Add(context.Context, string) (bool, error) { return s.add == nil, s.add }
func (s brokenStore) Remove(context.Context, string) error      { return s.remove }

func TestANotificationIsProcessedOnce(t *testing.T) {
	store, handler := NewMemoryStore(), &counter{}
	for _, want := range []Outcome{Processed, Repeated, Repeated} {
		got, err := ProcessOnce(context.Background(), store, notificationOf("a"), handler.handle)
		if got != want || err != nil {
			t.Errorf("got %v, %v", got, err)
		}
	}
	if handler.calls != 1 {
		t.Errorf("the handler ran %d times", handler.calls)
	}
}

func TestScopesKeepSubscriptionsApart(t *testing.T) {
	store, handler, notification := NewMemoryStore(), &counter{}, notificationOf("a")
	for _, scope := range []string{"", "first", "second"} {
		got, err := ProcessOnceAs(context.Background(), store, ScopedKey(scope, notification), notification, handler.handle)
		if got != Processed || err != nil {
			t.Errorf("%q: got %v, %v", scope, got, err)
		}
	}
}

func TestAFailedHandlerIsGivenTheRetry(t *testing.T) {
	store, handler := NewMemoryStore(), &counter{err: errHandler}
	got, err := ProcessOnce(context.Background(), store, notificationOf("a"), handler.handle)
	if got != Failed || !errors.Is(err, errHandler) {
		t.Errorf("got %v, %v", got, err)
	}
	handler.err = nil
	if got, err := ProcessOnce(context.Background(), store, notificationOf("a"), handler.handle); got != Processed || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestAFailedHandlerIsGivenTheRetryAlsoWhenItsContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	store := &contextStore{MemoryStore: NewMemoryStore()}
	_, err := ProcessOnce(ctx, store, notificationOf("a"), func(ctx context.Context, _ *Notification) error {
		cancel()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || store.Len() != 0 {
		t.Errorf("got %v, and %d keys are left", err, store.Len())
	}
}

// A contextStore refuses to work for a context that has ended, as databases do.
type contextStore struct{ *MemoryStore }

func (s *contextStore) Remove(ctx context.Context, key string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return s.MemoryStore.Remove(ctx, key)
}

func TestAHandlerThatPanicsIsGivenTheRetry(t *testing.T) {
	store := NewMemoryStore()
	func() {
		defer func() {
			if recover() != "broken" {
				t.Error("the panic did not go on")
			}
		}()
		_, _ = ProcessOnce(context.Background(), store, notificationOf("a"), func(context.Context, *Notification) error {
			panic("broken")
		})
	}()
	if store.Len() != 0 {
		t.Error("the key is still there")
	}
}

func TestFailuresOfAStoreAreTold(t *testing.T) {
	handler := &counter{err: errHandler}
	got, err := ProcessOnce(context.Background(), brokenStore{add: errStore}, notificationOf("a"), handler.handle)
	if got != Failed || !errors.Is(err, errStore) || handler.calls != 0 {
		t.Errorf("got %v, %v", got, err)
	}
	_, err = ProcessOnce(context.Background(), brokenStore{remove: errStore}, notificationOf("a"), handler.handle)
	if !errors.Is(err, errHandler) || !errors.Is(err, errStore) || !strings.Contains(err.Error(), "roll back") {
		t.Errorf("got %v", err)
	}
}

func TestOfManyAtOnceExactlyOneIsProcessed(t *testing.T) {
	const workers, ids = 16, 50
	store := NewMemoryStore()
	var processed, repeated int64
	var group sync.WaitGroup
	for worker := 0; worker < workers; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for id := 0; id < ids; id++ {
				outcome, err := ProcessOnce(context.Background(), store, notificationOf(fmt.Sprint(id)),
					func(context.Context, *Notification) error { return nil })
				switch {
				case err != nil:
					t.Error(err)
				case outcome == Processed:
					atomic.AddInt64(&processed, 1)
				case outcome == Repeated:
					atomic.AddInt64(&repeated, 1)
				}
			}
		}()
	}
	group.Wait()
	if processed != ids || repeated != (workers-1)*ids {
		t.Errorf("%d processed, %d repeated", processed, repeated)
	}
}

func TestAMemoryStoreForgetsTheOldestWhenItIsFull(t *testing.T) {
	store := NewMemoryStore(WithMaxEntries(2))
	for _, step := range []struct {
		key  string
		want bool
	}{{"a", true}, {"b", true}, {"a", false}, {"c", true}, {"b", false}, {"a", true}, {"c", false}} {
		if got, _ := store.Add(context.Background(), step.key); got != step.want {
			t.Errorf("%s: got %v", step.key, got)
		}
	}
	if store.Len() != 2 {
		t.Errorf("%d keys", store.Len())
	}
}

func TestAMemoryStoreForgetsWhatIsTooOld(t *testing.T) {
	now := testNow
	store := NewMemoryStore(WithMaxAge(time.Hour), WithStoreClock(func() time.Time { return now }))
	add := func(key string) bool {
		isNew, err := store.Add(context.Background(), key)
		must(t, err)
		return isNew
	}
	add("a")
	now = now.Add(time.Hour)
	if add("a") {
		t.Error("forgotten too early")
	}
	now = now.Add(time.Nanosecond)
	if !add("b") || store.Len() != 1 || !add("a") {
		t.Error("remembered too long")
	}
}

func TestAMemoryStoreRemembersWhateverItIsTold(t *testing.T) {
	now := testNow
	for _, age := range []time.Duration{0, -time.Hour} {
		store := NewMemoryStore(WithMaxEntries(0), WithMaxAge(age), WithStoreClock(func() time.Time { return now }))
		for _, want := range []bool{true, false} {
			if got, _ := store.Add(context.Background(), "a"); got != want {
				t.Errorf("%v: got %v", age, got)
			}
			now = now.Add(time.Second)
		}
	}
}

func TestAMemoryStoreForgetsNothingEarlierWhenTheClockIsSetBack(t *testing.T) {
	now := testNow
	store := NewMemoryStore(WithMaxAge(time.Hour), WithStoreClock(func() time.Time { return now }))
	for _, step := range []struct {
		after time.Duration
		key   string
		want  bool
	}{{0, "a", true}, {-2 * time.Hour, "b", true}, {0, "a", false}, {time.Minute, "b", false}, {4 * time.Hour, "b", true}} {
		now = now.Add(step.after)
		if got, _ := store.Add(context.Background(), step.key); got != step.want {
			t.Errorf("%s after %v: got %v", step.key, step.after, got)
		}
	}
	if store.Len() != 1 {
		t.Errorf("%d keys", store.Len())
	}
}

func TestAMemoryStoreForgetsForAReplayOnlyAfterItsThirtyDays(t *testing.T) {
	if DefaultSeenAge <= 30*24*time.Hour {
		t.Error("a replay reaches back further than the store")
	}
}
