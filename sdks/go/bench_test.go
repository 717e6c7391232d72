package webhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

var benchSizes = []int{256, 1024, 4096, 65536}

// bodyOf gives a notification of exactly so many bytes.
func bodyOf(size int) []byte {
	const head, tail = `{"id":"evt_1","type":"domain.created","timestamp":"2023-11-14T22:13:20.125Z","data":{"text":"`, `"}}`
	return []byte(head + strings.Repeat("a", size-len(head)-len(tail)) + tail)
}

// BenchmarkHMAC is what no library can do without: the bare code over the same content.
func BenchmarkHMAC(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			key, err := parseSecrets([]string{testSecret})
			must(b, err)
			content := append([]byte("evt_1.1700000000."), bodyOf(size)...)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for i := 0; i < b.N; i++ {
				mac := hmac.New(sha256.New, key[0])
				mac.Write(content)
				mac.Sum(nil)
			}
		})
	}
}

func BenchmarkVerifySignature(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			body := bodyOf(size)
			verifier, header := verifierOf(b, testSecret), signed(b, body, testSecret)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				if err := verifier.VerifySignature(header, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	for _, size := range benchSizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			body := bodyOf(size)
			verifier, header := verifierOf(b, testSecret), signed(b, body, testSecret)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				if _, err := verifier.Verify(header, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
