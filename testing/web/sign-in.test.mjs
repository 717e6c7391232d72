// Who comes in, and how they leave.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, refusal, signedIn, tab } from "./lib/browser.mjs";
import { keys, urls } from "./lib/world.mjs";

after(close);

for (const role of ["viewer", "operator", "admin"]) {
  test(`a key with the role ${role} opens the console`, async () => {
    const page = await signedIn(role);
    assert.equal(await page.locator("h1").textContent(), "Now");
    assert.match(await page.locator(".who").textContent(), new RegExp(role));
    await page.end();
  });
}

for (const [what, key] of [["a wrong key", "pr_wrong"], ["a key of a reseller", keys.reseller], ["a key that only hands in", keys.ingest]]) {
  test(`${what} is refused with a sentence, and opens nothing`, async () => {
    const page = await tab();
    page.ear.expect(...refusal("4.."));
    await page.see("/console/sign-in");
    await page.fill('[name="key"]', key);
    await page.click("main button");
    await page.getByRole("alert").waitFor();
    assert.match(await page.getByRole("alert").textContent(), /\w+ \w+ \w+/);
    assert.doesNotMatch(await page.content(), new RegExp(key));
    assert.deepEqual(await page.context().cookies().then((all) => all.filter(({ name }) => name === "__Host-pr_console")), []);
    await page.end();
  });
}

test("a page that needs a visit leads to the sign-in and back", async () => {
  const page = await tab();
  await page.see("/console/audit?limit=25");
  assert.match(page.url(), /\/console\/sign-in/);
  await page.fill('[name="key"]', keys.viewer);
  await page.click("main button");
  await page.waitForURL(`${urls.console}/console/audit?limit=25`);
  await page.end();
});

test("what to open after the sign-in stays on this origin", async () => {
  for (const next of ["https://elsewhere.example/", "//elsewhere.example/", "/\\elsewhere.example", "javascript:alert(1)"]) {
    const page = await tab();
    await page.see(`/console/sign-in?next=${encodeURIComponent(next)}`);
    await page.fill('[name="key"]', keys.viewer);
    await page.click("main button");
    await page.waitForURL(`${urls.console}/console**`);
    await page.end();
  }
});

test("signing out ends the visit, also for who kept the cookie", async () => {
  const page = await signedIn("viewer");
  const kept = (await page.context().cookies()).filter(({ name }) => name === "__Host-pr_console");
  assert.equal(kept.length, 1);
  assert.deepEqual([kept[0].httpOnly, kept[0].secure, kept[0].sameSite, kept[0].path], [true, true, "Lax", "/"]);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(/sign-in/);
  await page.context().addCookies(kept);
  await page.see("/console");
  assert.match(page.url(), /sign-in/);
  await page.end();
});

test("a form from elsewhere does nothing", async () => {
  const page = await signedIn("operator");
  const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join("; ");
  for (const headers of [{ "sec-fetch-site": "cross-site" }, { "sec-fetch-site": "same-site" }, { origin: "https://elsewhere.example" }, {}]) {
    const answer = await fetch(`${urls.operator}/console/sign-out`, { method: "POST", redirect: "manual", headers: { cookie, ...headers } });
    assert.equal(answer.status, 403, JSON.stringify(headers));
  }
  await page.see("/console");
  assert.equal(await page.locator("h1").textContent(), "Now");
  await page.end();
});
