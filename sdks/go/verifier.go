package webhooks

import (
	"crypto/subtle"
	"errors"
	"strconv"
	"strings"
	"time"
)

// DefaultTolerance is how far webhook-timestamp may be away from now unless WithTolerance says otherwise.
const DefaultTolerance = 5 * time.Minute

// A Verifier tells notifications that were signed with one of its secrets from everything else. It never changes and can be
// used by many goroutines at once. To rotate a secret make another Verifier: it costs next to nothing.
type Verifier struct {
	keys      [][]byte
	tolerance time.Duration
	now       func() time.Time
}

// An Option changes how a Verifier works.
type Option func(*Verifier)

// WithTolerance sets how far webhook-timestamp may be away from now, in whole seconds; exactly as far is accepted. It must not be
// negative.
func WithTolerance(tolerance time.Duration) Option {
	return func(v *Verifier) { v.tolerance = tolerance }
}

// WithClock replaces time.Now, for tests.
func WithClock(now func() time.Time) Option {
	return func(v *Verifier) { v.now = now }
}

// NewVerifier makes a Verifier that knows these secrets, each as the portal showed it: whsec_ and base64. While a secret is being
// replaced, give the old and the new one. A bad secret gives a *SecretError.
func NewVerifier(secrets []string, options ...Option) (*Verifier, error) {
	keys, err := parseSecrets(secrets)
	if err != nil {
		return nil, err
	}
	v := &Verifier{keys: keys, tolerance: DefaultTolerance, now: time.Now}
	for _, option := range options {
		option(v)
	}
	if v.tolerance < 0 {
		return nil, errors.New("webhooks: the tolerance is negative; DefaultTolerance is five minutes")
	}
	if v.now == nil {
		return nil, errors.New("webhooks: the clock is nil; leave WithClock away to use time.Now")
	}
	return v, nil
}

// Verify checks the signature of a request and reads its body, which must be the bytes as they arrived: JSON that was parsed and
// written again is another message. Every error that it gives is an *Error.
func (v *Verifier) Verify(header Header, body []byte) (*Notification, error) {
	attempt, err := v.check(header, body)
	if err != nil {
		return nil, err
	}
	return readNotification(attempt, body)
}

// VerifySignature checks the signature alone and parses nothing. It fails as Verify does, except for CodeBadBody.
func (v *Verifier) VerifySignature(header Header, body []byte) error {
	_, err := v.check(header, body)
	return err
}

// An attempt is what the headers of a request say once they are known to be true.
type attempt struct {
	id string
	at time.Time
}

func (v *Verifier) check(header Header, body []byte) (attempt, error) {
	id := header.Get(HeaderID)
	if id == "" {
		return attempt{}, missingHeader(HeaderID)
	}
	timestamp := header.Get(HeaderTimestamp)
	if timestamp == "" {
		return attempt{}, missingHeader(HeaderTimestamp)
	}
	signatures := header.Get(HeaderSignature)
	if signatures == "" {
		return attempt{}, missingHeader(HeaderSignature)
	}
	if strings.Contains(id, ".") {
		return attempt{}, ErrAmbiguousID
	}
	seconds, err := parseSeconds(timestamp)
	if err != nil {
		return attempt{}, err
	}
	if err := v.checkTime(seconds); err != nil {
		return attempt{}, err
	}
	for _, key := range v.keys {
		expected := signatureOf(key, id, timestamp, body)
		if contains(signatures, expected[:]) {
			return attempt{id: id, at: time.Unix(seconds, 0).UTC()}, nil
		}
	}
	return attempt{}, ErrNoMatch
}

// parseSeconds takes only the one way to write a number, since the text is what was signed.
func parseSeconds(text string) (int64, error) {
	for _, sign := range []byte(text) {
		if sign < '0' || sign > '9' {
			return 0, ErrBadTimestamp
		}
	}
	if len(text) > 1 && text[0] == '0' {
		return 0, ErrBadTimestamp
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, ErrBadTimestamp
	}
	return seconds, nil
}

// checkTime counts in whole seconds, as the header does; both ends of the tolerance belong to it.
func (v *Verifier) checkTime(seconds int64) error {
	now, tolerance := v.now().Unix(), int64(v.tolerance/time.Second)
	// Neither side overflows: a tolerance is at most 292 years, and seconds are not negative.
	if seconds < now-tolerance {
		return ErrTooOld
	}
	if seconds-tolerance > now {
		return ErrTooNew
	}
	return nil
}

// contains looks for a signature among those of a header, each compared in constant time. A signature has one spelling only, so
// that comparing texts is comparing what they stand for.
func contains(signatures string, expected []byte) bool {
	for rest := signatures; ; {
		candidate, more, found := strings.Cut(rest, " ")
		if subtle.ConstantTimeCompare([]byte(candidate), expected) == 1 {
			return true
		}
		if !found {
			return false
		}
		rest = more
	}
}
