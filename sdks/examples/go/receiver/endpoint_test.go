package main

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"postrider.dev/webhooks"
)

const (
	oldSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newSecret = "whsec_5/wuRuV93Jj6gx/DtihcYw76iZJKdJ5xzBKZzC1u/EE="
)

// A service is an endpoint with its files.
type service struct {
	*testing.T
	endpoint *endpoint
	folder   string
	printed  []string
}

func start(t *testing.T, secrets ...string) *service {
	t.Helper()
	s := &service{T: t, folder: t.TempDir()}
	s.write(secrets...)
	file, err := openSecrets(s.secretsPath())
	s.must(err)
	store, err := openStore(filepath.Join(s.folder, "seen"))
	s.must(err)
	s.endpoint = &endpoint{secrets: file, seen: store, work: work, print: func(words ...any) {
		s.printed = append(s.printed, strings.TrimSuffix(fmt.Sprintln(words...), "\n"))
	}}
	return s
}

func (s *service) secretsPath() string { return filepath.Join(s.folder, "secrets") }

func (s *service) write(secrets ...string) {
	s.Helper()
	s.must(os.WriteFile(s.secretsPath(), []byte(strings.Join(secrets, "\n")+"\n"), 0o600))
}

func (s *service) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// deliver sends a notification and wants an answer and a printed line.
func (s *service) deliver(secret, id, kind, data string, status int, line string) string {
	s.Helper()
	body := fmt.Sprintf(`{"id":%q,"type":%q,"timestamp":"2026-11-21T09:51:36.518Z","data":%s}`, id, kind, data)
	header, err := webhooks.SignedHeaders([]string{secret}, id, time.Now(), []byte(body))
	s.must(err)
	request := httptest.NewRequest("POST", "/", strings.NewReader(body))
	request.Header = header
	answer := httptest.NewRecorder()
	s.endpoint.ServeHTTP(answer, request)
	if last := s.printed[len(s.printed)-1]; answer.Code != status || last != line {
		s.Errorf("got %d and %q, want %d and %q", answer.Code, last, status, line)
	}
	return answer.Body.String()
}

func TestANotificationIsProcessedOnceAlsoAcrossARestart(t *testing.T) {
	s := start(t, oldSecret)
	s.deliver(oldSecret, "a", "domain.created", "{}", 200, "processed a domain.created")
	s.deliver(oldSecret, "a", "domain.created", "{}", 200, "repeated a")
	store, err := openStore(filepath.Join(s.folder, "seen"))
	s.must(err)
	s.endpoint.seen = store
	s.deliver(oldSecret, "a", "domain.created", "{}", 200, "repeated a")
	s.deliver(oldSecret, "b", "domain.created", "{}", 200, "processed b domain.created")
}

func TestARotationNeedsNoRestart(t *testing.T) {
	s := start(t, oldSecret)
	s.deliver(newSecret, "a", "domain.created", "{}", 401, "refused no_match")
	s.write(oldSecret, newSecret)
	s.deliver(newSecret, "a", "domain.created", "{}", 200, "processed a domain.created")
	s.deliver(oldSecret, "b", "domain.created", "{}", 200, "processed b domain.created")
	s.write(newSecret)
	s.deliver(oldSecret, "c", "domain.created", "{}", 401, "refused no_match")
}

func TestALineThatWasCutShortIsNoKeyAndSpoilsNone(t *testing.T) {
	s := start(t, oldSecret)
	path := filepath.Join(s.folder, "seen")
	s.must(os.WriteFile(path, []byte("+ first\n+ sec"), 0o600))
	for restart := 0; restart < 2; restart++ {
		store, err := openFileStore(path)
		s.must(err)
		for key, wanted := range map[string]bool{"first": false, "sec": restart == 0, "second": restart == 0} {
			if isNew, err := store.Add(context.Background(), key); isNew != wanted || err != nil {
				t.Errorf("restart %d, %s: got %v, %v", restart, key, isNew, err)
			}
		}
	}
}

func TestABrokenSecretsFileLeavesTheSecretsAsTheyWere(t *testing.T) {
	s := start(t, oldSecret)
	for _, broken := range []string{"", "whsec_MfKQ9r8G"} {
		s.write(broken)
		s.deliver(oldSecret, "a"+broken, "domain.created", "{}", 200, "processed a"+broken+" domain.created")
	}
	if _, err := openSecrets(s.secretsPath()); err == nil {
		t.Error("it starts with a broken file")
	}
}

func TestTheChallengeIsAnsweredEachTime(t *testing.T) {
	s := start(t, oldSecret)
	for range [2]int{} {
		answer := s.deliver(oldSecret, "a", webhooks.TypeVerification, `{"challenge":"abc"}`, 200, "challenge answered")
		if answer != "abc" {
			t.Errorf("got %q", answer)
		}
	}
}

func TestWhatFailsIsAnsweredWith500AndProcessedWhenItComesAgain(t *testing.T) {
	s := start(t, oldSecret)
	s.endpoint.work = func(context.Context, *webhooks.Notification) error { return errors.New("no space") }
	s.deliver(oldSecret, "a", "domain.created", "{}", 500, "failed a no space")
	s.endpoint.work = work
	s.deliver(oldSecret, "a", "domain.created", "{}", 200, "processed a domain.created")
}

func TestWhatIsSignedAndNoNotificationIsAnsweredWith400(t *testing.T) {
	s := start(t, oldSecret)
	s.deliver(oldSecret, "a", "domain.created", "[]", 400, "refused bad_body")
}

func TestStrangersAreRefused(t *testing.T) {
	s := start(t, oldSecret)
	for _, request := range []struct{ method, body, code string }{
		{"GET", "", "method"}, {"POST", "{}", "missing_header"}, {"POST", strings.Repeat("a", maxBodyBytes+1), "unreadable_body"},
	} {
		s.endpoint.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(request.method, "/", strings.NewReader(request.body)))
		if last := s.printed[len(s.printed)-1]; last != "refused "+request.code {
			t.Errorf("got %q, want %q", last, request.code)
		}
	}
}
