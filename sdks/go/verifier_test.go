package webhooks

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

const testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

var (
	testNow  = time.Unix(1_700_000_000, 0)
	testBody = []byte(`{"id":"evt_1","type":"domain.created","timestamp":"2023-11-14T22:13:20.125Z",` +
		`"data":{"domain":{"name":"example.org"},"serial":12345678901234567890}}`)
)

func secretOf(fill byte) string {
	return secretPrefix + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(rune(fill)), 32)))
}

func verifierOf(t testing.TB, secrets ...string) *Verifier {
	t.Helper()
	verifier, err := NewVerifier(secrets, WithClock(func() time.Time { return testNow }))
	must(t, err)
	return verifier
}

// signed gives headers that are right for the body in every respect.
func signed(t testing.TB, body []byte, secrets ...string) http.Header {
	t.Helper()
	header, err := SignedHeaders(secrets, "evt_1", testNow, body)
	must(t, err)
	return header
}

func TestVerifyGivesBackEveryFieldOfANotification(t *testing.T) {
	header := signed(t, testBody, testSecret)
	header.Set("idempotency-key", "another sender's")
	got, err := verifierOf(t, testSecret).Verify(header, testBody)
	must(t, err)
	if got.ID != "evt_1" || got.Type != "domain.created" || !got.AttemptedAt.Equal(testNow) {
		t.Errorf("got %+v", got)
	}
	if want := time.Date(2023, 11, 14, 22, 13, 20, 125_000_000, time.UTC); got.Timestamp != want {
		t.Errorf("got %v", got.Timestamp)
	}
	if got.IdempotencyKey != IdempotencyKey(testBody) {
		t.Errorf("the key was taken from the header, which is not signed: %s", got.IdempotencyKey)
	}
	var data struct {
		Domain struct{ Name string }
		Serial uint64
	}
	must(t, got.DecodeData(&data))
	if data.Domain.Name != "example.org" || data.Serial != 12345678901234567890 {
		t.Errorf("got %+v", data)
	}
}

func TestHeadersAreFoundHoweverTheyAreSpelled(t *testing.T) {
	canonical := signed(t, testBody, testSecret)
	for _, spell := range []func(string) string{strings.ToLower, strings.ToUpper, http.CanonicalHeaderKey} {
		plain := make(HeaderMap)
		for name := range canonical {
			plain[spell(name)] = canonical.Get(name)
		}
		must(t, verifierOf(t, testSecret).VerifySignature(plain, testBody))
	}
	must(t, verifierOf(t, testSecret).VerifySignature(HeaderFunc(canonical.Get), testBody))
}

func TestContradictingSpellingsOfAHeaderCountAsMissing(t *testing.T) {
	header := HeaderMap{"webhook-id": "evt_1", "Webhook-Id": "evt_2", "webhook-timestamp": "1", "webhook-signature": "v1,x"}
	err := verifierOf(t, testSecret).VerifySignature(header, testBody)
	if !errors.Is(err, ErrMissingHeader) {
		t.Errorf("got %v", err)
	}
}

