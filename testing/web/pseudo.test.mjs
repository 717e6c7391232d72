// Texts of other languages are longer than ours: each page in a language that does not exist, on a narrow screen and on a wide one. Nothing of it may
// be cut off, stand out of what is around it, or lie over something else.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, overflow, pages, refusal, signedIn, tab } from "./lib/browser.mjs";
import { entered, pages as dashboard } from "./lib/dashboard.mjs";
import { html } from "./lib/gallery.mjs";
import { faults, lengthen } from "./lib/pseudo.mjs";
import { urls } from "./lib/world.mjs";

after(close);

const WIDTHS = [320, 1280];

/** What does not fit on this page in its own language made longer, with each of its dialogs open by itself, at each width. */
async function misfits(page) {
  await lengthen(page);
  const found = [];
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 });
    const say = (all) => found.push(...all.map((fault) => `${width} px: ${fault}`));
    say(await overflow(page));
    say(await faults(page));
    for (const dialog of await page.locator("main dialog").all()) {
      await dialog.evaluate((element) => element.showModal());
      say(await faults(page));
      await dialog.evaluate((element) => element.close());
    }
  }
  return found;
}

test("longer texts fit in every part of the gallery", async () => {
  const page = await tab();
  await page.setContent(html("light"));
  assert.deepEqual(await misfits(page), []);
  assert.match(await page.locator("h1").textContent(), /^\[GG.*\]$/);
  await page.end();
});

for (const [what, styles, fault] of [
  ["cut off", ".btn { width: 60px; overflow: hidden; white-space: nowrap; overflow-wrap: normal }", /stands out of \w+\.btn/],
  ["standing out", ".card h2 { width: 10px; overflow-wrap: normal }", /stands out of h2/],
  ["lying over something else", ".head .lead { margin-top: -28px }", / lies over /],
]) {
  test(`text is found that is ${what}`, async () => {
    const page = await tab();
    await page.setContent(html("light", styles));
    const found = await misfits(page);
    assert.ok(found.some((one) => fault.test(one)), found.join("\n"));
    await page.end();
  });
}

test("what is no text of ours stays as it is", async () => {
  const page = await tab();
  const kept = "12,345 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d hooks.example.com whsec_abc domain.created eventId 95 % –";
  await page.setContent(`<p>${kept}</p><p><code>some code</code> <time>some time</time> <span class="mono">some id</span></p><p title="Some words">Some words, 12.</p>`);
  await lengthen(page);
  assert.deepEqual(await page.locator("p").allTextContents(), [kept, "some code some time some id", "[SSömmë wwörrdss, 12.]"]);
  assert.equal(await page.locator("p[title]").getAttribute("title"), "[SSömmë wwörrds]");
  await page.end();
});

test("longer texts fit on every page of the console", async (t) => {
  const page = await signedIn("admin", { preferences: { live: "off" } });
  page.ear.expect(...refusal("404"));
  for (const path of pages()) {
    await t.test(path, async () => {
      await page.see(path);
      assert.deepEqual(await misfits(page), []);
    });
  }
  await page.end();
});

test("longer texts fit on every page of the dashboard", async (t) => {
  const page = await entered();
  await page.context().addCookies([{ name: "pr_prefs", value: "live=off&tz=Europe%2FRiga", url: urls.dashboard, secure: true, sameSite: "Lax" }]);
  page.ear.expect(...refusal("404"));
  for (const path of await dashboard()) {
    await t.test(path, async () => {
      await page.see(path);
      assert.deepEqual(await misfits(page), []);
    });
  }
  await page.end();
});

test("longer texts fit on pages without a visit", async () => {
  const page = await tab();
  for (const url of [`${urls.console}/console/sign-in`, `${urls.dashboard}/app/expired`]) {
    await page.goto(url);
    assert.deepEqual(await misfits(page), [], url);
  }
  await page.end();
});

test("longer texts fit in the help and in the palette", async () => {
  const page = await signedIn("viewer", { preferences: { live: "off" } });
  for (const [key, name] of [["?", "Keys and preferences"], ["Control+k", "Go to a place or act"]]) {
    await page.see("/console");
    await page.keyboard.press(key);
    await page.getByRole("dialog", { name }).waitFor();
    assert.deepEqual(await misfits(page), [], name);
  }
  await page.end();
});
