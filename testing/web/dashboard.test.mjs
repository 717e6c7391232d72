// Journeys over the dashboard of a reseller: what fails and is sent again, many at once, secrets, a signature that is not right; in
// other zones, with text of strangers.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, overflow, violations } from "./lib/browser.mjs";
import { entered, pages } from "./lib/dashboard.mjs";
import { became, endpoint, event, portal, subscribe, unsubscribe } from "./lib/deliveries.mjs";
import { content, operate, until, urls } from "./lib/world.mjs";

after(close);

for (const [how, javaScriptEnabled] of [["", true], [", without JavaScript", false]]) {
  test(`what is given up is told step by step, and is delivered when it is sent again${how}`, async () => {
    const hook = await endpoint();
    const id = await subscribe(hook.url, "domain.restored");
    Object.assign(hook, { status: 500, body: "out of order" });
    const name = `journey-down-${Date.now()}`;
    await event("domain.restored", name);
    const { id: notification } = await became(id, name, ["GIVEN_UP"]);
    const page = await entered({}, { javaScriptEnabled });
    await page.see(`/app/s/${id}/deliveries?status=FAILED,GIVEN_UP`);
    await page.locator(`#n-${notification} a`).first().click();
    await page.locator(".verdict.bad").waitFor();
    assert.match(await page.locator(".timeline li").first().textContent(), /was accepted for this subscription/);
    assert.ok((await page.locator(".timeline li a").count()) >= 2, "two attempts");
    await page.getByRole("heading", { name: "What happens next" }).waitFor();
    assert.match(await page.locator("#answer").textContent(), /out of order/);
    hook.status = 200;
    await page.getByRole("button", { name: "Resend", exact: true }).click();
    await until("the page tells that it is delivered", async () => {
      if (!javaScriptEnabled) await page.reload();
      return page.locator(".verdict.ok").isVisible();
    }, 60);
    if (javaScriptEnabled) assert.deepEqual(await violations(page), []);
    await page.end();
    await unsubscribe(id);
    hook.close();
  });
}

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
  await unsubscribe(id);
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
  await unsubscribe(id);
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
  await page.see(`/app/s/${id}/verify`);
  await page.getByRole("link", { name: "a replay" }).click();
  // The form begins before the endpoint was gone.
  await page.locator("#since").waitFor();
  await page.getByRole("button", { name: "Count first" }).click();
  await page.getByText("1 would be sent again.").waitFor();
  assert.deepEqual(await violations(page), []);
  await page.getByRole("button", { name: "Start the replay" }).click();
  await page.getByText("The replay has begun").waitFor();
  await became(id, "journey-gone-1", ["SENT"]);
  await page.end();
  await unsubscribe(id);
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
  await late.see(`/app/s/${subscription}/secrets`);
  assert.ok(await late.getByRole("button", { name: "Show for 30 s: secret 1" }).isDisabled());
  await late.getByText("needs a sign-in of the last 15 minutes").waitFor();
  await late.end();
});

test("keys lead to places and rows", async () => {
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
  await page.end();
});

test("the page Live says since when it listens, and shows the test event that it sent", async () => {
  const page = await entered();
  await page.see("/app/live");
  const said = page.locator("[data-listens]");
  await said.getByText(/It listens since \d\d:\d\d:\d\d\./).waitFor();
  await page.keyboard.press("L");
  await said.getByText("It does not listen now.").waitFor();
  await page.keyboard.press("L");
  await said.getByText(/It listens since/).waitFor();
  await page.getByText("Send a test event", { exact: true }).click();
  await page.getByLabel("Event type", { exact: true }).fill("no-such-type");
  page.ear.expect(/^422 for /, /status of 422/);
  await page.getByRole("button", { name: "Send it" }).click();
  await page.getByRole("heading", { name: "Nothing was sent" }).waitFor();
  await page.end();
});

test("the page Live is told of changes, and stands still while it is paused", async () => {
  const hook = await endpoint();
  const id = await subscribe(hook.url, "domain.restored");
  const page = await entered();
  await page.see("/app/live");
  await page.locator("html[data-told]").waitFor({ state: "attached" });
  await page.getByRole("button", { name: "Pause", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("It is paused since").first().waitFor();
  const name = `paused-${Date.now()}`;
  await event("domain.restored", name);
  const { id: notification } = await became(id, name, ["SENT"]);
  const shown = page.locator(`a.newer, #n-${notification}`);
  assert.equal(await shown.count(), 0);
  await page.keyboard.press("Enter");
  await shown.first().waitFor();
  await page.getByText("It listens since").first().waitFor();
  await page.end();
  await unsubscribe(id);
  hook.close();
});

test("which filter leaves out most is told when a page is opened, and stays while it is live", async () => {
  const page = await entered();
  const ticks = [];
  page.on("response", (answer) => "x-postrider-tick" in answer.request().headers() && ticks.push(answer.text().catch(() => "")));
  // Nothing is ever delivered there.
  await page.see(`/app/live?subscription=${content().failing}&status=SENT`);
  const told = page.locator("#leaving-out");
  await told.getByText("Status", { exact: true }).waitFor();
  await until("the page to ask for itself", () => ticks.length > 1);
  assert.match(await ticks[0], /id="leaving-out" data-stays/);
  assert.equal(await told.getByText("Status", { exact: true }).count(), 1);
  assert.equal(await told.getByRole("link", { name: "Clear Status" }).count(), 1);
  await page.end();
});

test("a range of time is chosen by dragging over the bars, and not by a click or with Esc", async () => {
  const page = await entered();
  await page.see("/app/deliveries?status=SENT&hours=24");
  const before = page.url();
  const { x, y, width, height } = await page.locator("[data-range] svg").boundingBox();
  const drag = async () => {
    await page.mouse.move(x + width - 2, y + height / 2);
    await page.mouse.down();
    await page.mouse.move(x + width / 2, y + height / 2, { steps: 3 });
    await page.locator("[data-range] .chosen").waitFor();
  };
  await page.mouse.click(x + width / 2, y + height / 2);
  await drag();
  await page.keyboard.press("Escape");
  await page.locator("[data-range] .chosen").waitFor({ state: "detached" });
  await page.mouse.up();
  assert.equal(page.url(), before);
  await drag();
  await page.mouse.up();
  await page.waitForURL(/since=/);
  const asked = new URL(page.url()).searchParams;
  assert.deepEqual([asked.get("status"), asked.get("hours")], ["SENT", null]);
  const [since, until] = ["since", "until"].map((name) => Date.parse(asked.get(name)));
  assert.ok(since < Date.now() - 72 * 3_600_000 && until >= Date.now() - 60_000, page.url());
  const field = await page.locator("#since").inputValue();
  assert.equal(field, new Date(since).toLocaleString("sv-SE", { timeZone: "Europe/Riga" }).slice(0, 16).replace(" ", "T"));
  await page.end();
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
