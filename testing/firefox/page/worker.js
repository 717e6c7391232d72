// Shows every push, and then tells the page what was in it.

self.addEventListener("install", (event) => event.waitUntil(self.skipWaiting()));
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("push", (event) => event.waitUntil(show(event.data.text())));

async function show(text) {
  await self.registration.showNotification("A push", { body: text, tag: text });
  for (const client of await self.clients.matchAll()) client.postMessage(text);
}
