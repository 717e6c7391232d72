// Journeys over the dashboard of a reseller: what fails and is sent again, many at once, secrets, a signature that is not right; without a
// pointer, without JavaScript, in other zones, with text of strangers.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { close, open, overflow, violations } from "./lib/browser.mjs";
import { entered, pages } from "./lib/dashboard.mjs";
import { ask, content, keys, operate, reseller, until, urls } from "./lib/world.mjs";

after(close);

const examples = async () => new Map((await ask("GET", `${urls.ingest}/event-types`, { key: keys.ingest })).eventTypes.map((type) => [type.name, type.example]));
/** Asks the reseller API, once more when it wants a pause. */
const portal = async (method, path, body) =>
  (await until(`${method} ${path}`, async () => [await ask(method, `${urls.portal}${path}`, { key: keys.reseller, body })]))[0];
const event = async (type, eventId) =>
  ask("POST", `${urls.ingest}/events`, { key: keys.ingest, body: { type, resellerId: reseller, eventId, data: (await examples()).get(type) } });
/** The notification of an event, once it is like this. */
const became = (subscription, eventId, statuses) =>
  until(`${eventId} is ${statuses}`, async () => {
    const { items } = await portal("GET", `/subscriptions/${subscription}/notifications?eventId=${eventId}`);
    return items.find(({ status }) => statuses.includes(status));
  }, 90);
/** An endpoint of this test, which answers challenges, and everything else as it is told to. */
async function endpoint() {
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
  told.url = `http://127.0.0.1:${server.address().port}/hooks`;
  return told;
}
async function subscribe(url, eventType) {
  const { id } = await portal("POST", "/subscriptions", { url, eventTypes: [eventType], email: "web@example.org", description: "a journey", timeoutMillis: 1000 });
  await until(`the endpoint ${url} is verified`, async () => (await portal("GET", `/subscriptions/${id}`)).state === "ACTIVE", 90);
  return id;
}

test("what is given up is told step by step, and is delivered when it is sent again", async () => {
  const hook = await endpoint();
  const id = await subscribe(hook.url, "domain.restored");
  Object.assign(hook, { status: 500, body: "out of order" });
  await event("domain.restored", "journey-down-1");
  const { id: notification } = await became(id, "journey-down-1", ["GIVEN_UP"]);
  const page = await entered();
  await page.see(`/app/s/${id}/deliveries?status=FAILED,GIVEN_UP`);
  await page.locator(`#n-${notification} a`).first().click();
  await page.locator(".verdict.bad").waitFor();
  assert.match(await page.locator(".timeline li").first().textContent(), /was accepted for this subscription/);
  assert.ok((await page.locator(".timeline li a").count()) >= 2, "two attempts");
  await page.getByRole("heading", { name: "What happens next" }).waitFor();
  assert.match(await page.locator("#answer").textContent(), /out of order/);
  hook.status = 200;
  await page.getByRole("button", { name: "Resend", exact: true }).click();
  await page.locator(".verdict.ok").waitFor({ timeout: 60_000 });
  assert.deepEqual(await violations(page), []);
  await page.end();
  await portal("DELETE", `/subscriptions/${id}`);
  hook.close();
});

test("all that match are counted and then sent again, and several that are selected", async () => {
  const id = await subscribe(`${urls.receiver}/journey-many`, "host.updated");
  const names = Array.from({ length: 12 }, (_, number) => `journey-many-${number}`);
  for (const name of names) await event("host.updated", name);
  for (const name of names) await became(id, name, ["SENT"]);
  const page = await entered();
  await page.see(`/app/s/${id}/deliveries?status=SENT`);
  await page.getByRole("link", { name: "Send all again that match" }).click();
  await page.getByRole("button", { name: "Count" }).click();
  await page.getByText("12 match").waitFor();
  assert.deepEqual(await violations(page), []);
  await page.getByRole("button", { name: "Send 12 again" }).click();
  await page.getByText("12 are sent again").waitFor();
  const twice = async () => {
    const { items } = await portal("GET", `/subscriptions/${id}/notifications?limit=50`);
    return items.every(({ status, attempts }) => status === "SENT" && attempts === 2);
  };
  await until("all were sent twice", twice, 90);
  await page.see(`/app/s/${id}/deliveries`);
  const boxes = page.locator("[data-check]");
  await boxes.nth(0).check();
  await boxes.nth(1).check();
  await page.getByRole("button", { name: "Send them again" }).click();
  await page.getByText("2 notifications are sent again").waitFor();
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download as CSV" }).click()]);
  assert.equal(file.suggestedFilename(), "deliveries.csv");
  await page.end();
  await portal("DELETE", `/subscriptions/${id}`);
});

