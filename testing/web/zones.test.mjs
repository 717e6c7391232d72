// Times are those of the viewer's zone, written by the script at the first visit and by the server afterwards.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, signedIn } from "./lib/browser.mjs";
import { content } from "./lib/world.mjs";

after(close);

const times = (page) =>
  page.locator("main time[datetime]").evaluateAll((all) => all.map((element) => [element.dateTime, element.dataset.format, element.textContent, element.title]));

/** As the console writes times, by other means than its own. */
function written(at, zone, format) {
  const date = new Date(at);
  const part = (options) => new Intl.DateTimeFormat("en-US", { timeZone: zone, ...options }).format(date);
  const day = `${part({ weekday: "short" })} ${part({ day: "numeric" })} ${part({ month: "short" })}`;
  const clock = date.toLocaleTimeString("sv-SE", { timeZone: zone });
  return { time: clock, minute: clock.slice(0, 5), date: day, datetime: `${day}, ${clock}` }[format] ?? `${day} ${part({ year: "numeric" })}, ${clock} ${zone}`;
}

// Chromium knows Asia/Kolkata by its older name.
const INDIA = "Asia/Calcutta";

for (const zone of ["Europe/Riga", INDIA, "America/Los_Angeles"]) {
  test(`times are those of ${zone}`, async () => {
    const page = await signedIn("viewer", { timezoneId: zone, preferences: { live: "off" } });
    for (const path of [`/console/dead-letters/${content().deadLetter}`, "/console/audit"]) {
      await page.see(path);
      const found = await times(page);
      assert.ok(found.length > 0, `times on ${path}`);
      for (const [at, format, text, title] of found) {
        assert.equal(title, written(at, zone, "full"));
        if (format !== "ago") assert.equal(text, written(at, zone, format));
      }
    }
    assert.equal(await page.locator("html").getAttribute("data-tz"), zone);
    await page.end();
  });
}

test("the first page that a browser ever opens has them too, and its own choice counts more", async () => {
  const page = await signedIn("viewer", { timezoneId: INDIA });
  await page.context().clearCookies({ name: "pr_prefs" });
  await page.see("/console/audit");
  for (const [at, , , title] of await times(page)) assert.equal(title, written(at, INDIA, "full"));
  await page.keyboard.press("?");
  await page.getByLabel("Time zone").selectOption("UTC");
  for (const [at, , , title] of await times(page)) assert.equal(title, written(at, "UTC", "full"));
  await page.see("/console/audit");
  assert.equal(await page.locator("html").getAttribute("data-tz"), "UTC");
  await page.end();
});
