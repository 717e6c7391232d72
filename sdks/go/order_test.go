package webhooks

import (
	"errors"
	"fmt"
	"math/rand"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func happened(id string, millis int) *Notification {
	return &Notification{ID: id, Timestamp: testNow.Add(time.Duration(millis) * time.Millisecond)}
}

func ids(notifications []*Notification) string {
	names := make([]string, 0, len(notifications))
	for _, notification := range notifications {
		names = append(names, notification.ID)
	}
	return strings.Join(names, " ")
}

func TestNewestRefusesWhatIsOlderForEachSubjectApart(t *testing.T) {
	newest := NewNewest(10)
	for _, step := range []struct {
		subject string
		millis  int
		want    bool
	}{{"a", 5, true}, {"a", 4, false}, {"a", 5, true}, {"b", 4, true}, {"a", 6, true}, {"a", 5, false}} {
		if got := newest.Accept(step.subject, happened("", step.millis).Timestamp); got != step.want {
			t.Errorf("%+v: got %v", step, got)
		}
	}
}

func TestNewestForgetsTheSubjectThatHasBeenQuietForLongest(t *testing.T) {
	newest := NewNewest(2)
	for _, subject := range []string{"a", "b", "a", "c"} {
		newest.Accept(subject, testNow)
	}
	earlier := testNow.Add(-time.Second)
	if newest.Len() != 2 || newest.Accept("a", earlier) || newest.Accept("c", earlier) || !newest.Accept("b", earlier) {
		t.Error("another one was forgotten")
	}
}

func TestNewestNeverGoesBackUnderConcurrency(t *testing.T) {
	newest := NewNewest(4)
	var accepted int64
	var group sync.WaitGroup
	for worker := 0; worker < 8; worker++ {
		group.Add(1)
		go func(worker int) {
			defer group.Done()
			random := rand.New(rand.NewSource(int64(worker)))
			for round := 0; round < 500; round++ {
				if newest.Accept(fmt.Sprint(round%3), happened("", random.Intn(1000)).Timestamp) {
					atomic.AddInt64(&accepted, 1)
				}
			}
		}(worker)
	}
	group.Wait()
	if accepted == 0 || newest.Len() != 3 {
		t.Errorf("%d accepted, %d subjects", accepted, newest.Len())
	}
}

func TestReorderedNotificationsComeByTimeThenByID(t *testing.T) {
	reorderer := NewReorderer(time.Second, 0)
	for _, notification := range []*Notification{happened("d", 30), happened("b", 10), happened("c", 10), happened("a", 20)} {
		must(t, reorderer.Push(notification, testNow))
	}
	if got := ids(reorderer.Ready(testNow.Add(999 * time.Millisecond))); got != "" {
		t.Errorf("too early: %s", got)
	}
	if got := ids(reorderer.Ready(testNow.Add(time.Second))); got != "b c a d" || reorderer.Len() != 0 {
		t.Errorf("got %s", got)
	}
}

func TestWhatHappenedEarlierComesAlongAndWhatHappenedLaterWaits(t *testing.T) {
	reorderer := NewReorderer(time.Second, 0)
	must(t, reorderer.Push(happened("second", 20), testNow))
	later := testNow.Add(900 * time.Millisecond)
	must(t, reorderer.Push(happened("first", 10), later))
	must(t, reorderer.Push(happened("third", 30), later))
	if got := ids(reorderer.Ready(testNow.Add(time.Second))); got != "first second" {
		t.Errorf("got %s", got)
	}
	if got := ids(reorderer.Drain()); got != "third" {
		t.Errorf("got %s", got)
	}
}

func TestAFullReordererSaysSo(t *testing.T) {
	reorderer := NewReorderer(time.Second, 1)
	must(t, reorderer.Push(happened("a", 0), testNow))
	if err := reorderer.Push(happened("b", 0), testNow); !errors.Is(err, ErrReordererFull) {
		t.Errorf("got %v", err)
	}
	if got := ids(reorderer.Drain()); got != "a" {
		t.Errorf("got %s", got)
	}
}

func TestNothingIsLostOrDoubledByManyWhoPushAndTake(t *testing.T) {
	const workers, each = 8, 300
	reorderer := NewReorderer(0, workers*each)
	var mutex sync.Mutex
	var taken []string
	take := func(notifications []*Notification) {
		mutex.Lock()
		defer mutex.Unlock()
		if !sort.SliceIsSorted(notifications, func(i, j int) bool { return happenedBefore(notifications[i], notifications[j]) }) {
			t.Errorf("out of order: %s", ids(notifications))
		}
		for _, notification := range notifications {
			taken = append(taken, notification.ID)
		}
	}
	var group sync.WaitGroup
	for worker := 0; worker < workers; worker++ {
		group.Add(1)
		go func(worker int) {
			defer group.Done()
			for number := 0; number < each; number++ {
				if err := reorderer.Push(happened(fmt.Sprintf("%d-%d", worker, number), number%7), testNow); err != nil {
					t.Error(err)
				}
				if number%10 == 0 {
					take(reorderer.Ready(testNow))
				}
			}
		}(worker)
	}
	group.Wait()
	take(reorderer.Drain())
	seen := make(map[string]bool)
	for _, id := range taken {
		seen[id] = true
	}
	if len(taken) != workers*each || len(seen) != workers*each {
		t.Errorf("%d taken, %d different", len(taken), len(seen))
	}
}