test("what is over the quota waits for its day, more is asked for, and when it is granted all goes", async () => {
  const id = await subscribe(`${urls.receiver}/journey-quota`, "contact.deleted");
  await operate("PUT", `/subscriptions/${id}/limits`, { dailyQuota: 2, requestsPerSecond: null, note: "a journey" });
  const names = Array.from({ length: 5 }, (_, number) => `journey-quota-${number}`);
  for (const name of names) await event("contact.deleted", name);
  const count = async (status) => {
    const { items } = await portal("GET", `/subscriptions/${id}/notifications?status=${status}`);
    return items.length;
  };
  await until("two are sent and three wait", async () => (await count("SENT")) === 2 && (await count("SCHEDULED")) === 3, 90);
  const page = await entered();
  await page.see(`/app/s/${id}/scheduled`);
  await page.getByText("wait for a day whose quota has room").first().waitFor();
  assert.equal(await page.locator("tbody[data-rows] tr").count(), 3);
  assert.deepEqual(await violations(page), []);
  await page.see(`/app/s/${id}/quota`);
  await page.getByText("of today are used up").waitFor();
  await page.fill("#dailyQuota", "10");
  await page.fill("#reason", "More is coming.");
  await page.getByRole("button", { name: "Ask for it" }).click();
  await page.getByRole("heading", { name: "You have asked for more" }).waitFor();
  const { openRequest } = await portal("GET", `/subscriptions/${id}/quota`);
  await operate("POST", `/quota-requests/${openRequest.id}/approve`, { granted: 10 });
  await until("all are sent", async () => (await count("SENT")) === 5, 90);
  await page.see(`/app/s/${id}/scheduled`);
  await page.getByText("Nothing waits.").first().waitFor();
  await page.end();
  await portal("DELETE", `/subscriptions/${id}`);
});

test("an endpoint that was gone is activated again, and a replay sends what it missed", async () => {
  const hook = await endpoint();
  const id = await subscribe(hook.url, "contact.created");
  Object.assign(hook, { status: 410, body: "gone" });
  await event("contact.created", "journey-gone-1");
  await until("the subscription is deactivated", async () => (await portal("GET", `/subscriptions/${id}`)).state === "DEACTIVATED", 90);
  const page = await entered({ timeZone: "Europe/Riga" });
  await page.getByText(/Deactivated since/).first().waitFor();
  Object.assign(hook, { status: 200, body: "" });
  await page.see(`/app/s/${id}/settings`);
  await page.getByRole("button", { name: "Activate" }).click();
  await until("it is active again", async () => (await portal("GET", `/subscriptions/${id}`)).state === "ACTIVE", 90);
  await page.see(`/app/s/${id}/replays/new`);
  await page.fill("#since", new Date(Date.now() - 600_000).toLocaleString("sv-SE", { timeZone: "Europe/Riga" }).slice(0, 16).replace(" ", "T"));
  await page.getByRole("button", { name: "Count first" }).click();
  await page.getByText("1 would be sent again.").waitFor();
  assert.deepEqual(await violations(page), []);
  await page.getByRole("button", { name: "Start the replay" }).click();
  await page.getByText("The replay has begun").waitFor();
  await became(id, "journey-gone-1", ["SENT"]);
  await page.end();
  await portal("DELETE", `/subscriptions/${id}`);
  hook.close();
});

test("a secret is rotated, shown and hidden again, and a signature of another one is explained", async () => {
  const { subscription } = content();
  const page = await entered({ authTime: new Date().toISOString() });
  await page.see(`/app/s/${subscription}/secrets`);
  await page.getByRole("link", { name: "New secret…" }).click();
  await page.getByRole("button", { name: "Make it" }).click();
  assert.match(await page.locator("#the-secret").textContent(), /^whsec_/);
  assert.deepEqual(await violations(page), []);
  await page.getByRole("link", { name: "I have stored it" }).click();
  await page.getByRole("button", { name: "Show for 30 s: secret 1" }).click();
  assert.match(await page.locator("#the-secret").textContent(), /^whsec_/);
  await page.getByRole("link", { name: "Hide it" }).click();
  assert.doesNotMatch(await page.content(), /whsec_[A-Za-z0-9+/]{20}/);
  await page.see("/app/tools/signature");
  await page.selectOption("#subscription", subscription);
  const now = Math.floor(Date.now() / 1000);
  await page.fill("#headers", `webhook-id: evt_1\nwebhook-timestamp: ${now}\nwebhook-signature: v1,${btoa("0".repeat(32))}`);
  await page.fill("#body", "{}");
  await page.getByRole("button", { name: "Check it" }).click();
  await page.locator(".verdict.bad").waitFor();
  await page.end();
  // By a link whose person signed in long ago, none is shown.
  const late = await entered({ authTime: new Date(Date.now() - 3_600_000).toISOString() });
  late.ear.expect(/^4\d\d for /, /status of 4\d\d/);
  await late.see(`/app/s/${subscription}/secrets`);
  await late.getByRole("button", { name: "Show for 30 s: secret 1" }).click();
  await late.locator("h1").waitFor();
  assert.doesNotMatch(await late.content(), /whsec_[A-Za-z0-9+/]{20}/);
  await late.end();
});

