package main

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"

	"postrider.dev/webhooks"
)

// A secretsFile gives a verifier that knows the secrets which the file holds at present.
type secretsFile struct {
	path string

	mutex   sync.Mutex
	text    []byte
	current *webhooks.Verifier
}

// openSecrets fails unless the file holds at least one secret, and good ones only: a service that refuses everything should not
// even start.
func openSecrets(path string) (*secretsFile, error) {
	if path == "" {
		return nil, errors.New("set WEBHOOK_SECRETS_FILE to a file with one signing secret a line")
	}
	secrets := &secretsFile{path: path}
	if err := secrets.reload(); err != nil {
		return nil, fmt.Errorf("WEBHOOK_SECRETS_FILE: %w", err)
	}
	return secrets, nil
}

// verifier reads the file again. While it cannot be used, for instance because it is just being written, what it held before
// counts.
func (s *secretsFile) verifier() *webhooks.Verifier {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := s.reload(); err != nil {
		log.Printf("the secrets stay as they were: %v", err)
	}
	return s.current
}

func (s *secretsFile) reload() error {
	text, err := os.ReadFile(s.path)
	if err != nil {
		return err
	}
	if s.current != nil && bytes.Equal(text, s.text) {
		return nil
	}
	verifier, err := webhooks.NewVerifier(strings.Fields(string(text)))
	if err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	s.text, s.current = text, verifier
	return nil
}
