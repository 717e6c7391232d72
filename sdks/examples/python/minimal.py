"""The smallest endpoint. WEBHOOK_SECRETS holds its secrets, with blanks between them; PORT is 8000 if nothing is said."""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from postrider_webhooks import MemoryStore, VerificationError, Verifier, process_once

verifier = Verifier(os.environ["WEBHOOK_SECRETS"].split())
seen = MemoryStore()


def work(notification):
    print("new", notification.type, notification.id, flush=True)


class Endpoint(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(max(0, min(int(self.headers.get("content-length", 0)), 1 << 20)))
        try:
            notification = verifier.verify(self.headers, body)
        except VerificationError as error:
            print("refused", error.code, flush=True)
            return self.answer(400 if error.code == "bad_body" else 401)
        if notification.challenge:
            print("challenge", notification.id, flush=True)
            return self.answer(200, notification.challenge.encode())
        if not process_once(seen, notification, work):
            print("seen", notification.type, notification.id, flush=True)
        self.answer(200)

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8000"))), Endpoint)
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
