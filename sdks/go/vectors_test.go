package webhooks

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"reflect"
	"testing"
	"time"
)

// The vectors that every language runs; README.md beside the file explains them.
const vectorsFile = "../vectors.json"

type vectors struct {
	Format        int
	Secrets       []secretVector
	Sign          []signVector
	Verify        []verifyVector
	Notifications []notificationVector
}

type vectorBody struct {
	Name       string
	Body       *string
	BodyBase64 *string
}

type secretVector struct{ Name, Secret, KeyHex, Error string }

type signVector struct {
	vectorBody
	Secrets        []string
	ID             string
	Timestamp      int64
	Signature      string
	IdempotencyKey string
}

type verifyVector struct {
	vectorBody
	Secrets          []string
	Headers          map[string]string
	Now              int64
	ToleranceSeconds int64
	Result           string
}

type notificationVector struct {
	verifyVector
	Notification struct {
		ID, Type, IdempotencyKey     string
		TimestampMillis, AttemptedAt int64
		Data                         json.RawMessage
	}
}

func (b vectorBody) bytes(t *testing.T) []byte {
	t.Helper()
	switch {
	case b.Body != nil && b.BodyBase64 == nil:
		return []byte(*b.Body)
	case b.BodyBase64 != nil && b.Body == nil:
		body, err := base64.StdEncoding.DecodeString(*b.BodyBase64)
		must(t, err)
		return body
	}
	t.Fatalf("%s: neither body nor bodyBase64, or both", b.Name)
	return nil
}

func (v verifyVector) verifier(t *testing.T) *Verifier {
	t.Helper()
	verifier, err := NewVerifier(v.Secrets,
		WithTolerance(time.Duration(v.ToleranceSeconds)*time.Second),
		WithClock(func() time.Time { return time.Unix(v.Now, 0) }))
	must(t, err)
	return verifier
}

func readVectors(t *testing.T) vectors {
	t.Helper()
	text, err := os.ReadFile(vectorsFile)
	must(t, err)
	var read vectors
	must(t, json.Unmarshal(text, &read))
	if read.Format != 2 {
		t.Fatalf("format %d of %s is unknown", read.Format, vectorsFile)
	}
	return read
}

func TestVectorsOfSecrets(t *testing.T) {
	entries := readVectors(t).Secrets
	wantSome(t, len(entries))
	for _, entry := range entries {
		key, fault := parseSecret(entry.Secret)
		code := ""
		if fault != nil {
			code = string(fault.Code)
		}
		if code != entry.Error || hex.EncodeToString(key) != entry.KeyHex {
			t.Errorf("%s: got %q and %x", entry.Name, code, key)
		}
	}
}

func TestVectorsOfSigning(t *testing.T) {
	entries := readVectors(t).Sign
	wantSome(t, len(entries))
	for _, entry := range entries {
		body := entry.bytes(t)
		signature, err := Sign(entry.Secrets, entry.ID, time.Unix(entry.Timestamp, 0), body)
		if err != nil || signature != entry.Signature {
			t.Errorf("%s: got %q, %v", entry.Name, signature, err)
		}
		if key := IdempotencyKey(body); key != entry.IdempotencyKey {
			t.Errorf("%s: got the idempotency key %s", entry.Name, key)
		}
	}
}

func TestVectorsOfVerifying(t *testing.T) {
	entries := readVectors(t).Verify
	wantSome(t, len(entries))
	for _, entry := range entries {
		if len(entry.Secrets) == 0 {
			// This library goes one further: it does not let you receive without a secret.
			var fault *SecretError
			if _, err := NewVerifier(nil); !errors.As(err, &fault) || fault.Code != SecretNone {
				t.Errorf("%s: got %v", entry.Name, err)
			}
			continue
		}
		err := entry.verifier(t).VerifySignature(HeaderMap(entry.Headers), entry.bytes(t))
		if result := resultOf(err); result != entry.Result {
			t.Errorf("%s: got %s, want %s", entry.Name, result, entry.Result)
		}
	}
}

func TestVectorsOfNotifications(t *testing.T) {
	entries := readVectors(t).Notifications
	wantSome(t, len(entries))
	for _, entry := range entries {
		header := make(http.Header)
		for name, value := range entry.Headers {
			header.Set(name, value)
		}
		notification, err := entry.verifier(t).Verify(header, entry.bytes(t))
		if result := resultOf(err); result != entry.Result {
			t.Errorf("%s: got %s, want %s", entry.Name, result, entry.Result)
		} else if err == nil {
			compareNotification(t, entry, notification)
		}
	}
}

func compareNotification(t *testing.T, entry notificationVector, got *Notification) {
	t.Helper()
	want := entry.Notification
	var gotData, wantData any
	must(t, got.DecodeData(&gotData))
	must(t, json.Unmarshal(want.Data, &wantData))
	if got.ID != want.ID || got.Type != want.Type || got.IdempotencyKey != want.IdempotencyKey ||
		got.Timestamp.UnixMilli() != want.TimestampMillis || got.Timestamp.Location() != time.UTC ||
		got.AttemptedAt.Unix() != want.AttemptedAt || !reflect.DeepEqual(gotData, wantData) {
		t.Errorf("%s: got %+v", entry.Name, got)
	}
}

func resultOf(err error) string {
	var refusal *Error
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &refusal):
		return string(refusal.Code)
	}
	return err.Error()
}

func wantSome(t *testing.T, count int) {
	t.Helper()
	if count == 0 {
		t.Fatalf("%s has no entries of this kind", vectorsFile)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
