// A page that follows what happens, and leaves alone what its viewer is at.

import assert from "node:assert/strict";
import { after, afterEach, test } from "node:test";
import { close, refusal, signedIn } from "./lib/browser.mjs";
import { failed } from "./lib/deliveries.mjs";
import { operate, until, urls } from "./lib/world.mjs";

after(close);

const resume = () => operate("POST", "/lanes/reseller/resume", { note: "the test is over" }).catch(() => undefined);
afterEach(resume);
const pause = (note) => operate("POST", "/lanes/reseller/pause", { note });

/** Answers to ticks on this page, as they come. */
function ticks(page) {
  const heard = [];
  page.on("response", (answer) => answer.request().resourceType() === "fetch" && heard.push(answer.status()));
  return heard;
}
/** Marks this document: a reload would lose the mark. */
const mark = (page) => page.evaluate(() => (window.marked = true));
const isMarked = (page) => page.evaluate(() => window.marked === true);

test("what happens is shown without a reload, and focus, selection and scroll stay", async () => {
  const page = await signedIn("operator", { viewport: { width: 1000, height: 400 } });
  await mark(page);
  const link = page.locator("main a").last();
  await link.focus();
  await page.evaluate(() => getSelection().selectAllChildren(document.querySelector("h1")));
  const focused = await page.evaluateHandle(() => document.activeElement);
  const scrolled = await page.evaluate(() => scrollY);
  await pause("seen by the live page");
  await page.locator("main").getByText("seen by the live page").first().waitFor();
  assert.ok(await focused.evaluate((element) => element === document.activeElement && element.isConnected), "the focus is lost");
  // What grew above may be made up for; the page is not where it began.
  assert.ok(scrolled === 0 || (await page.evaluate(() => scrollY)) > 0, "the page went back to its top");
  assert.equal(await page.evaluate(() => getSelection().toString()), "Now");
  assert.ok(await isMarked(page));
  await page.end();
});

test("a page that has not changed is answered with 304 and no body", async () => {
  const page = await signedIn("viewer");
  const heard = ticks(page);
  await page.see("/console/pauses");
  await until("a tick is answered with 304", () => heard.includes(304));
  await page.end();
});

test("a lost connection is said, kept up with and found again", async () => {
  const page = await signedIn("viewer");
  page.ear.expect(/ERR_INTERNET_DISCONNECTED/);
  await mark(page);
  await page.context().setOffline(true);
  await page.getByRole("status").getByText("The connection was lost, trying again").waitFor();
  await pause("while the connection was cut");
  await page.context().setOffline(false);
  await page.locator("main").getByText("while the connection was cut").first().waitFor();
  assert.equal(await page.getByText("The connection was lost").count(), 0);
  assert.ok(await isMarked(page));
  await page.end();
});

test("an answer that is no page is said, and a later one taken", async () => {
  const page = await signedIn("viewer");
  page.ear.expect(...refusal("503"));
  await page.route("**/console", (route) => (route.request().resourceType() === "fetch" ? route.fulfill({ status: 503, body: "" }) : route.continue()));
  await page.getByRole("status").getByText("Postrider answered 503, trying again").waitFor();
  await page.unroute("**/console");
  await page.getByText("Postrider answered 503").waitFor({ state: "hidden" });
  await page.end();
});

test("a page that can be tried again counts down and is loaded again", async () => {
  const page = await signedIn("viewer");
  let asked = 0;
  await page.route("**/console/preferences", async (route) => {
    const isFirst = asked++ === 0;
    const answer = await route.fetch();
    const body = await answer.text();
    // A server in trouble takes its time: the page must not ask again meanwhile.
    if (!isFirst) await new Promise((done) => setTimeout(done, 1_500));
    await route.fulfill({ response: answer, body: !isFirst ? body : body.replace("</main>", '<p data-retry="4">Try again in 4 s.</p></main>') });
  });
  await page.see("/console/preferences");
  await mark(page);
  await page.getByText(/Trying again in \d s\./).waitFor();
  await page.locator("[data-retry]").waitFor({ state: "detached" });
  assert.equal(await isMarked(page), false);
  assert.equal(asked, 2);
  await page.end();
});

test("a visit that ended is said, and nothing more is asked", async () => {
  const page = await signedIn("viewer");
  await page.context().clearCookies({ name: "__Host-pr_console" });
  await page.getByRole("status").getByText("Your visit has ended").waitFor();
  assert.equal(await page.locator("h1").textContent(), "Now");
  await page.end();
});

test("L switches it off and on, and the choice holds", async () => {
  const page = await signedIn("viewer");
  const live = page.locator('[data-act="live"]');
  assert.equal(await live.getAttribute("aria-pressed"), "true");
  await page.keyboard.press("l");
  assert.equal(await live.getAttribute("aria-pressed"), "false");
  await until("the choice is kept", async () => (await page.context().cookies()).some(({ name, value }) => name === "pr_prefs" && /live=off/.test(value)));
  await page.clock.install();
  await page.see("/console");
  const heard = ticks(page);
  await page.clock.runFor(30_000);
  assert.deepEqual(heard, []);
  await page.keyboard.press("l");
  await page.clock.runFor(3_000);
  await until("a tick after L", () => heard.length > 0);
  await page.end();
});

test("a filter by a time of whole minutes does not hold a page", async () => {
  const page = await signedIn("viewer");
  await page.see("/console/waiting?since=2026-11-23T12:00:00Z");
  assert.equal(await page.locator('[data-act="live"]').getAttribute("data-state"), "on");
  await page.end();
});

