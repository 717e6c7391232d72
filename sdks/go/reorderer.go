package webhooks

import (
	"errors"
	"sort"
	"sync"
	"time"
)

// DefaultMaxWaiting is how many notifications a Reorderer holds unless told otherwise.
const DefaultMaxWaiting = 10_000

// ErrReordererFull says that no more notifications can wait. Answer 503, and this one comes again.
var ErrReordererFull = errors.New("webhooks: the reorderer is full; take what is ready more often, or answer 503")

// A Reorderer holds notifications back for a while and gives them out in the order in which things happened. What comes later than
// the delay still comes out of order; a retry can be minutes late, so prefer Newest wherever it will do.
//
// It is safe for use by many goroutines at once. What waits is lost when the process ends: store notifications before you answer
// 200, or push what is stored.
type Reorderer struct {
	delay      time.Duration
	maxWaiting int

	mutex sync.Mutex
	// By timestamp, then by ID.
	waiting []waitingNotification
}

type waitingNotification struct {
	notification *Notification
	due          time.Time
}

// NewReorderer makes one that holds each notification back for the delay and at most maxWaiting of them at a time; 0 means
// DefaultMaxWaiting.
func NewReorderer(delay time.Duration, maxWaiting int) *Reorderer {
	if maxWaiting < 1 {
		maxWaiting = DefaultMaxWaiting
	}
	return &Reorderer{delay: delay, maxWaiting: maxWaiting}
}

// Push takes a notification that came now. It gives ErrReordererFull if there is no room.
func (r *Reorderer) Push(notification *Notification, now time.Time) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.waiting) >= r.maxWaiting {
		return ErrReordererFull
	}
	at := sort.Search(len(r.waiting), func(i int) bool {
		return happenedBefore(notification, r.waiting[i].notification)
	})
	r.waiting = append(r.waiting, waitingNotification{})
	copy(r.waiting[at+1:], r.waiting[at:])
	r.waiting[at] = waitingNotification{notification: notification, due: now.Add(r.delay)}
	return nil
}

// Ready gives out what has waited for the delay, ordered by timestamp and then ID. What happened before such a notification comes
// along with it, however short its wait: to hold it back would put it out of order for certain.
func (r *Reorderer) Ready(now time.Time) []*Notification {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	count := len(r.waiting)
	for count > 0 && r.waiting[count-1].due.After(now) {
		count--
	}
	return r.take(count)
}

// Drain gives out everything, in the same order, for instance before the process ends.
func (r *Reorderer) Drain() []*Notification {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.take(len(r.waiting))
}

// Len says how many wait.
func (r *Reorderer) Len() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.waiting)
}

func (r *Reorderer) take(count int) []*Notification {
	if count == 0 {
		return nil
	}
	taken := make([]*Notification, 0, count)
	for _, entry := range r.waiting[:count] {
		taken = append(taken, entry.notification)
	}
	// A new array, so that the old one does not keep alive what was given out.
	r.waiting = append([]waitingNotification(nil), r.waiting[count:]...)
	return taken
}

func happenedBefore(one, other *Notification) bool {
	if !one.Timestamp.Equal(other.Timestamp) {
		return one.Timestamp.Before(other.Timestamp)
	}
	return one.ID < other.ID
}
