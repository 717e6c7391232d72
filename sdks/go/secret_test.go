package webhooks

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
)

func TestWhatIsWrongWithASecretIsSaid(t *testing.T) {
	good := secretOf('a')
	ofBytes := func(count int) string {
		return secretPrefix + base64.StdEncoding.EncodeToString(make([]byte, count))
	}
	for text, want := range map[string]SecretCode{
		"":                                 SecretPrefix,
		strings.ToUpper(good):              SecretPrefix,
		strings.TrimPrefix(good, "whsec_"): SecretPrefix,
		ofBytes(0):                         SecretTooShort,
		ofBytes(23):                        SecretTooShort,
		ofBytes(65):                        SecretTooLong,
		strings.TrimRight(good, "="):       SecretBase64,
		good[:20] + "\n" + good[20:]:       SecretBase64,
		good[:20] + "\r\n" + good[20:]:     SecretBase64,
		good[:20] + " " + good[20:]:        SecretBase64,
		good[:20] + "-" + good[21:]:        SecretBase64,
		strings.Replace(ofBytes(32), "A=", "B=", 1): SecretBase64,
		good + good: SecretBase64,
	} {
		_, err := NewVerifier([]string{good, text})
		var fault *SecretError
		if !errors.As(err, &fault) || fault.Code != want || fault.Index != 1 {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestBothLimitsAndBlanksAroundASecretAreTaken(t *testing.T) {
	for _, count := range []int{24, 64} {
		text := secretPrefix + base64.StdEncoding.EncodeToString(make([]byte, count))
		_, err := NewVerifier([]string{" " + text + "\r\n"})
		must(t, err)
	}
}
