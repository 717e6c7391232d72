package webhooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"
	"unicode/utf8"
)

// Event types that every subscription gets, whatever it has selected.
const (
	// TypeVerification is the challenge to a new or changed endpoint; see Notification.Challenge.
	TypeVerification = "postrider.verification"
	// TypeTest is what the reseller API sends to try an endpoint.
	TypeTest = "postrider.test"
)

// A Notification is a request that was signed with one of your secrets.
type Notification struct {
	// ID names the event. It is the same in every attempt, in every resend, and for each of your subscriptions.
	ID string
	// Type is the event type, such as domain.created.
	Type string
	// Timestamp says when it happened, in UTC.
	Timestamp time.Time
	// Data says what happened: a JSON object, as it arrived. See DecodeData.
	Data json.RawMessage
	// IdempotencyKey is SHA-256 over the body, in hexadecimal, computed here. Two events never share one.
	IdempotencyKey string
	// AttemptedAt says when this attempt to deliver began, in UTC and whole seconds.
	AttemptedAt time.Time
}

// DecodeData parses Data into a value as json.Unmarshal does: a struct of yours, or a map[string]any. Attributes may be added to
// event types, so do not refuse those that you do not know.
func (n *Notification) DecodeData(into any) error {
	if err := json.Unmarshal(n.Data, into); err != nil {
		return fmt.Errorf("webhooks: cannot decode the data of a notification of type %q: %w", n.Type, err)
	}
	return nil
}

// Challenge gives what to answer a notification of TypeVerification with, as the whole body and status 200; "" and false for
// every other notification.
func (n *Notification) Challenge() (string, bool) {
	if n.Type != TypeVerification {
		return "", false
	}
	var data struct {
		Challenge string `json:"challenge"`
	}
	if err := json.Unmarshal(n.Data, &data); err != nil || data.Challenge == "" {
		return "", false
	}
	return data.Challenge, true
}

// readNotification takes a body whose signature was right.
func readNotification(attempt attempt, body []byte) (*Notification, error) {
	// The decoder would put replacement characters in the place of what is no UTF-8.
	if !utf8.Valid(body) {
		return nil, badBody("it is not UTF-8")
	}
	// A map and no struct: for a struct "ID" and "id" would be the same member.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return nil, badBody("it is not a JSON object")
	}
	notification := &Notification{Data: members["data"], AttemptedAt: attempt.at}
	var timestamp string
	for _, member := range []struct {
		name string
		into *string
	}{{"id", &notification.ID}, {"type", &notification.Type}, {"timestamp", &timestamp}} {
		if err := readText(members[member.name], member.into); err != nil {
			return nil, badBody(fmt.Sprintf("its %q is no text", member.name))
		}
	}
	if notification.ID != attempt.id {
		return nil, badBody(`its "id" is not that of the header webhook-id`)
	}
	var err error
	if notification.Timestamp, err = parseTime(timestamp); err != nil {
		return nil, badBody(`its "timestamp" is no time as RFC 3339 has it`)
	}
	if len(notification.Data) == 0 || notification.Data[0] != '{' {
		return nil, badBody(`its "data" is no object`)
	}
	notification.IdempotencyKey = IdempotencyKey(body)
	return notification, nil
}

// readText refuses null, which the decoder would take for an empty text, and empty texts.
func readText(raw json.RawMessage, into *string) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return err
	}
	if *into == "" {
		return errors.New("empty")
	}
	return nil
}

// rfc3339 is 2026-11-21T09:51:36.518Z and the like, with one to nine digits of a second or none. What time.Parse takes beyond that
// differs from release to release: commas, more digits, hours of one digit, signs and sums of any size in an offset.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// parseTime leaves to time.Parse whether there is such a day and such a time of day.
func parseTime(text string) (time.Time, error) {
	if !rfc3339.MatchString(text) {
		return time.Time{}, errors.New("not RFC 3339")
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	return at.UTC(), err
}
