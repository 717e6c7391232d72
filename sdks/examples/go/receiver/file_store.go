package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"postrider.dev/webhooks"
)

// A fileStore remembers keys in a file, so that they outlive the process: a line "+ KEY" for each that was added, "- KEY" for each
// that was removed. The file only grows, and one process at a time may use it. It shows what a webhooks.SeenStore must do; a
// service with a database takes webhooks.SQLStore instead.
type fileStore struct {
	mutex sync.Mutex
	file  *os.File
	keys  map[string]bool
	// The bytes of whole lines, and whether something is behind them: a line that was cut short, as on a full disk.
	size int64
	torn bool
}

var _ webhooks.SeenStore = (*fileStore)(nil)

func openFileStore(path string) (*fileStore, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("DATABASE must be a file that can be written: %w", err)
	}
	store := &fileStore{file: file, keys: make(map[string]bool)}
	if err := store.read(); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("DATABASE: %s cannot be used: %w", path, err)
	}
	return store, nil
}

// read passes over a last line without an end: the process that wrote it was stopped in the middle, and has told no caller of that
// key. Before the next line is written it is taken away.
func (s *fileStore) read() error {
	text, err := io.ReadAll(s.file)
	if err != nil {
		return err
	}
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	for _, line := range strings.Split(string(whole), "\n") {
		if key := strings.TrimPrefix(line, "+ "); key != line {
			s.keys[key] = true
		} else {
			delete(s.keys, strings.TrimPrefix(line, "- "))
		}
	}
	s.size, s.torn = int64(len(whole)), len(whole) < len(text)
	return nil
}

// Add writes the key down before it says that it is new.
func (s *fileStore) Add(_ context.Context, key string) (bool, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.keys[key] {
		return false, nil
	}
	if err := s.append("+ ", key); err != nil {
		return false, err
	}
	s.keys[key] = true
	return true, nil
}

// Remove forgets the key.
func (s *fileStore) Remove(_ context.Context, key string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.keys[key] {
		return nil
	}
	if err := s.append("- ", key); err != nil {
		return err
	}
	delete(s.keys, key)
	return nil
}

func (s *fileStore) append(sign, key string) error {
	if strings.ContainsAny(key, "\r\n") {
		return fmt.Errorf("a key holds a line end")
	}
	if s.torn {
		if err := s.file.Truncate(s.size); err != nil {
			return err
		}
		s.torn = false
	}
	line := sign + key + "\n"
	_, err := s.file.WriteString(line)
	if err == nil {
		err = s.file.Sync()
	}
	if err != nil {
		s.torn = true
		return err
	}
	s.size += int64(len(line))
	return nil
}