test("a page that follows nothing has no button for it", async () => {
  const page = await signedIn("viewer");
  const live = page.locator('[data-act="live"]');
  assert.ok(await live.isVisible());
  await page.see("/console/preferences");
  await live.waitFor({ state: "hidden" });
  await page.end();
});

test("nothing is asked in a hidden tab, and at once when it is seen again", async () => {
  const page = await signedIn("viewer");
  await page.clock.install();
  await page.see("/console");
  const heard = ticks(page);
  const show = (hidden) =>
    page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => value });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  await show(true);
  await page.clock.runFor(60_000);
  assert.deepEqual(heard, []);
  await show(false);
  await until("a tick once it is seen", () => heard.length > 0);
  await page.end();
});

test("nothing is asked while a dialog is open", async () => {
  const page = await signedIn("operator");
  await page.clock.install();
  await page.see("/console");
  const heard = ticks(page);
  await page.keyboard.press("?");
  await page.clock.runFor(60_000);
  assert.deepEqual(heard, []);
  await page.keyboard.press("Escape");
  await page.clock.runFor(3_000);
  await until("a tick after the dialog", () => heard.length > 0);
  await page.end();
});

test("rows stay where they are while newer ones come", async () => {
  const page = await signedIn("operator");
  await page.see("/console/audit");
  const first = () => page.locator("tbody[data-rows] tr").first().getAttribute("id");
  const before = await first();
  assert.ok(before, "rows of the audit log have ids");
  await pause("an entry that comes later");
  await page.locator(".newer").waitFor();
  assert.match(await page.locator(".newer").textContent(), /^1 newer$/);
  assert.equal(await first(), before);
  await page.locator(".newer").click();
  await page.locator("main").getByText("an entry that comes later").first().waitFor();
  assert.notEqual(await first(), before);
  await page.end();
});

test("what is copied is what is shown, and it is said", async () => {
  const page = await signedIn("viewer", { permissions: ["clipboard-read", "clipboard-write"] });
  await page.see("/console");
  const button = page.locator("[data-copy]").first();
  await button.click();
  await page.getByRole("status").getByText("Copied").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await button.getAttribute("data-copy"));
  await page.end();
});

test("a copied link shows others the same time, not the one that is seen from when they open it", async () => {
  const page = await signedIn("viewer", { permissions: ["clipboard-read", "clipboard-write"] });
  await page.see("/console/dead-letters/list?since=7d");
  const since = await page.locator("main").getAttribute("data-since");
  await page.keyboard.press("c");
  await page.getByRole("status").getByText("The link is copied").waitFor();
  const copied = new URL(await page.evaluate(() => navigator.clipboard.readText()));
  assert.equal(copied.searchParams.get("since"), since);
  await page.end();
});

test("what is selected stays so on the other pages of the list, and all of it is counted", async () => {
  const those = await failed("kept", 3);
  const list = `/console/dead-letters/list?${those.query}&limit=2`;
  const page = await signedIn("operator");
  await page.see(list);
  await page.locator("[data-check]").nth(0).check();
  await page.locator("[data-check]").nth(1).check();
  await page.getByRole("link", { name: "Older" }).click();
  await page.waitForURL(/cursor=/);
  await page.getByText("2 selected, 2 of them on other pages").waitFor();
  await page.locator("[data-check]").nth(0).check();
  await page.getByText("3 selected, 2 of them on other pages").waitFor();
  await page.goBack();
  await page.getByText("3 selected, 1 of them on other pages").waitFor();
  await page.getByRole("button", { name: "Replay the selected…" }).click();
  await page.getByText("3 chosen one by one").waitFor();
  await page.see(list);
  await page.getByRole("button", { name: "Select none" }).click();
  await page.getByText("0 selected").waitFor();
  await page.end();
  await those.forget();
});

test("a job takes what it is about from the selection when it was made, and not before or later", async () => {
  const those = await failed("used", 3);
  const list = `/console/dead-letters/list?${those.query}`;
  const page = await signedIn("operator");
  await page.see(list);
  await page.locator("[data-check]").nth(0).check();
  await page.locator("[data-check]").nth(1).check();
  await page.getByRole("button", { name: "Replay the selected…" }).click();
  await page.getByText("2 chosen one by one").waitFor();
  await page.see(list);
  await page.getByText("2 selected", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Replay the selected…" }).click();
  await page.getByRole("button", { name: "Replay 2", exact: true }).click();
  await page.waitForURL(/\/console\/jobs\/[0-9a-f-]{36}$/);
  const job = new URL(page.url()).pathname;
  await page.see(list);
  await page.getByText("0 selected", { exact: true }).waitFor();
  await page.locator("[data-check]").last().check();
  await page.see(job);
  await page.see(list);
  await page.getByText(/^1 selected/).waitFor();
  await page.end();
  await those.forget();
});

test("a form that is gone back to may be sent with what is typed in it", async () => {
  const page = await signedIn("operator");
  await page.see("/console/lanes/push/pause");
  const button = page.locator('main form button:not([type="button"])');
  await button.and(page.locator(":disabled")).waitFor();
  // As a browser does that goes back: the field has its text again, and no event says so but the one of the page.
  await page.locator("main input[data-expect]").evaluate((field) => {
    field.value = field.dataset.expect;
    dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
  });
  await button.and(page.locator(":enabled")).waitFor();
  await page.end();
});
