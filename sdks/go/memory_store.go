package webhooks

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// DefaultMaxSeen is how many keys a MemoryStore keeps unless told otherwise: some 20 MB.
const DefaultMaxSeen = 100_000

// A MemoryStore is a SeenStore that forgets everything when the process ends. It keeps keys for a time and no more of them than
// it may; beyond that it forgets the oldest, whose notifications would then be processed again.
type MemoryStore struct {
	maxEntries int
	maxAge     time.Duration
	now        func() time.Time

	mutex   sync.Mutex
	entries map[string]*list.Element
	// The oldest is in front: keys are added at the back only. A clock that is set back makes it keep them for longer.
	order *list.List
}

type seenKey struct {
	key string
	at  time.Time
}

// A MemoryOption changes how a MemoryStore works.
type MemoryOption func(*MemoryStore)

// WithMaxEntries sets how many keys are kept, at least one.
func WithMaxEntries(count int) MemoryOption {
	return func(s *MemoryStore) { s.maxEntries = count }
}

// WithMaxAge sets how long a key is kept; DefaultSeenAge unless it is positive.
func WithMaxAge(age time.Duration) MemoryOption {
	return func(s *MemoryStore) { s.maxAge = age }
}

// WithStoreClock replaces time.Now, for tests.
func WithStoreClock(now func() time.Time) MemoryOption {
	return func(s *MemoryStore) { s.now = now }
}

// NewMemoryStore makes an empty store that keeps DefaultMaxSeen keys for DefaultSeenAge unless told otherwise.
func NewMemoryStore(options ...MemoryOption) *MemoryStore {
	store := &MemoryStore{
		maxEntries: DefaultMaxSeen,
		maxAge:     DefaultSeenAge,
		now:        time.Now,
		entries:    make(map[string]*list.Element),
		order:      list.New(),
	}
	for _, option := range options {
		option(store)
	}
	if store.maxEntries < 1 {
		store.maxEntries = 1
	}
	// With none at all every repetition would be new.
	if store.maxAge <= 0 {
		store.maxAge = DefaultSeenAge
	}
	return store
}

// Add remembers a key and says whether it is new. It never fails.
func (s *MemoryStore) Add(_ context.Context, key string) (bool, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := s.now()
	for oldest := s.order.Front(); oldest != nil; oldest = s.order.Front() {
		if now.Sub(oldest.Value.(seenKey).at) <= s.maxAge {
			break
		}
		s.drop(oldest)
	}
	if _, seen := s.entries[key]; seen {
		return false, nil
	}
	if len(s.entries) >= s.maxEntries {
		s.drop(s.order.Front())
	}
	s.entries[key] = s.order.PushBack(seenKey{key: key, at: now})
	return true, nil
}

// Remove forgets a key. It never fails.
func (s *MemoryStore) Remove(_ context.Context, key string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if element, seen := s.entries[key]; seen {
		s.drop(element)
	}
	return nil
}

// Len says how many keys are kept.
func (s *MemoryStore) Len() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.entries)
}

func (s *MemoryStore) drop(element *list.Element) {
	delete(s.entries, s.order.Remove(element).(seenKey).key)
}
