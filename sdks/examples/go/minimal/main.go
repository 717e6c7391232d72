// The least that an endpoint needs: WEBHOOK_SECRETS holds its secrets, with blanks between them; PORT is 8000 if nothing is said.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"

	"postrider.dev/webhooks"
)

func main() {
	verifier, err := webhooks.NewVerifier(strings.Fields(os.Getenv("WEBHOOK_SECRETS")))
	if err != nil {
		log.Fatal(err)
	}
	seen := webhooks.NewMemoryStore()
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, "cannot read the body", http.StatusBadRequest)
			return
		}
		notification, err := verifier.Verify(r.Header, body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		if challenge, ok := notification.Challenge(); ok {
			fmt.Fprint(w, challenge)
		} else if isNew, _ := seen.Add(r.Context(), notification.ID); isNew {
			fmt.Println(notification.ID, notification.Type, string(notification.Data))
		}
	})
	port := os.Getenv("PORT")
	if port == "" {
		port = "8000"
	}
	fmt.Println("listening on http://127.0.0.1:" + port)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, nil))
}
