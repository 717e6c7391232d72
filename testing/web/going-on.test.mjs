// Cancelling more than one request takes: by itself until none is left, with a button that stops it, and with a sentence where it cannot go on.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, test } from "node:test";
import { close, overflow, signedIn, violations } from "./lib/browser.mjs";
import { operate } from "./lib/world.mjs";

after(close);

/** So many pushes that wait until next year, of a prototype of their own, in one statement: handed in one by one they would take minutes. */
function waiting(count) {
  const prototype = `going-on-${Date.now()}`;
  const insert = `INSERT INTO push_notifications (id, status, platform, message_prototype_key, push_key, message, cron_expression, next_attempt_at, created_at)
    SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint), 12, '0') || '7' || left(md5(n::text), 3) || '8' || right(md5(n::text), 15))::uuid,
           'SCHEDULED', 'IOS', '${prototype}', 'device-' || n, 'Hello!', '0 0 12 1 1 ?', now() + interval '1 year', now()
    FROM generate_series(1, ${count}) AS n`;
  execFileSync("psql", ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", `--command=${insert}`, "--", process.env.DATABASE_URL]);
  return prototype;
}

const formOf = (prototype) => `/console/waiting/cancel?lane=push&prototype=${prototype}`;
const box = (page) => page.getByLabel("Go on until none is left");
const said = (page, text) => page.locator("#said").getByText(text).waitFor({ timeout: 60_000 });

/** Agrees to cancel them all. */
async function begin(page, prototype) {
  await page.see(formOf(prototype));
  await page.getByLabel(/^Type 5000/).fill("5000");
  await page.getByLabel(/^Note/).fill(`${prototype} was called off`);
  await box(page).check();
  await page.getByRole("button", { name: "Cancel the next 5,000" }).click();
  await page.getByRole("heading", { name: "Cancelling pushes" }).waitFor();
}

/** How many each request has cancelled, as the audit log has it. */
async function cancelled(prototype) {
  const { items } = await operate("GET", "/audit?action=push.cancel-many");
  return items.filter(({ note }) => note === `${prototype} was called off`).map(({ details }) => details.cancelled).sort((one, other) => other - one);
}

test("it goes on by itself until none is left, and offers that only where scripts run", async () => {
  const prototype = waiting(10_100);
  const without = await signedIn("operator", { javaScriptEnabled: false });
  await without.see(formOf(prototype));
  assert.ok(await without.getByRole("button", { name: "Cancel the next 5,000" }).isVisible());
  assert.equal(await box(without).isVisible(), false);
  await without.end();

  const page = await signedIn("operator");
  await begin(page, prototype);
  await said(page, "10,100 were cancelled and will not be sent. No more match.");
  assert.deepEqual(await cancelled(prototype), [5_000, 5_000, 100]);
  assert.equal(await page.getByRole("button", { name: "Go on" }).count(), 0);
  assert.deepEqual(await violations(page), []);
  await page.getByRole("link", { name: "Back to what waits" }).click();
  await page.waitForURL(/\/console\/waiting$/);
  await page.end();
});

test("it is stopped, says what may have come of a request that was under way, and goes on when it is told to", async () => {
  const prototype = waiting(15_100);
  const page = await signedIn("operator", { viewport: { width: 320, height: 800 } });
  const [stop, goOn] = [page.getByRole("button", { name: "Stop" }), page.getByRole("button", { name: "Go on" })];
  // Pressed as soon as the scripts of the page have run: the driver of the browser would come too late.
  await page.addInitScript(() => addEventListener("DOMContentLoaded", () => sessionStorage.getItem("stops") && document.querySelector('[data-act="stop"]')?.click()));
  await page.evaluate(() => sessionStorage.setItem("stops", "yes"));
  await begin(page, prototype);
  await said(page, "5,000 were cancelled and will not be sent.");
  await page.getByText("up to 5,000 more may have been cancelled than stand here").waitFor();
  await goOn.waitFor();
  assert.equal(await stop.isVisible(), false);
  assert.ok(await goOn.evaluate((button) => button === document.activeElement), "the focus is lost");
  assert.deepEqual(await violations(page), []);
  assert.deepEqual(await overflow(page), []);
  assert.deepEqual(await cancelled(prototype), [5_000]);

  await page.evaluate(() => sessionStorage.clear());
  await goOn.click();
  await said(page, "15,100 were cancelled and will not be sent. No more match.");
  assert.deepEqual(await cancelled(prototype), [5_000, 5_000, 5_000, 100]);
  await page.end();
});
