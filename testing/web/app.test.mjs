// The dashboard of a reseller: opened by a link, framed by another site, and what holds on each of its pages.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { close, overflow, refusal, tab, violations } from "./lib/browser.mjs";
import { entered, link, pages } from "./lib/dashboard.mjs";
import { ask, keys, until, urls } from "./lib/world.mjs";

after(close);

test("a link opens the dashboard once, and leaves no token behind", async () => {
  const url = await link();
  const page = await tab();
  await page.goto(url);
  await page.waitForURL(`${urls.dashboard}/app`);
  assert.equal(await page.locator("h1").textContent(), "Overview");
  assert.equal(await page.evaluate(() => localStorage.length + sessionStorage.length), 0);
  const [cookie] = (await page.context().cookies()).filter(({ name }) => name === "__Host-pr_app");
  assert.deepEqual([cookie.httpOnly, cookie.secure, cookie.sameSite, cookie.path], [true, true, "Lax", "/"]);
  const other = await tab();
  other.ear.expect(...refusal("410"));
  await other.goto(url);
  await other.getByRole("heading", { name: "This link opens nothing any more" }).waitFor();
  assert.doesNotMatch(other.url(), /#|prl_/);
  assert.deepEqual(await violations(other), []);
  await other.end();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(/expired/);
  assert.deepEqual(await violations(page), []);
  await page.end();
});

for (const theme of ["light", "dark"]) {
  test(`every page is accessible, ${theme}`, async (t) => {
    const page = await entered({ theme });
    for (const path of await pages()) {
      await t.test(path, async () => {
        if (path === "/app/nothing-here") page.ear.expect(...refusal("404"));
        await page.see(path);
        assert.equal(await page.locator("html").getAttribute("data-theme"), theme);
        assert.equal(await page.locator("h1").count(), 1);
        assert.deepEqual(await violations(page), []);
        assert.equal(await page.locator("[style], [onclick], [onload], [onerror], script:not([src]), style").count(), 0);
      });
    }
    await page.end();
  });
}

test("every page fits 320 pixels", async (t) => {
  const page = await entered({}, { viewport: { width: 320, height: 700 } });
  for (const path of await pages()) {
    await t.test(path, async () => {
      if (path === "/app/nothing-here") page.ear.expect(...refusal("404"));
      await page.see(path);
      assert.deepEqual(await overflow(page), []);
    });
  }
  await page.end();
});

test("a first subscription is made, verified and tested", async () => {
  const page = await entered();
  await page.getByRole("link", { name: "New subscription" }).click();
  await page.fill("#url", `${urls.receiver}/first`);
  await page.getByRole("checkbox", { name: /All of them/ }).check();
  assert.match(await page.locator("#eventTypes .hint").textContent(), /matches (\d+) of \1 event types/);
  await page.fill("#email", "web@example.org");
  await page.getByRole("button", { name: "Make the subscription" }).click();
  assert.match(await page.locator("#the-secret").textContent(), /^whsec_/);
  await page.getByRole("button", { name: /I have stored it/ }).click();
  await page.getByText("The endpoint is verified").waitFor();
  assert.doesNotMatch(await page.content(), /whsec_[A-Za-z0-9+/]{20}/);
  await page.getByRole("button", { name: "Send a test event" }).click();
  await page.waitForURL(/\/app\/n\//);
  await page.locator(".verdict.ok").waitFor();
  await page.end();
});

test("another site frames the dashboard, which an own tab does not see", async () => {
  const framed = (id) => link({ person: { id }, parentOrigin: process.env.PANEL_ORIGIN });
  const url = await framed("framed");
  const server = createServer((_, response) => response.setHeader("content-type", "text/html").end(`<!doctype html><title>Panel</title><link rel="icon" href="data:,"><iframe id="f" width="900" height="600" src="${url}"></iframe><script>window.heard = []; addEventListener("message", ({ data }) => { heard.push(data.type); if (data.type === "postrider.height") document.getElementById("f").style.height = data.height + "px"; });</script>`));
  await new Promise((listening) => server.listen(new URL(process.env.PANEL_ORIGIN).port, "127.0.0.1", listening));
  try {
    const page = await tab();
    await page.goto(process.env.PANEL_ORIGIN);
    const frame = page.frameLocator("#f");
    await frame.getByRole("heading", { name: "Overview" }).waitFor();
    await frame.getByRole("link", { name: "Deliveries", exact: true }).first().click();
    await frame.getByRole("heading", { name: "Deliveries" }).waitFor();
    const height = () => page.evaluate(() => document.getElementById("f").clientHeight);
    const shown = () => frame.locator("body").evaluate((body) => Math.ceil(body.getBoundingClientRect().height));
    const fits = async () => Math.abs((await height()) - (await shown())) <= 1;
    await until("the frame to be as high as its page", fits);
    const tall = await height();
    await frame.getByRole("link", { name: "Signature check", exact: true }).first().click();
    await frame.getByRole("heading", { name: "Signature check" }).waitFor();
    await until("the frame to be as high as a shorter page", async () => (await fits()) && (await height()) < tall);
    await frame.getByRole("button", { name: "Keys and preferences" }).click();
    await frame.getByLabel("Theme").selectOption("dark");
    await frame.getByRole("button", { name: "Close" }).click();
    await frame.getByRole("link", { name: "Activity", exact: true }).first().click();
    await frame.getByRole("heading", { name: "Activity", exact: true }).waitFor();
    await frame.locator('html[data-theme="dark"]').waitFor({ state: "attached" });
    await ask("DELETE", `${urls.portal}/visits?person=framed`, { key: keys.reseller });
    // Visits are remembered for some seconds: what is asked for until then is answered still.
    const isAsked = () => page.evaluate(() => window.heard.includes("postrider.ended"));
    await until("the page around to be asked", async () => {
      if (await isAsked()) return true;
      await frame.getByRole("link", { name: "Overview", exact: true }).first().click({ timeout: 1000 }).catch(() => {});
      return isAsked();
    });
    await page.evaluate((src) => (document.getElementById("f").src = src), await framed("framed"));
    await frame.getByRole("heading", { name: "Overview" }).waitFor();
    const own = await page.context().newPage();
    await own.goto(`${urls.dashboard}/app`);
    assert.match(own.url(), /expired/);
    await page.end();
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test("no other site frames it", async () => {
  const page = await entered();
  const answer = await page.see("/app");
  assert.match(answer.headers()["content-security-policy"], /frame-ancestors 'none'/);
  await page.end();
});
