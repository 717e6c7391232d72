package webhooks

import (
	"errors"
	"testing"
	"unicode/utf8"
)

// Whatever a body holds, reading it ends in a notification that is whole or in an *Error.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{
		string(testBody), `{}`, `{"id":"evt_1"}`, `[[[[`, `{"id":"evt_1","type":"a","timestamp":"2023-11-14T22:13:20Z","data":{}}`, "\xff",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := verifierOf(t, testSecret).Verify(signed(t, body, testSecret), body)
		var refusal *Error
		if err != nil && (!errors.As(err, &refusal) || refusal.Code != CodeBadBody) {
			t.Errorf("got %v", err)
		}
		if err == nil && (got.ID != "evt_1" || got.Type == "" || got.Data[0] != '{' || !utf8.Valid(body)) {
			t.Errorf("got %+v", got)
		}
	})
}

// Whatever the headers hold, what was not signed is refused.
func FuzzHeaders(f *testing.F) {
	f.Add("evt_1", "1700000000", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	f.Add("a.b", "1700000000", "v1,")
	f.Add("", "-1", " , v1 v1,,")
	f.Fuzz(func(t *testing.T, id, timestamp, signature string) {
		header := HeaderMap{HeaderID: id, HeaderTimestamp: timestamp, HeaderSignature: signature}
		var refusal *Error
		if err := verifierOf(t, testSecret).VerifySignature(header, testBody); !errors.As(err, &refusal) {
			t.Errorf("got %v", err)
		}
	})
}