test("keys lead to places and rows, and a subscription is paused without a pointer", async () => {
  const page = await entered();
  const links = await page.locator('nav[aria-label="Places"] a[data-key]').evaluateAll((all) => all.map((link) => [link.getAttribute("href"), link.dataset.key]));
  assert.equal(new Set(links.map(([, key]) => key)).size, links.length, "a key leads to two places");
  for (const [href, key] of links) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await page.waitForURL((url) => url.pathname === href);
    await page.locator("h1").waitFor();
  }
  await page.see("/app/deliveries");
  await page.keyboard.press("j");
  const row = await page.evaluate(() => document.querySelector("tr[data-at]").dataset.href);
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.pathname === row);
  await page.keyboard.press("r");
  const asked = page.getByRole("dialog", { name: "Resend?" });
  await asked.getByRole("button", { name: "Resend", exact: true }).waitFor();
  await page.keyboard.press("Escape");
  await asked.waitFor({ state: "hidden" });
  await page.keyboard.press("?");
  await page.getByText("resend what the page is about").waitFor();
  await page.getByRole("link", { name: "All preferences" }).click();
  await page.waitForURL(`${urls.dashboard}/app/preferences`);
  const { subscription } = content();
  await page.see(`/app/s/${subscription}/settings`);
  await page.getByRole("button", { name: "Pause", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("You have paused it").waitFor();
  await page.getByRole("button", { name: "Resume", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Pause", exact: true }).waitFor();
  await page.end();
});

test("without JavaScript a visit goes on: lists, a filter, and an act", async () => {
  const { failing } = content();
  const first = await entered();
  const cookies = await first.context().cookies();
  await first.end();
  const context = await (await open()).newContext({ javaScriptEnabled: false });
  await context.addCookies(cookies);
  const page = await context.newPage();
  await page.goto(`${urls.dashboard}/app/s/${failing}/deliveries`);
  await page.selectOption("#status", "FAILED,GIVEN_UP");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.waitForURL(/status=FAILED%2CGIVEN_UP/);
  await page.locator("tbody tr a").first().click();
  await page.waitForURL(/\/app\/n\//);
  await page.getByRole("button", { name: "Resend", exact: true }).click();
  await page.locator(".flash", { hasText: "It is sent again" }).waitFor();
  await page.goto(`${urls.dashboard}/app/s/${failing}/replays/new`);
  await page.fill("#since", new Date(Date.now() - 3_600_000).toISOString().slice(0, 16));
  await page.getByRole("button", { name: "Count first" }).click();
  await page.getByText("events were examined").waitFor();
  await context.close();
});

for (const zone of ["Europe/Riga", "Asia/Calcutta", "America/Los_Angeles"]) {
  test(`times are those of ${zone}`, async () => {
    const page = await entered({ timeZone: zone }, { timezoneId: zone });
    await page.see("/app/deliveries");
    const times = await page.locator("main time[datetime]").evaluateAll((all) => all.map((element) => [element.dateTime, element.title]));
    assert.ok(times.length > 0);
    for (const [at, title] of times) {
      const clock = new Date(at).toLocaleTimeString("sv-SE", { timeZone: zone });
      assert.ok(title.includes(`${clock} ${zone}`), `${title} is not ${clock} ${zone}`);
    }
    await page.end();
  });
}

test("text of strangers is text on every page, and every page fits a wide screen", async (t) => {
  const page = await entered({}, { viewport: { width: 1440, height: 900 } });
  page.ear.expect(/^404 for /, /status of 404/);
  for (const path of await pages()) {
    await t.test(path, async () => {
      await page.see(path);
      assert.doesNotMatch(await page.title(), /harmed/);
      assert.equal(await page.locator("main img, iframe, object, main [hx-get], main script").count(), 0);
      assert.equal(await page.evaluate(() => /[\u202a-\u202e\u2066-\u2069]/.test(document.querySelector("main").innerText)), false);
      assert.deepEqual(await overflow(page), []);
    });
  }
  await page.end();
});
