// What on-call does when something is out of order: a poison message, an endpoint that fails, two people at once, servers that go away.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, refusal, signedIn, tab } from "./lib/browser.mjs";
import { failed, failing, mended, portal } from "./lib/deliveries.mjs";
import { start } from "./lib/lines.mjs";
import { ask, keys, operate, packages, reseller, until, urls } from "./lib/world.mjs";

after(close);

const opened = (page) => page.locator("dialog[open] form, main form.form:not(dialog form)").first();

/** A message of a stranger in the queue of the push lane. */
async function poison(body) {
  const connection = await packages("amqplib").connect(process.env.AMQP_URL);
  const channel = await connection.createConfirmChannel();
  const queue = `${process.env.POSTRIDER__AMQP__QUEUE_PREFIX ?? ""}push.ready`;
  channel.sendToQueue(queue, Buffer.from(body), { headers: { "x-of": "another program" }, contentType: "text/plain" });
  await channel.waitForConfirms();
  await connection.close();
}

test("a poison message is shown with what the broker handed back, and put aside with a note", async () => {
  const body = `not a message of ours ${Date.now()} <b>bold</b>`;
  await poison(body);
  const letter = await until("it is a dead letter", async () => {
    const { items } = await operate("GET", "/dead-letters?reason=MALFORMED");
    return items.find(({ state }) => state === "OPEN");
  });
  const page = await signedIn("operator");
  await page.see("/console/dead-letters/list?reason=MALFORMED");
  await page.locator(`main a[href*="${letter.id}"]`).first().click();
  await page.getByRole("heading", { name: "What the broker handed back" }).waitFor();
  const shown = await page.locator('section[aria-labelledby="broker"]').textContent();
  assert.ok(shown.includes(body), shown);
  assert.match(shown, /x-of.*another program/s);
  await page.locator("main").getByRole("link", { name: /^Discard/ }).first().click();
  const form = opened(page);
  await form.getByLabel(/note/i).fill("another program published it, see incident 18");
  await form.getByRole("button", { name: /^Discard/ }).click();
  await page.locator("main").getByText("another program published it, see incident 18").first().waitFor();
  assert.equal((await operate("GET", `/dead-letters/${letter.id}`)).state, "DISCARDED");
  await page.end();
});

for (const [how, javaScriptEnabled] of [["", true], [", without JavaScript", false]]) {
  test(`an endpoint fails: its group, its pause, which the reseller sees and cannot end, and what is sent again${how}`, async () => {
    const those = await failing("incident", 3);
    const page = await signedIn("operator", { javaScriptEnabled });
    await page.see(`/console/dead-letters?lane=reseller&${those.query}`);
    await page.locator("main").getByText("3", { exact: true }).first().waitFor();
    await page.see(`/console/subscriptions/${those.id}`);
    await page.locator("main").getByRole("link", { name: /^Pause/ }).first().click();
    const form = opened(page);
    await form.getByLabel(/note/i).fill("answers 404; its reseller is at it");
    if (await form.getByLabel(/^Type/).count()) await form.getByLabel(/^Type/).fill(reseller);
    await form.getByRole("button", { name: /^Pause/ }).click();
    await page.getByRole("status").getByText(/paused/i).first().waitFor();

    // The reseller sees it held, and its own resuming changes nothing of that.
    const seen = () => portal("GET", `/subscriptions/${those.id}`);
    assert.ok((await seen()).heldAt, "the reseller does not see the pause");
    await ask("POST", `${urls.portal}/subscriptions/${those.id}/resume`, { key: keys.reseller, body: {} }).catch((error) => assert.match(error.message, / 409|422/));
    assert.ok((await seen()).heldAt, "the reseller has ended the pause of an operator");
    await those.happens();
    await until("what comes waits", async () => {
      await page.reload();
      return (await page.locator('section[aria-labelledby="waiting"]').textContent()).includes("1");
    });

    await mended();
    await page.locator("main").getByRole("link", { name: /^Resume/ }).first().click();
    const again = opened(page);
    await again.getByLabel(/note/i).fill("the endpoint works again");
    await again.getByRole("button", { name: /^Resume/ }).click();
    await page.getByRole("status").getByText(/goes on/i).first().waitFor();
    assert.ok(!(await seen()).heldAt);

    await page.see(`/console/jobs/new?action=replay&${those.query}&since=7d`);
    await page.getByLabel(/note/i).first().fill("the endpoint works again");
    await page.getByRole("button", { name: /^(Replay|Start)/ }).click();
    await page.waitForURL(/\/console\/jobs\/[0-9a-f-]{36}$/);
    await until("nothing is dead any more", async () => (await those.open()).length === 0);
    await until("the page tells of it", async () => {
      if (!javaScriptEnabled) await page.reload();
      return page.locator('section[aria-labelledby="outcome"] .stats div', { hasText: "Delivered" }).getByText("3", { exact: true }).isVisible();
    });
    await page.end();
    await those.forget();
  });
}

