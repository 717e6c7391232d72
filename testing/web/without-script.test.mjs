// Pages where no script runs: whatever can be seen and done with one can be seen and done without.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, signedIn, tab } from "./lib/browser.mjs";
import { entered, link } from "./lib/dashboard.mjs";
import { failed, portal, unsubscribe } from "./lib/deliveries.mjs";
import { content, operate, until, urls } from "./lib/world.mjs";

after(close);

const withoutScript = { javaScriptEnabled: false };

test("on-call signs in, finds what an identifier is about, and sends it again", async () => {
  const those = await failed("found", 1);
  const [letter] = await those.open();
  const page = await signedIn("operator", withoutScript);
  await page.getByRole("searchbox", { name: "Search" }).fill(letter.id);
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(letter.id));
  await page.locator("main").getByRole("link", { name: /^Replay/ }).first().click();
  await page.locator("main form.form").getByRole("button", { name: /^Replay/ }).click();
  await until("it is no dead letter any more", async () => (await those.open()).length === 0);
  await page.end();
  await those.forget();
});

test("several dead letters are chosen by identifier and sent again", async () => {
  const those = await failed("by-id", 2);
  const letters = await those.open();
  const page = await signedIn("operator", withoutScript);
  await page.see(`/console/dead-letters/list?${those.query}`);
  await page.getByText("Choose by identifier").click();
  await page.getByLabel("Identifiers").fill(letters.map(({ id }) => id).join("\n"));
  await page.getByRole("button", { name: "Replay these…" }).click();
  await page.getByText("2 chosen one by one").waitFor();
  await page.locator("main form.form").getByRole("button", { name: /^Replay/ }).click();
  await until("they are no dead letters any more", async () => (await those.open()).length === 0);
  await page.end();
  await those.forget();
});

test("a lane is paused and resumed with a note and its name", async () => {
  const page = await signedIn("operator", withoutScript);
  const act = async (verb) => {
    await page.see("/console/lanes");
    await page.getByRole("link", { name: new RegExp(`^${verb} the push lane`) }).click();
    await page.waitForURL(new RegExp(`/console/lanes/push/${verb.toLowerCase()}$`));
    const form = page.locator("main form.form");
    await form.getByLabel(/note/i).fill(`${verb.toLowerCase()}d without a script`);
    await form.getByLabel(/^Type/).fill("push");
    await form.getByRole("button", { name: new RegExp(`^${verb}`) }).click();
  };
  const pauses = async () => (await operate("GET", "/pauses")).items.filter(({ note }) => note === "paused without a script").length;
  await act("Pause");
  await page.getByRole("status").getByText(/paused/i).first().waitFor();
  assert.equal(await pauses(), 1);
  await act("Resume");
  await page.getByRole("status").getByText(/goes on/i).first().waitFor();
  assert.equal(await pauses(), 0);
  await page.end();
});

test("a link to the dashboard says that it needs a script, this once, and is not used up", async () => {
  const url = await link();
  const page = await tab(withoutScript);
  await page.goto(url);
  await page.getByText("Opening a one-time link needs JavaScript, this once").waitFor();
  await page.end();
  const later = await tab();
  await later.goto(url);
  await later.waitForURL(`${urls.dashboard}/app`);
  await later.end();
});

test("a first subscription is made, verified, tested, paused, resumed and deleted", async () => {
  const page = await entered({}, withoutScript);
  await page.getByRole("link", { name: "New subscription" }).click();
  await page.fill("#url", "ftp://files.example/hooks");
  await page.getByRole("checkbox", { name: /All of them/ }).check();
  await page.fill("#email", "web@example.org");
  page.ear.expect(/^422 for /, /status of 422/);
  await page.getByRole("button", { name: "Make the subscription" }).click();
  await page.locator("#errors").getByRole("link").first().waitFor();
  assert.equal(await page.locator("#email").inputValue(), "web@example.org");
  await page.fill("#url", `${urls.receiver}/without-script`);
  await page.getByRole("button", { name: "Make the subscription" }).click();
  assert.match(await page.locator("#the-secret").textContent(), /^whsec_/);
  await page.getByRole("button", { name: /I have stored it/ }).click();
  // A page that a form was answered with would be asked for again with the form.
  await page.waitForURL(/\/app\/s\//);
  await until("the page tells that it is verified", async () => {
    await page.reload();
    return page.getByText("The endpoint is verified").isVisible();
  });
  const id = page.url().match(/\/app\/s\/([^/]+)/)[1];
  await page.getByRole("button", { name: "Send a test event" }).click();
  await page.waitForURL(/\/app\/n\//);
  await until("the page tells that it is delivered", async () => {
    await page.reload();
    return page.locator(".verdict.ok").isVisible();
  });
  const stands = () => portal("GET", `/subscriptions/${id}`);
  await page.see(`/app/s/${id}/settings`);
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByText("You paused it").waitFor();
  assert.ok((await stands()).pausedAt);
  await page.getByRole("button", { name: "Resume", exact: true }).click();
  await page.getByRole("button", { name: "Pause", exact: true }).waitFor();
  assert.ok(!(await stands()).pausedAt);
  await page.end();
  await unsubscribe(id);
});

test("a list is filtered, one of it is sent again, and a replay is counted", async () => {
  const { failing } = content();
  const page = await entered({}, withoutScript);
  await page.see(`/app/s/${failing}/deliveries`);
  await page.selectOption("#status", "FAILED,GIVEN_UP");
  await page.getByRole("button", { name: "Apply" }).click();
  await page.waitForURL(/status=FAILED%2CGIVEN_UP/);
  await page.locator("tbody tr a").first().click();
  await page.waitForURL(/\/app\/n\//);
  await page.getByRole("button", { name: "Resend", exact: true }).click();
  await page.locator(".flash", { hasText: "It is sent again" }).waitFor();
  await page.see(`/app/s/${failing}/replays/new`);
  await page.fill("#since", new Date(Date.now() - 3_600_000).toISOString().slice(0, 16));
  await page.getByRole("button", { name: "Count first" }).click();
  await page.getByText(/events? (was|were) examined/).waitFor();
  await page.end();
});
