package webhooks

import (
	"encoding/base64"
	"fmt"
	"strings"
)

const (
	secretPrefix   = "whsec_"
	minSecretBytes = 24
	// HMAC would shorten a longer key.
	maxSecretBytes = 64
)

// A SecretCode names what is wrong with a secret.
type SecretCode string

// What is wrong with a secret.
const (
	// SecretPrefix says that it does not begin with whsec_.
	SecretPrefix SecretCode = "prefix"
	// SecretBase64 says that the rest is not base64 in the standard alphabet with padding.
	SecretBase64 SecretCode = "base64"
	// SecretTooShort says that it has fewer than 24 bytes.
	SecretTooShort SecretCode = "too_short"
	// SecretTooLong says that it has more than 64 bytes.
	SecretTooLong SecretCode = "too_long"
	// SecretNone says that there is no secret at all.
	SecretNone SecretCode = "none"
)

// A SecretError says that a secret cannot be used: the configuration is at fault, not a request. It repeats nothing of the
// secret.
type SecretError struct {
	Code SecretCode
	// Index is the place of the secret among those given, from 0.
	Index int

	detail string
}

func (e *SecretError) Error() string {
	if e.Code == SecretNone {
		return fmt.Sprintf("webhooks: %s (%s)", e.detail, e.Code)
	}
	return fmt.Sprintf("webhooks: secret %d: %s (%s)", e.Index+1, e.detail, e.Code)
}

// parseSecrets decodes them in their order.
func parseSecrets(texts []string) ([][]byte, error) {
	if len(texts) == 0 {
		return nil, &SecretError{
			Code:   SecretNone,
			detail: "no signing secret was given; pass the one that making the subscription showed",
		}
	}
	keys := make([][]byte, 0, len(texts))
	for index, text := range texts {
		key, fault := parseSecret(text)
		if fault != nil {
			fault.Index = index
			return nil, fault
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// parseSecret decodes one; blanks around it are no part of it.
func parseSecret(text string) ([]byte, *SecretError) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, secretPrefix) {
		return nil, &SecretError{Code: SecretPrefix, detail: "a signing secret begins with " + secretPrefix}
	}
	encoded := text[len(secretPrefix):]
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	// The decoder passes over line ends, which would make several texts one secret.
	if err != nil || strings.ContainsAny(encoded, "\r\n") {
		return nil, &SecretError{
			Code:   SecretBase64,
			detail: "what follows " + secretPrefix + " is not base64 (standard alphabet, with padding); copy all of it",
		}
	}
	if len(key) < minSecretBytes {
		detail := fmt.Sprintf("it has %d bytes, fewer than %d; copy all of it", len(key), minSecretBytes)
		return nil, &SecretError{Code: SecretTooShort, detail: detail}
	}
	if len(key) > maxSecretBytes {
		detail := fmt.Sprintf("it has %d bytes, more than %d; give one secret at a time", len(key), maxSecretBytes)
		return nil, &SecretError{Code: SecretTooLong, detail: detail}
	}
	return key, nil
}
