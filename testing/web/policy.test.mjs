// What pages may do is written in their policy, and browsers tell when one wanted more.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, pages, signedIn } from "./lib/browser.mjs";
import { ask, until } from "./lib/world.mjs";

after(close);

/** How many violations were reported. */
async function reported() {
  const metrics = await ask("GET", process.env.METRICS_URL);
  return Number(metrics.match(/^postrider_web_csp_violations_total(?:\{[^}]*\})? (\S+)$/m)?.[1] ?? 0);
}

test("no page wants more than its policy allows, and one that does is reported", async () => {
  const page = await signedIn("operator");
  page.ear.expect(/^404 for /, /status of 404/);
  for (const path of pages()) await page.see(path);
  assert.equal(await reported(), 0);

  page.ear.expect(/Content Security Policy/);
  await page.see("/console");
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "document.title = 'harmed'";
    document.head.append(script);
  });
  assert.equal(await page.title().then((title) => title.includes("harmed")), false);
  await until("the violation is reported", async () => (await reported()) === 1);
  await page.end();
});
