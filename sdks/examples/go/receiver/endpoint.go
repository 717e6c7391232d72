package main

import (
	"context"
	"errors"
	"io"
	"net/http"

	"postrider.dev/webhooks"
)

// maxBodyBytes is far more than a notification has; it keeps a stranger from filling the memory.
const maxBodyBytes = 4 << 20

// An endpoint answers what Postrider sends.
type endpoint struct {
	secrets *secretsFile
	seen    webhooks.SeenStore
	work    func(context.Context, *webhooks.Notification) error
	print   func(words ...any)
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		e.refuse(w, http.StatusMethodNotAllowed, "method")
		return
	}
	// The bytes as they came: nothing may parse them before the signature is checked.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		e.refuse(w, http.StatusRequestEntityTooLarge, "unreadable_body")
		return
	}
	notification, err := e.secrets.verifier().Verify(r.Header, body)
	var refusal *webhooks.Error
	if errors.As(err, &refusal) {
		status := http.StatusUnauthorized
		if refusal.Code == webhooks.CodeBadBody {
			status = http.StatusBadRequest
		}
		e.refuse(w, status, string(refusal.Code))
		return
	}
	if challenge, ok := notification.Challenge(); ok {
		_, _ = io.WriteString(w, challenge)
		e.print("challenge answered")
		return
	}
	e.process(w, r, notification)
}

func (e *endpoint) process(w http.ResponseWriter, r *http.Request, notification *webhooks.Notification) {
	outcome, err := webhooks.ProcessOnce(r.Context(), e.seen, notification, e.work)
	switch outcome {
	case webhooks.Processed:
		e.print("processed", notification.ID, notification.Type)
	case webhooks.Repeated:
		e.print("repeated", notification.ID)
	default:
		e.print("failed", notification.ID, err)
		// 5xx and not 4xx: the notification comes again.
		w.WriteHeader(http.StatusInternalServerError)
	}
}

func (e *endpoint) refuse(w http.ResponseWriter, status int, code string) {
	// The first bytes of an answer can be read with the attempt in the reseller API: say why.
	http.Error(w, code, status)
	e.print("refused", code)
}
