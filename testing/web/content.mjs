// Brings something onto every page: delivered, failed, given up, waiting, paused, a job, a quota request, entries of the audit log.
// Writes what it made into the file that CONTENT names.

import { writeFileSync } from "node:fs";
import { ask, keys, operate, reseller, until, urls } from "./lib/world.mjs";

/** Text of strangers that would do harm where it is not shown as text. */
export const HOSTILE = `<script>document.title="harmed"</script><img src=x onerror=alert(1)><b hx-get="/x" hx-trigger="load">"'&amp;\u202e gnp`;

const example = new Map((await ask("GET", `${urls.ingest}/event-types`, { key: keys.ingest })).eventTypes.map((type) => [type.name, type.example]));

async function subscribe(path, eventTypes, description) {
  const subscription = await ask("POST", `${urls.portal}/subscriptions`, {
    key: keys.reseller,
    body: { url: `${urls.receiver}${path}`, eventTypes, email: "web@example.org", description, timeoutMillis: 1000 },
  });
  await until(`the endpoint ${path} is verified`, async () => {
    const found = await ask("GET", `${urls.portal}/subscriptions/${subscription.id}`, { key: keys.reseller });
    return found.state === "ACTIVE";
  });
  return subscription.id;
}

const event = (type, eventId, data = example.get(type)) =>
  ask("POST", `${urls.ingest}/events`, { key: keys.ingest, body: { type, resellerId: reseller, eventId, data } });
const push = (pushKey, more = {}) =>
  ask("POST", `${urls.ingest}/push`, { key: keys.ingest, body: { platform: "IOS", messagePrototypeKey: "Hello", pushKey, message: `Hello ${pushKey}!`, ...more } });


const made = {};
made.subscription = await subscribe("/well", ["domain.created"], "what arrives");
made.failing = await subscribe("/failing", ["domain.deleted"], "what fails");
made.held = await subscribe("/held", ["contact.updated"], HOSTILE.slice(0, 120));
await ask("PUT", `${urls.receiver}/_control`, {
  body: {
    rules: [
      { match: { path: "/failing", id: { prefix: "web-refused-" } }, status: 404, body: HOSTILE },
      { match: { path: "/failing" }, status: 500, body: `out of order ${HOSTILE}` },
    ],
  },
});
await ask("PUT", `${urls.swrve}/script`, {
  body: [{ match: { user: { prefix: "web-invalid-" } }, status: 400, message: `Invalid push_key ${HOSTILE}`, delayMillis: 10 }],
});

const some = (count, make) => Promise.all(Array.from({ length: count }, (_, number) => make(number + 1)));
made.delivered = (await some(8, (n) => event("domain.created", `web-created-${n}`)))[0].id;
await some(6, (n) => event("domain.deleted", `web-refused-${n}`));
await some(4, (n) => event("domain.deleted", `web-broken-${n}`));
made.push = (await some(8, (n) => push(`web-device-${n}`)))[0].id;
await some(5, (n) => push(`web-invalid-${n}`));
await some(3, (n) => push(`web-unknown-${n}`, { messagePrototypeKey: n === 1 ? HOSTILE.slice(0, 60) : "No such prototype" }));
await push("web-later", { cronExpression: `0 0 12 1 1 ? ${new Date().getFullYear() + 1}` });

await operate("POST", `/subscriptions/${made.held}/pause`, { note: `their release ${HOSTILE}` });
await some(5, (n) => event("contact.updated", `web-held-${n}`));
await ask("POST", `${urls.portal}/subscriptions/${made.subscription}/quota-requests`, {
  key: keys.reseller,
  body: { dailyQuota: 2_000_000, reason: `We take over another registrar. ${HOSTILE}` },
});

const groups = await until("the dead letters of both lanes are there", async () => {
  const { items } = await operate("GET", "/dead-letters/groups");
  const count = (lane) => items.filter((group) => group.lane === lane).reduce((sum, group) => sum + group.count, 0);
  return count("push") >= 8 && count("reseller") >= 10 && items;
}, 90);
made.groups = groups.length;
const { items: letters } = await operate("GET", "/dead-letters?lane=reseller");
made.deadLetter = letters[0].id;
const { items: pushLetters } = await operate("GET", "/dead-letters?lane=push");
made.pushDeadLetter = pushLetters[0].id;

// A job of the past: discards one of the unknown prototypes.
const job = await operate("POST", "/dead-letters/jobs", { action: "discard", ids: [pushLetters.at(-1).id], note: `a device of ours ${HOSTILE}` });
made.job = job.id;
await until("the job has ended", async () => (await operate("GET", `/dead-letters/jobs/${job.id}`)).status === "COMPLETED");

writeFileSync(process.env.CONTENT, JSON.stringify(made));
