package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	versionPrefix   = "v1,"
	signatureLength = len(versionPrefix) + 44
)

// Sign gives the value of the header webhook-signature for a body: one signature for each secret, in their order, with a blank
// between them. It is for tests of your own receiver.
//
// The id must not be empty and hold no full stop; the timestamp counts in whole seconds and must not lie before 1970. A bad
// secret gives a *SecretError.
func Sign(secrets []string, id string, timestamp time.Time, body []byte) (string, error) {
	keys, err := parseSecrets(secrets)
	if err != nil {
		return "", err
	}
	if id == "" || strings.Contains(id, ".") {
		return "", errors.New("webhooks: an id to sign must not be empty and must not hold a full stop")
	}
	if timestamp.Unix() < 0 {
		return "", errors.New("webhooks: a timestamp to sign must not lie before 1970")
	}
	seconds := strconv.FormatInt(timestamp.Unix(), 10)
	signatures := make([]string, 0, len(keys))
	for _, key := range keys {
		signature := signatureOf(key, id, seconds, body)
		signatures = append(signatures, string(signature[:]))
	}
	return strings.Join(signatures, " "), nil
}

// SignedHeaders gives every header that Postrider sends with a body, ready to be put into a request of your own tests. It fails
// as Sign does.
func SignedHeaders(secrets []string, id string, timestamp time.Time, body []byte) (http.Header, error) {
	signature, err := Sign(secrets, id, timestamp, body)
	if err != nil {
		return nil, err
	}
	header := make(http.Header)
	header.Set("content-type", "application/json")
	header.Set(HeaderID, id)
	header.Set("event-id", id)
	header.Set(HeaderTimestamp, strconv.FormatInt(timestamp.Unix(), 10))
	header.Set(HeaderSignature, signature)
	header.Set(HeaderIdempotencyKey, IdempotencyKey(body))
	return header, nil
}

// IdempotencyKey is SHA-256 over the exact bytes of a body, in hexadecimal: what Postrider sends as idempotency-key.
func IdempotencyKey(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// signatureOf takes the timestamp as text, so that a receiver checks the very characters that arrived.
func signatureOf(key []byte, id, timestamp string, body []byte) [signatureLength]byte {
	mac := hmac.New(sha256.New, key)
	head := make([]byte, 0, 128)
	head = append(head, id...)
	head = append(head, '.')
	head = append(head, timestamp...)
	head = append(head, '.')
	mac.Write(head)
	mac.Write(body)
	var sum [sha256.Size]byte
	mac.Sum(sum[:0])

	var signature [signatureLength]byte
	copy(signature[:], versionPrefix)
	base64.StdEncoding.Encode(signature[len(versionPrefix):], sum[:])
	return signature
}
