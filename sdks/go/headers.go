package webhooks

import "strings"

// The headers that make a signed request, in lower case.
const (
	// HeaderID names the notification; the same in every attempt.
	HeaderID = "webhook-id"
	// HeaderTimestamp says when the attempt began, in seconds since 1970.
	HeaderTimestamp = "webhook-timestamp"
	// HeaderSignature holds the signatures, with a blank between them.
	HeaderSignature = "webhook-signature"
	// HeaderIdempotencyKey repeats the key of the body. It is not signed, and nothing here reads it.
	HeaderIdempotencyKey = "idempotency-key"
)

// A Header looks headers up by their names without regard to case, and gives "" for one that is missing. http.Header is one.
type Header interface {
	Get(name string) string
}

// HeaderFunc makes a Header of a function that looks headers up; it gets names in lower case.
type HeaderFunc func(name string) string

// Get calls the function.
func (f HeaderFunc) Get(name string) string { return f(name) }

// HeaderMap makes a Header of a plain map, as serverless platforms give one, however its names are spelled. If one name is
// there in several spellings with different values, the header counts as missing: none of them can be preferred.
type HeaderMap map[string]string

// Get looks name up without regard to case.
func (m HeaderMap) Get(name string) string {
	found, seen := "", false
	for key, value := range m {
		if !strings.EqualFold(key, name) {
			continue
		}
		if seen && value != found {
			return ""
		}
		found, seen = value, true
	}
	return found
}
