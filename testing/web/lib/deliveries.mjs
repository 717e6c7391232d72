// What happens to notifications: endpoints that answer as they are told to, events for them, and what becomes of those.

import { once } from "node:events";
import { createServer } from "node:http";
import { ask, keys, operate, reseller, until, urls } from "./world.mjs";

/** Asks the reseller API, once more when it wants a pause. */
export const portal = async (method, path, body) =>
  (await until(`${method} ${path}`, async () => [await ask(method, `${urls.portal}${path}`, { key: keys.reseller, body })]))[0];

let examples;
/** Hands in an event with the example of its type. */
export async function event(type, eventId) {
  examples ??= new Map((await ask("GET", `${urls.ingest}/event-types`, { key: keys.ingest })).eventTypes.map(({ name, example }) => [name, example]));
  return ask("POST", `${urls.ingest}/events`, { key: keys.ingest, body: { type, resellerId: reseller, eventId, data: examples.get(type) } });
}

/** The notification of an event, once it is like this. */
export const became = (subscription, eventId, statuses) =>
  until(`${eventId} is ${statuses}`, async () => {
    const { items } = await portal("GET", `/subscriptions/${subscription}/notifications?eventId=${eventId}`);
    return items.find(({ status }) => statuses.includes(status));
  }, 90);

/** An endpoint of this test, which answers challenges, and everything else as it is told to. */
export async function endpoint() {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const { challenge } = JSON.parse(body).data ?? {};
    if (challenge) return response.end(challenge);
    response.writeHead(told.status).end(told.body);
  });
  const told = { status: 200, body: "", close: () => (server.closeAllConnections(), server.close()) };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // A test that fails before it closes it ends all the same.
  server.unref();
  told.url = `http://127.0.0.1:${server.address().port}/hooks`;
  return told;
}

/** Removes a subscription: nothing is sent to its endpoint any more. */
export const unsubscribe = (id) => portal("DELETE", `/subscriptions/${id}`);
/** The identifier of a new subscription to events of this type, once its endpoint is verified. */
export async function subscribe(url, eventType) {
  const { id } = await portal("POST", "/subscriptions", { url, eventTypes: [eventType], email: "web@example.org", description: "a journey", timeoutMillis: 1000 });
  await until(`the endpoint ${url} is verified`, async () => (await portal("GET", `/subscriptions/${id}`)).state === "ACTIVE", 90);
  return id;
}

/** An endpoint that refuses everything, with so many notifications that have failed there. */
export async function failing(name, count) {
  const path = `${name}-${Date.now()}`;
  const id = await subscribe(`${urls.receiver}/${path}`, "host.created");
  await ask("PUT", `${urls.receiver}/_control`, { body: { rules: [{ match: { path: `/${path}` }, status: 404, body: "not yet" }] } });
  const query = `subscription=${id}`;
  let handed = 0;
  const happens = () => event("host.created", `${path}-${(handed += 1)}`);
  while (handed < count) await happens();
  const open = async () => (await operate("GET", `/dead-letters?${query}`)).items;
  await until("they are dead letters", async () => (await open()).length === count);
  return { id, query, happens, open, forget: () => unsubscribe(id) };
}
/** All that refuse take everything again. */
export const mended = () => ask("PUT", `${urls.receiver}/_control`, { body: { rules: [] } });
/** The same, whose endpoint works again. */
export async function failed(name, count) {
  const those = await failing(name, count);
  await mended();
  return those;
}
