// What pages may do is written in their policy, and browsers tell when one wanted more.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, pages, signedIn } from "./lib/browser.mjs";
import { entered, pages as dashboardPages } from "./lib/dashboard.mjs";
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
  const visit = await entered();
  visit.ear.expect(/^404 for /, /status of 404/);
  for (const path of await dashboardPages()) await visit.see(path);
  await visit.end();
  assert.equal(await reported(), 0);

  page.ear.expect(/Content Security Policy/);
  await page.see("/console");
  await page.evaluate(() => {
    const style = document.createElement("style");
    style.textContent = "body { display: none }";
    document.head.append(style);
  });
  assert.ok(await page.locator("h1").isVisible());
  await until("the violation is reported", async () => (await reported()) === 1);
  await page.end();
});

/** Ways by which a script could make HTML, or another script, of text. */
const WAYS = {
  "an element of text": () => (document.querySelector("h1").innerHTML = "<b>made of text</b>"),
  "a document of text": () => new DOMParser().parseFromString("<b>made of text</b>", "text/html"),
  "a swap of htmx": () => htmx.swap({ target: "h1", text: "<b>made of text</b>" }),
  "a script of text": () => (document.createElement("script").textContent = "document.title = 'made of text'"),
  "a listener of text": () => document.body.setAttribute("onclick", "document.title = 'made of text'"),
  "a policy of another name": () => trustedTypes.createPolicy("other", { createHTML: (text) => text }),
  "a policy for what asks for none": () => trustedTypes.createPolicy("default", { createHTML: (text) => text }),
  "the policy of the pages once more": () => trustedTypes.createPolicy("postrider", { createHTML: (text) => text }),
};

for (const [what, open] of Object.entries({ console: () => signedIn("viewer"), dashboard: entered })) {
  test(`no text becomes HTML or a script on a page of the ${what}, but by the one way of the pages themselves`, async (t) => {
    const page = await open();
    page.ear.expect(/requires 'Trusted(HTML|Script)' assignment/, /TrustedTypePolicy/);
    for (const [way, goes] of Object.entries(WAYS)) {
      await t.test(way, async () => {
        await assert.rejects(page.evaluate(goes), /Trusted|Policy/);
        assert.doesNotMatch(await page.content(), /made of text/);
      });
    }
    await page.end();
  });
}