func TestMissingHeadersAreNamed(t *testing.T) {
	for _, name := range []string{HeaderID, HeaderTimestamp, HeaderSignature} {
		header := signed(t, testBody, testSecret)
		header.Del(name)
		err := verifierOf(t, testSecret).VerifySignature(header, testBody)
		if !errors.Is(err, ErrMissingHeader) || !errors.Is(err, &Error{Code: CodeMissingHeader, Header: name}) ||
			errors.Is(err, &Error{Code: CodeMissingHeader, Header: "other"}) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAnySecretThatIsStillValidWillDo(t *testing.T) {
	older, newer, foreign := secretOf('o'), secretOf('n'), secretOf('f')
	header := signed(t, testBody, newer, older)
	for _, known := range [][]string{{older}, {newer}, {foreign, older}} {
		must(t, verifierOf(t, known...).VerifySignature(header, testBody))
	}
	if err := verifierOf(t, foreign).VerifySignature(header, testBody); !errors.Is(err, ErrNoMatch) {
		t.Errorf("got %v", err)
	}
}

func TestEveryChangedBitIsFound(t *testing.T) {
	verifier, header := verifierOf(t, testSecret), signed(t, testBody, testSecret)
	for at := range testBody {
		for bit := 0; bit < 8; bit++ {
			body := append([]byte(nil), testBody...)
			body[at] ^= 1 << bit
			if err := verifier.VerifySignature(header, body); !errors.Is(err, ErrNoMatch) {
				t.Fatalf("byte %d, bit %d: got %v", at, bit, err)
			}
		}
	}
}

func TestTimestampsHaveOneSpelling(t *testing.T) {
	for _, text := range []string{
		"+1700000000", "01700000000", "1700000000.0", "1.7e9", " 1700000000", "-1", "9223372036854775808", "١", "x", "0x1",
	} {
		header := signed(t, testBody, testSecret)
		header.Set(HeaderTimestamp, text)
		err := verifierOf(t, testSecret).VerifySignature(header, testBody)
		if !errors.Is(err, ErrBadTimestamp) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestBothEndsOfTheToleranceAreInside(t *testing.T) {
	for shift, want := range map[int64]error{-301: ErrTooOld, -300: nil, 0: nil, 300: nil, 301: ErrTooNew} {
		at := testNow.Add(time.Duration(shift) * time.Second)
		header, err := SignedHeaders([]string{testSecret}, "evt_1", at, testBody)
		must(t, err)
		if err := verifierOf(t, testSecret).VerifySignature(header, testBody); !errors.Is(err, want) {
			t.Errorf("%d: got %v", shift, err)
		}
	}
}

func TestBodiesThatAreNoNotificationAreRefusedOnlyAfterTheSignatureMatched(t *testing.T) {
	const rest = `"type":"a.b","timestamp":"2023-11-14T22:13:20Z","data":{}}`
	for _, body := range []string{
		``, `null`, `[]`, `"x"`, `{`, `{"id":"evt_1",` + rest + `x`, `{"id":"evt_1",` + rest + "\xff",
		`{` + rest, `{"id":null,` + rest, `{"id":7,` + rest, `{"id":"evt_2",` + rest, `{"ID":"evt_1",` + rest,
		`{"id":"evt_1","timestamp":"2023-11-14T22:13:20Z","data":{}}`,
		`{"id":"evt_1","type":"","timestamp":"2023-11-14T22:13:20Z","data":{}}`,
		`{"id":"evt_1","type":"a.b","data":{}}`,
		`{"id":"evt_1","type":"a.b","timestamp":1700000000,"data":{}}`,
		`{"id":"evt_1","type":"a.b","timestamp":"2023-11-14","data":{}}`,
		`{"id":"evt_1","type":"a.b","timestamp":"2023-11-14T22:13:20","data":{}}`,
		`{"id":"evt_1","type":"a.b","timestamp":"2023-11-14T22:13:20,5Z","data":{}}`,
		`{"id":"evt_1","type":"a.b","timestamp":"2023-11-14T2:13:20.55Z","data":{}}`,
		`{"id":"evt_1","type":"a.b","timestamp":"2023-11-14T22:13:20.0000000000Z","data":{}}`,
		`{"id":"evt_1","type":"a.b","timestamp":"2023-11-14T22:13:20.0000000000+01:00","data":{}}`,
		`{"id":"evt_1","type":"a.b","timestamp":"2023-02-30T22:13:20Z","data":{}}`,
		`{"id":"evt_1","type":"a.b","timestamp":"2023-11-14T22:13:20+24:00","data":{}}`,
		`{"id":"evt_1","type":"a.b","timestamp":"2023-11-14T22:13:20+05:+0","data":{}}`,
		`{"id":"evt_1","type":"a.b","timestamp":"2023-11-14T22:13:20-00:60","data":{}}`,
		`{"id":"evt_1","type":"a.b","timestamp":"2023-11-14T22:13:20Z"}`,
		`{"id":"evt_1","type":"a.b","timestamp":"2023-11-14T22:13:20Z","data":null}`,
		`{"id":"evt_1","type":"a.b","timestamp":"2023-11-14T22:13:20Z","data":[]}`,
		`{"id":"evt_1","type":"a.b","timestamp":"2023-11-14T22:13:20Z","data":` + strings.Repeat(`[`, 100_000),
	} {
		header := signed(t, []byte(body), testSecret)
		if _, err := verifierOf(t, testSecret).Verify(header, []byte(body)); !errors.Is(err, ErrBadBody) {
			t.Errorf("%.100q: got %v", body, err)
		}
		if _, err := verifierOf(t, secretOf('f')).Verify(header, []byte(body)); !errors.Is(err, ErrNoMatch) {
			t.Errorf("%.100q: got %v", body, err)
		}
		must(t, verifierOf(t, testSecret).VerifySignature(header, []byte(body)))
	}
}

func TestTimestampsOfOtherZonesBecomeUTC(t *testing.T) {
	body := []byte(`{"id":"evt_1","type":"a.b","timestamp":"2023-11-14T23:13:20.5+01:00","data":{},"more":1}`)
	got, err := verifierOf(t, testSecret).Verify(signed(t, body, testSecret), body)
	must(t, err)
	if want := time.Date(2023, 11, 14, 22, 13, 20, 500_000_000, time.UTC); got.Timestamp != want {
		t.Errorf("got %v", got.Timestamp)
	}
}

func TestChallengesAreReadFromVerificationsAlone(t *testing.T) {
	for kind, want := range map[string]string{TypeVerification: "abc", "domain.created": ""} {
		body := []byte(fmt.Sprintf(
			`{"id":"evt_1","type":%q,"timestamp":"2023-11-14T22:13:20Z","data":{"challenge":"abc"}}`, kind))
		got, err := verifierOf(t, testSecret).Verify(signed(t, body, testSecret), body)
		must(t, err)
		if challenge, found := got.Challenge(); challenge != want || found != (want != "") {
			t.Errorf("%s: got %q", kind, challenge)
		}
	}
}

func TestErrorsRepeatNothingOfSecretsSignaturesAndBodies(t *testing.T) {
	const marker = "Tm90aGluZw"
	_, badSecret := NewVerifier([]string{secretOf('a'), "whsec_" + marker})
	header := signed(t, testBody, testSecret)
	header.Set(HeaderSignature, "v1,"+marker)
	noMatch := verifierOf(t, testSecret).VerifySignature(header, testBody)
	body := []byte(`{"id":"` + marker + `"}`)
	_, badBody := verifierOf(t, testSecret).Verify(signed(t, body, testSecret), body)
	for _, err := range []error{badSecret, noMatch, badBody} {
		if err == nil || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), marker) {
			t.Errorf("got %v", err)
		}
	}
	if !strings.Contains(badSecret.Error(), "secret 2") {
		t.Errorf("it is not said which secret is wrong: %v", badSecret)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	for _, option := range []Option{WithTolerance(-time.Second), WithClock(nil)} {
		if _, err := NewVerifier([]string{testSecret}, option); err == nil {
			t.Error("a wrong option was accepted")
		}
	}
}

func TestWhatCannotBeVerifiedIsNotSigned(t *testing.T) {
	for _, id := range []string{"", "a.b"} {
		if _, err := Sign([]string{testSecret}, id, testNow, nil); err == nil {
			t.Errorf("%q was signed", id)
		}
	}
	if _, err := Sign([]string{testSecret}, "a", time.Unix(-1, 0), nil); err == nil {
		t.Error("a time before 1970 was signed")
	}
	if _, err := Sign(nil, "a", testNow, nil); err == nil {
		t.Error("something was signed without a secret")
	}
}

func TestOneVerifierServesManyGoroutines(t *testing.T) {
	verifier, header := verifierOf(t, secretOf('f'), testSecret), signed(t, testBody, testSecret)
	var group sync.WaitGroup
	for worker := 0; worker < 8; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for round := 0; round < 200; round++ {
				if got, err := verifier.Verify(header, testBody); err != nil || got.ID != "evt_1" {
					t.Errorf("got %v, %v", got, err)
				}
			}
		}()
	}
	group.Wait()
}
