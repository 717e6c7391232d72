// What on-call does, from the first look to the entry in the audit log.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, signedIn } from "./lib/browser.mjs";
import { failed } from "./lib/deliveries.mjs";
import { ask, keys, operate, until, urls } from "./lib/world.mjs";

after(close);

/** From the groups to the job's own page, whose number is known. */
async function replayGroup(page, { query }, count) {
  await page.see(`/console/dead-letters?${query}`);
  await page.locator("main").getByRole("link", { name: /^(Replay|Resend)/ }).first().click();
  await page.locator("main").getByText(new RegExp(`\\b${count}\\b`)).first().waitFor();
  await page.getByLabel(/note/i).fill("their firewall is mended, see incident 17");
  await page.getByRole("button", { name: /^(Replay|Start)/ }).click();
  await page.waitForURL(/\/console\/jobs\/[0-9a-f-]{36}$/);
  return page.url().split("/").at(-1);
}

/** The form that an act opened: in a dialog, or on a page of its own. */
const opened = (page) => page.locator("dialog[open] form, main form.form:not(dialog form)").first();

test("a group is replayed: dry run, start, progress, outcome, audit", async () => {
  const those = await failed("journey", 3);
  const page = await signedIn("operator");
  const job = await replayGroup(page, those, 3);
  await page.locator("main").getByText(/completed|done/i).first().waitFor();
  await page.locator("main").getByText(/delivered/i).first().waitFor();
  assert.equal((await operate("GET", `/dead-letters/jobs/${job}`)).status, "COMPLETED");
  await until("nothing is dead any more", async () => (await those.open()).length === 0);
  await page.see("/console/audit");
  await page.locator("main").getByText("their firewall is mended, see incident 17").first().waitFor();
  await page.end();
  await those.forget();
});

test("the same without JavaScript, to its end", async () => {
  const those = await failed("without-script", 2);
  const page = await signedIn("operator", { javaScriptEnabled: false });
  await page.see("/console/dead-letters");
  assert.ok((await page.locator("main tbody tr").count()) > 0);
  const job = await replayGroup(page, those, 2);
  await until("the job has ended", async () => (await operate("GET", `/dead-letters/jobs/${job}`)).status === "COMPLETED");
  await until("nothing is dead any more", async () => (await those.open()).length === 0);
  await page.reload();
  await page.locator("main").getByText(/completed|done/i).first().waitFor();
  await page.end();
  await those.forget();
});

test("a lane is paused with a note and its name, seen by all, resumed, and audited", async () => {
  const page = await signedIn("operator");
  const other = await signedIn("viewer");
  await other.see("/console/lanes");
  await page.see("/console/lanes");
  await page.getByRole("link", { name: /^Pause the reseller lane|^Pause.*reseller/i }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel(/note/i).fill("maintenance of the firewall");
  const start = dialog.getByRole("button", { name: /^Pause/ });
  assert.ok(await start.isDisabled(), "the name of the lane is not typed yet");
  await dialog.getByLabel(/type/i).fill("reseller");
  await start.click();
  await page.getByRole("status").getByText(/paused/i).first().waitFor();
  await other.locator("main").getByText("maintenance of the firewall").first().waitFor();
  assert.ok(await other.getByRole("button", { name: /^Resume/ }).first().isDisabled());

  await page.see("/console/pauses");
  await page.locator("main tr", { hasText: "maintenance of the firewall" }).getByRole("link", { name: /^Resume/ }).click();
  const again = opened(page);
  await again.getByLabel(/note/i).fill("the firewall is mended");
  if (await again.getByLabel(/type/i).count()) await again.getByLabel(/type/i).fill("reseller");
  await again.getByRole("button", { name: /^Resume/ }).click();
  await page.getByRole("status").getByText(/goes on/i).first().waitFor();
  await other.locator("main strong", { hasText: "maintenance of the firewall" }).first().waitFor({ state: "detached" });
  await other.locator("main tr", { hasText: "maintenance of the firewall" }).first().waitFor();
  await page.see("/console/audit");
  for (const note of ["maintenance of the firewall", "the firewall is mended"]) await page.locator("main").getByText(note).first().waitFor();
  await page.end();
  await other.end();
});

test("Swrve is down: the lane rests, and when it works again a few are replayed first, then the others", async () => {
  const name = `down-${Date.now()}`;
  await ask("PUT", `${urls.swrve}/script`, { body: [{ match: { user: { prefix: name } }, status: 503, message: "down", delayMillis: 10 }] });
  for (let number = 1; number <= 12; number += 1) {
    await ask("POST", `${urls.ingest}/push`, { key: keys.ingest, body: { platform: "IOS", messagePrototypeKey: "Hello", pushKey: `${name}-${number}`, message: "Hello!" } });
  }
  const query = "lane=push&reason=GIVEN_UP";
  await until("they are given up", async () => (await operate("GET", `/dead-letters?${query}`)).items.length === 12, 90);
  const page = await signedIn("operator");
  for (const [act, note] of [["Pause", "Swrve is down, incident 19"], ["Resume", "Swrve works again"]]) {
    await page.see("/console/lanes");
    await page.getByRole("link", { name: new RegExp(`^${act} the push lane`) }).click();
    const form = opened(page);
    await form.getByLabel(/note/i).fill(note);
    await form.getByLabel(/type/i).fill("push");
    await form.getByRole("button", { name: new RegExp(`^${act}`) }).click();
    await page.getByRole("status").getByText(act === "Pause" ? /paused/i : /goes on/i).first().waitFor();
    await ask("PUT", `${urls.swrve}/script`, { body: [] });
  }
  await page.see(`/console/jobs/new?action=replay&${query}`);
  await page.locator("main").getByText(/\b12\b/).first().waitFor();
  await page.locator("#canary").fill("3");
  await page.getByLabel(/note/i).fill("Swrve works again, incident 19");
  await page.getByRole("button", { name: /^(Replay|Start)/ }).click();
  await page.waitForURL(/\/console\/jobs\/[0-9a-f-]{36}$/);
  const job = page.url().split("/").at(-1);
  await until("the job has ended", async () => (await operate("GET", `/dead-letters/jobs/${job}`)).status === "COMPLETED", 90);
  await until("all are delivered", async () => (await operate("GET", `/dead-letters/jobs/${job}/outcome`)).delivered === 12, 90);
  assert.equal((await operate("GET", `/dead-letters/jobs/${job}`)).canary, 3);
  await page.locator('section[aria-labelledby="outcome"] .stats div', { hasText: "Delivered" }).getByText("12", { exact: true }).waitFor();
  await page.end();
});

test("a quota request is approved with a word", async () => {
  const page = await signedIn("admin");
  await page.see("/console/quota-requests");
  await page.locator("main").getByText("2,000,000").first().waitFor();
  await page.locator("main").getByRole("link", { name: /^Approve the request/ }).first().click();
  const form = opened(page);
  await form.getByLabel(/note|word/i).first().fill("fine until spring");
  await form.getByRole("button", { name: /^Approve/ }).click();
  await page.getByRole("status").getByText(/may get/).first().waitFor();
  await page.end();
});

test("what an identifier is about is found, and explained in a sentence", async () => {
  const page = await signedIn("viewer");
  const { items } = await operate("GET", "/dead-letters?lane=push");
  await page.fill("#q", items[0].id);
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(items[0].id));
  await page.locator("main").getByText(/Swrve|prototype|push key/i).first().waitFor();
  await page.end();
});
