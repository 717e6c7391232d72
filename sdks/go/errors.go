package webhooks

import "fmt"

// A Code names why a notification was refused. Codes are stable: decide by them, log them, count them.
type Code string

// Why a notification was refused. The first three say that the request is malformed; all but the last are found before the
// body is parsed, and none of them says anything about who sent it.
const (
	// CodeMissingHeader says that a header is missing or empty; Error.Header names it.
	CodeMissingHeader Code = "missing_header"
	// CodeAmbiguousID says that webhook-id holds a full stop: it would be unclear what was signed.
	CodeAmbiguousID Code = "ambiguous_id"
	// CodeBadTimestamp says that webhook-timestamp is not a whole number of seconds since 1970.
	CodeBadTimestamp Code = "bad_timestamp"
	// CodeTooOld says that it was signed before the tolerance began: perhaps a recorded request was sent again.
	CodeTooOld Code = "too_old"
	// CodeTooNew says that it was signed after the tolerance ends: one of both clocks is wrong.
	CodeTooNew Code = "too_new"
	// CodeNoMatch says that no signature was made with a known secret for exactly these bytes.
	CodeNoMatch Code = "no_match"
	// CodeBadBody says that the signature is right but the body is no notification.
	CodeBadBody Code = "bad_body"
)

// An Error says why a notification was refused. It repeats nothing of a secret, a signature or a body.
//
// errors.Is(err, ErrTooOld) and its like tell them apart, errors.As gives the whole of it.
type Error struct {
	Code Code
	// Header is the missing one when Code is CodeMissingHeader, in lower case.
	Header string

	detail string
}

// One error for each Code, to be compared with by errors.Is.
var (
	ErrMissingHeader = &Error{Code: CodeMissingHeader, detail: "a header is missing"}
	ErrAmbiguousID   = &Error{Code: CodeAmbiguousID, detail: "the header webhook-id holds a full stop"}
	ErrBadTimestamp  = &Error{
		Code:   CodeBadTimestamp,
		detail: "the header webhook-timestamp is not a whole number of seconds since 1970",
	}
	ErrTooOld = &Error{
		Code:   CodeTooOld,
		detail: "it was signed longer ago than tolerated; if this happens to new ones, set this machine's clock",
	}
	ErrTooNew = &Error{
		Code:   CodeTooNew,
		detail: "it was signed further in the future than tolerated; set this machine's clock",
	}
	ErrNoMatch = &Error{
		Code: CodeNoMatch,
		detail: "no signature was made with a known secret for this body; compare the secret, and pass the body " +
			"on as it arrived, before anything parses it",
	}
	ErrBadBody = &Error{Code: CodeBadBody, detail: "the body is no notification"}
)

func (e *Error) Error() string {
	return fmt.Sprintf("webhooks: %s (%s)", e.detail, e.Code)
}

// Is makes errors.Is compare by Code, and by Header where the target names one.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code && (other.Header == "" || other.Header == e.Header)
}

func missingHeader(name string) *Error {
	return &Error{
		Code:   CodeMissingHeader,
		Header: name,
		detail: fmt.Sprintf("the header %s is missing or empty", name),
	}
}

func badBody(detail string) *Error {
	return &Error{Code: CodeBadBody, detail: "the body is no notification: " + detail}
}