test("of two operators at once one is refused with the reason, and sees within seconds what the other does", async () => {
  const those = await failed("both", 12);
  const [ada, grace] = [await signedIn("operator"), await signedIn("admin")];
  grace.ear.expect(...refusal("409"));
  const [letter] = await those.open();
  for (const page of [ada, grace]) {
    await page.see(`/console/dead-letters/${letter.id}`);
    await page.locator("main").getByRole("link", { name: /^Replay/ }).first().click();
    await opened(page).waitFor();
  }
  await opened(ada).getByRole("button", { name: /^Replay/ }).click();
  await ada.locator("main").getByText(/replayed/i).first().waitFor();
  await opened(grace).getByRole("button", { name: /^Replay/ }).click();
  await grace.locator("main").getByText(/replayed|resolved|not open/i).first().waitFor();

  const job = await operate("POST", "/dead-letters/jobs", { action: "replay", filter: { subscription: those.id }, perSecond: 1, note: "slowly" });
  for (const page of [ada, grace]) await page.see(`/console/jobs/${job.id}`);
  await ada.locator("main").getByRole("link", { name: /^Pause/ }).first().click();
  const form = opened(ada);
  await form.getByLabel(/note/i).fill("wait for the other team");
  await form.getByRole("button", { name: /^Pause/ }).click();
  await ada.locator("main").getByText("Paused", { exact: true }).first().waitFor();
  // A page asks again every two seconds, so that it takes three on a machine that is not busy; this one may be.
  await grace.locator("main").getByText("Paused", { exact: true }).first().waitFor({ timeout: 10_000 });
  await operate("POST", `/dead-letters/jobs/${job.id}/cancel`, { note: "the test is over" });
  await ada.end();
  await grace.end();
  await those.forget();
});

test("the database, then the broker go away under an open page: it says so, keeps what was typed, and recovers by itself", async () => {
  const world = await start();
  try {
    const page = await tab();
    page.ear.expect(new RegExp(`^request to ${world.console}`), /favicon/, ...refusal("(404|503)"));
    await page.goto(`${world.console}/console/sign-in`);
    await page.fill('[name="key"]', keys.operator);
    await page.click("main button");
    await page.waitForURL(`${world.console}/console`);
    await page.evaluate(() => (window.marked = true));

    world.database.cut();
    await page.locator("main").getByText("the database is away").first().waitFor();
    world.database.mend();
    await page.locator("main").getByText("the database is away").first().waitFor({ state: "detached", timeout: 40_000 });

    world.broker.cut();
    const away = page.locator("main").getByText(/The broker cannot be reached/).first();
    await away.waitFor({ timeout: 40_000 });
    world.broker.mend();
    await away.waitFor({ state: "detached", timeout: 60_000 });
    assert.ok(await page.evaluate(() => window.marked), "the page was loaded again");

    // What is typed into an act stays through it, and is sent once it can be.
    await page.goto(`${world.console}/console/lanes/reseller/pause`);
    const note = page.getByLabel(/note/i).first();
    await note.fill("typed before it went away");
    world.database.cut();
    await page.getByLabel(/^Type/).first().fill("reseller");
    await page.getByRole("button", { name: /^Pause/ }).click();
    await page.getByRole("alert").or(page.getByRole("heading", { level: 1 })).first().waitFor();
    world.database.mend();
    await page.goBack();
    assert.equal(await note.inputValue(), "typed before it went away");
    await until("the act is done", async () => {
      await page.getByLabel(/^Type/).first().fill("reseller");
      await page.getByRole("button", { name: /^Pause/ }).click();
      await page.waitForLoadState();
      const { items } = await operate("GET", "/pauses");
      if (items.some((pause) => pause.note === "typed before it went away")) return true;
      await page.goBack();
      return false;
    });
    await page.end();
  } finally {
    await operate("POST", "/lanes/reseller/resume", { note: "the test is over" }).catch(() => undefined);
    await world.stop();
  }
});
