// Without a pointer.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, signedIn } from "./lib/browser.mjs";
import { urls } from "./lib/world.mjs";

after(close);

const at = (page) => page.evaluate(() => document.querySelector("tr[data-at]")?.dataset.href ?? null);

test("g and a letter go to a place, j and k walk the rows, Enter opens one", async () => {
  const page = await signedIn("operator");
  await page.keyboard.press("g");
  await page.keyboard.press("d");
  await page.waitForURL(`${urls.console}/console/dead-letters`);
  await page.locator("tr[data-href]").first().waitFor();
  const rows = await page.locator("tr[data-href]").evaluateAll((all) => all.map((row) => row.dataset.href));
  assert.ok(rows.length >= 2, "two groups");
  await page.keyboard.press("j");
  assert.equal(await at(page), rows[0]);
  await page.keyboard.press("j");
  assert.equal(await at(page), rows[1]);
  await page.keyboard.press("k");
  assert.equal(await at(page), rows[0]);
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.pathname + url.search === new URL(rows[0], urls.console).pathname + new URL(rows[0], urls.console).search);
  await page.end();
});

test("/ searches, and letters typed into a field stay letters", async () => {
  const page = await signedIn("viewer");
  await page.keyboard.press("/");
  await page.keyboard.type("gd?jL");
  assert.equal(await page.locator("#q").inputValue(), "gd?jL");
  assert.equal(await page.locator("dialog[open]").count(), 0);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/console\/search\?q=gd%3FjL/);
  await page.end();
});

test("? explains the keys, Esc closes it and gives the focus back", async () => {
  const page = await signedIn("viewer");
  const button = page.getByRole("button", { name: "Keys and preferences" });
  await button.focus();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys and preferences" }).waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog[open]").waitFor({ state: "detached" });
  assert.ok(await button.evaluate((element) => element === document.activeElement));
  await page.end();
});

test("Ctrl K goes to a place by a part of its name", async () => {
  const page = await signedIn("viewer");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("quota");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${urls.console}/console/quota-requests`);
  await page.end();
});

test("single keys can be switched off", async () => {
  const page = await signedIn("viewer");
  await page.keyboard.press("?");
  await page.getByLabel("Single keys").selectOption("off");
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  await page.keyboard.press("g");
  await page.keyboard.press("d");
  assert.equal(await page.locator("dialog[open]").count(), 0);
  assert.equal(page.url(), `${urls.console}/console`);
  await page.see("/console/jobs");
  await page.keyboard.press("?");
  assert.equal(await page.locator("dialog[open]").count(), 0);
  await page.end();
});

test("theme and density hold on the next page", async () => {
  const page = await signedIn("viewer", { colorScheme: "light" });
  await page.keyboard.press("?");
  await page.getByLabel("Theme").selectOption("dark");
  await page.getByLabel("Rows").selectOption("comfortable");
  const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.see("/console/jobs");
  assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
  assert.equal(await page.locator("html").getAttribute("data-density"), "comfortable");
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), dark);
  await page.end();
});

test("Tab begins with the way past the navigation", async () => {
  const page = await signedIn("viewer");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await page.end();
});
