// Receiver is an endpoint for the notifications of Postrider, complete and small enough to begin a service of your own with.
//
// Environment:
//
//	WEBHOOK_SECRETS_FILE  a file with one signing secret a line. It is read again for each request, so that a rotation needs
//	                      no restart: write the new secret below the old one, and remove the old one a day later.
//	LISTEN                host:port; port 0 takes any that is free. Default 127.0.0.1:8000.
//	DATABASE              a file that remembers what was processed. Without it a restart forgets.
//
// It prints "listening on HOST:PORT" and then one line for each request: "processed ID TYPE", "repeated ID", "refused CODE",
// "challenge answered", or "failed ID" when the work itself failed.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"postrider.dev/webhooks"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	secrets, err := openSecrets(os.Getenv("WEBHOOK_SECRETS_FILE"))
	if err != nil {
		return err
	}
	seen, err := openStore(os.Getenv("DATABASE"))
	if err != nil {
		return err
	}
	address := os.Getenv("LISTEN")
	if address == "" {
		address = "127.0.0.1:8000"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("LISTEN must be host:port, with a port that is free: %w", err)
	}
	fmt.Println("listening on", listener.Addr())
	return serve(listener, &endpoint{secrets: secrets, seen: seen, work: work, print: printLine})
}

// serve ends when the process is asked to, after the requests that are under way.
func serve(listener net.Listener, handler http.Handler) error {
	// Without limits, a client that connects and says nothing would hold a connection for ever.
	server := &http.Server{Handler: handler, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second}
	asked, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	stopped := make(chan error, 1)
	go func() {
		<-asked.Done()
		patience, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		stopped <- server.Shutdown(patience)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-stopped
}

// work stands for what your service does because of a notification. It must be quick: your endpoint has ten seconds to answer
// unless the subscription says otherwise. Better store the notification and work on it afterwards.
func work(_ context.Context, _ *webhooks.Notification) error { return nil }

func openStore(path string) (webhooks.SeenStore, error) {
	if path == "" {
		return webhooks.NewMemoryStore(), nil
	}
	return openFileStore(path)
}

func printLine(words ...any) { fmt.Println(words...) }
