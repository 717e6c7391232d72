// Without a pointer: what single keys do, and journeys by Tab, Enter and letters alone.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, signedIn, tab } from "./lib/browser.mjs";
import { entered } from "./lib/dashboard.mjs";
import { failed, failing, mended, unsubscribe } from "./lib/deliveries.mjs";
import { press, reach, write } from "./lib/keyboard.mjs";
import { keys, operate, until, urls } from "./lib/world.mjs";

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
  await page.keyboard.type("nothing");
  const options = page.locator("#palette").getByRole("option");
  await options.first().waitFor({ state: "hidden" });
  await page.getByRole("status").getByText("is called so").waitFor();
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("dialog[open]").count(), 1, "there is nowhere to go");
  await page.locator("dialog[open] input").fill("quota");
  assert.equal(await options.count(), 1, "what does not fit is not shown");
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

test("on-call signs in, finds what an identifier is about, and replays its group", async () => {
  const those = await failed("by-keys", 2);
  const [letter] = await those.open();
  const page = await tab();
  await page.see("/console/sign-in");
  // A browser focuses the field when it next draws the page, which can be after all is loaded.
  await page.locator('[name="key"]:focus').waitFor();
  await page.keyboard.type(keys.operator);
  await page.keyboard.press("Enter");
  await page.waitForURL(`${urls.console}/console`);
  await page.keyboard.press("/");
  await page.keyboard.type(letter.id);
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(letter.id));
  await page.see(`/console/dead-letters?${those.query}`);
  await page.keyboard.press("j");
  await page.keyboard.press("r");
  await page.waitForURL(/\/console\/jobs\/new/);
  await write(page, page.getByLabel(/note/i), "their endpoint works again, see incident 20");
  await press(page, page.getByRole("button", { name: /^(Replay|Start)/ }));
  await page.waitForURL(/\/console\/jobs\/[0-9a-f-]{36}$/);
  await page.locator("main").getByText(/completed|done/i).first().waitFor();
  await until("nothing is dead any more", async () => (await those.open()).length === 0);
  await page.end();
  await those.forget();
});

test("on-call replays one first, is told that it failed again, and goes on with the rest", async () => {
  const those = await failing("canary-by-keys", 3);
  const page = await signedIn("operator");
  await page.see(`/console/dead-letters?${those.query}`);
  await page.keyboard.press("j");
  await page.keyboard.press("r");
  await page.waitForURL(/\/console\/jobs\/new/);
  await write(page, page.getByLabel("First ones"), "1");
  await write(page, page.getByLabel(/note/i), "is their endpoint well again?");
  await press(page, page.getByRole("button", { name: /^Replay/ }));
  await page.waitForURL(/\/console\/jobs\/[0-9a-f-]{36}$/);
  const job = page.url().split("/").at(-1);
  await until("the job has paused itself", async () => (await operate("GET", `/dead-letters/jobs/${job}`)).pausedBecause === "CANARY_FAILED", 90);
  await page.locator("main").getByText(/It has paused itself/).waitFor();
  await mended();
  await press(page, page.getByRole("link", { name: /^Go on with the rest/ }));
  const dialog = page.getByRole("dialog", { name: "Go on with the rest" });
  await write(page, dialog.getByLabel(/note/i), "it works now");
  await press(page, dialog.getByRole("button", { name: "Go on with the rest" }));
  await page.getByRole("status").getByText(/goes on/).waitFor();
  // What failed again is a dead letter that came after the job was counted.
  await until("the rest is delivered", async () => (await operate("GET", `/dead-letters/jobs/${job}/outcome`)).delivered === 2, 90);
  await page.end();
  await those.forget();
});

test("a lane is paused and resumed; its dialog takes the focus, keeps it, and gives it back", async () => {
  const page = await signedIn("operator");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("lanes");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${urls.console}/console/lanes`);
  const act = (verb) => page.getByRole("link", { name: new RegExp(`^${verb} the push lane`) });
  const isInside = () => page.evaluate(() => Boolean(document.activeElement.closest("dialog[open]")));
  await press(page, act("Pause"));
  assert.ok(await isInside(), "the focus stays behind the dialog");
  await page.keyboard.press("Escape");
  await page.locator("dialog[open]").waitFor({ state: "detached" });
  assert.ok(await act("Pause").evaluate((link) => link === document.activeElement), "the focus is lost with the dialog");
  for (const [verb, said] of [["Pause", /paused/i], ["Resume", /goes on/i]]) {
    // Of the first it is there already.
    if (!(await act(verb).evaluate((link) => link === document.activeElement))) await reach(page, act(verb));
    await page.keyboard.press("Enter");
    const dialog = page.locator("dialog[open]");
    await write(page, dialog.getByLabel(/^Type/), "push");
    await write(page, dialog.getByLabel(/note/i), `${verb} by keys`);
    await press(page, dialog.getByRole("button", { name: new RegExp(`^${verb}`) }));
    await page.getByRole("status").getByText(said).first().waitFor();
  }
  assert.deepEqual((await operate("GET", "/pauses")).items.filter(({ note }) => note === "Pause by keys"), []);
  await page.end();
});

test("a first subscription is made, verified and tested, after its mistakes were mended", async () => {
  const page = await entered();
  page.ear.expect(/^422 for /, /status of 422/);
  await press(page, page.getByRole("link", { name: "New subscription" }));
  await write(page, page.locator("#url"), "ftp://files.example/hooks");
  await reach(page, page.getByRole("checkbox", { name: /All of them/ }));
  await page.keyboard.press("Space");
  await write(page, page.locator("#email"), "web@example.org");
  const make = page.getByRole("button", { name: "Make the subscription" });
  await press(page, make);
  await page.locator("#errors").waitFor();
  assert.ok(await page.locator("#errors").evaluate((errors) => errors === document.activeElement), "what is wrong has the focus");
  await press(page, page.locator("#errors a").first());
  assert.ok(await page.locator("#url").evaluate((field) => field === document.activeElement), "the field that is wrong has the focus");
  await page.keyboard.press("Control+a");
  await page.keyboard.type(`${urls.receiver}/by-keys`);
  await press(page, make);
  await page.locator("#the-secret").waitFor();
  await press(page, page.getByRole("button", { name: /I have stored it/ }));
  await page.getByText("The endpoint is verified").waitFor();
  const id = page.url().match(/\/app\/s\/([^/]+)/)[1];
  await press(page, page.getByRole("button", { name: "Send a test event" }));
  await page.waitForURL(/\/app\/n\//);
  await page.locator(".verdict.ok").waitFor();
  await page.end();
  await unsubscribe(id);
});
