package webhooks

import (
	"container/list"
	"sync"
	"time"
)

// Newest tells what is newer than everything before it from what came late, for each subject apart: a domain, a contact, whatever
// your objects are. Use it when only the present state of an object counts, so that a late notification can be ignored.
//
// It is safe for use by many goroutines at once and forgets everything when the process ends. Better still, keep the time with the
// object: UPDATE … WHERE changed_at <= the timestamp.
type Newest struct {
	maxSubjects int

	mutex    sync.Mutex
	subjects map[string]*list.Element
	// What was accepted last is at the back.
	order *list.List
}

type newestOf struct {
	subject string
	at      time.Time
}

// NewNewest makes one that remembers at most so many subjects, at least one. Beyond that it forgets the one that has been quiet
// for longest, and accepts whatever comes for it next.
func NewNewest(maxSubjects int) *Newest {
	if maxSubjects < 1 {
		maxSubjects = 1
	}
	return &Newest{maxSubjects: maxSubjects, subjects: make(map[string]*list.Element), order: list.New()}
}

// Accept says whether nothing newer has been accepted for the subject, and remembers the timestamp if so. Two events of the same
// millisecond are both accepted.
func (n *Newest) Accept(subject string, timestamp time.Time) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if element, known := n.subjects[subject]; known {
		if timestamp.Before(element.Value.(newestOf).at) {
			return false
		}
		element.Value = newestOf{subject: subject, at: timestamp}
		n.order.MoveToBack(element)
		return true
	}
	if len(n.subjects) >= n.maxSubjects {
		delete(n.subjects, n.order.Remove(n.order.Front()).(newestOf).subject)
	}
	n.subjects[subject] = n.order.PushBack(newestOf{subject: subject, at: timestamp})
	return true
}

// Len says how many subjects are remembered.
func (n *Newest) Len() int {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return len(n.subjects)
}
