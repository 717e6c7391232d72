// What holds on every page: it is accessible in both themes, fits a narrow screen, breaks no policy, asks no other origin.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { PLACES, close, overflow, pages, refusal, signedIn, tab, violations } from "./lib/browser.mjs";

after(close);

/** Answers of pages that are there to be refused or not found. */
const expectMissing = (page, path) => path === "/console/nothing-here" && page.ear.expect(...refusal("404"));

test("the navigation leads to every place", async () => {
  const page = await signedIn("admin");
  const links = await page.locator('nav[aria-label="Places"] a[data-key]').evaluateAll((all) => all.map((link) => [link.getAttribute("href"), link.dataset.key]));
  assert.deepEqual(links.map(([href]) => href).sort(), [...PLACES].sort());
  assert.equal(new Set(links.map(([, key]) => key)).size, links.length, "a key leads to two places");
  for (const [href] of links) {
    await page.locator(`nav[aria-label="Places"] a[data-key][href="${href}"]`).click();
    await page.waitForURL(`**${href}`);
    assert.equal(await page.locator('nav[aria-label="Places"] a[aria-current="page"]').getAttribute("href"), href);
  }
  await page.end();
});

for (const theme of ["light", "dark"]) {
  test(`every page is accessible, ${theme}`, async (t) => {
    const page = await signedIn("admin", { preferences: { theme, live: "off" } });
    for (const path of pages()) {
      await t.test(path, async () => {
        expectMissing(page, path);
        await page.see(path);
        assert.equal(await page.locator("html").getAttribute("data-theme"), theme);
        assert.equal(await page.locator("h1").count(), 1);
        assert.match(await page.title(), / · Postrider$/);
        assert.deepEqual(await violations(page), []);
        assert.deepEqual(await page.locator("[style], [onclick], [onload], [onerror], script:not([src]), style").count(), 0);
      });
    }
    await page.end();
  });
}

test("every page is accessible to a viewer, whose acts are disabled with the reason", async (t) => {
  const page = await signedIn("viewer", { preferences: { live: "off" } });
  for (const path of pages()) {
    await t.test(path, async () => {
      expectMissing(page, path);
      // What only begins an act is for those who may do it; the page says so.
      if (path.startsWith("/console/jobs/new")) page.ear.expect(...refusal("403"));
      await page.see(path);
      assert.deepEqual(await violations(page), []);
    });
  }
  await page.end();
});

test("the sign-in is accessible in both themes", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await tab({ colorScheme });
    await page.see("/console/sign-in");
    assert.deepEqual(await violations(page), []);
    await page.end();
  }
});

for (const width of [320, 768, 1600]) {
  test(`no page is wider than the screen, ${width} px`, async (t) => {
    const page = await signedIn("admin", { viewport: { width, height: 800 }, preferences: { live: "off" } });
    for (const path of pages()) {
      await t.test(path, async () => {
        expectMissing(page, path);
        await page.see(path);
        assert.deepEqual(await overflow(page), []);
      });
    }
    await page.end();
  });
}

test("text of strangers is shown as text", async (t) => {
  const page = await signedIn("admin", { preferences: { live: "off" } });
  for (const path of pages()) {
    await t.test(path, async () => {
      expectMissing(page, path);
      await page.see(path);
      assert.doesNotMatch(await page.title(), /harmed/);
      assert.equal(await page.locator('img, iframe, object, [hx-get], main b[hx-trigger], main script').count(), 0);
      const bare = await page.evaluate(() => /[\u202a-\u202e\u2066-\u2069]/.test(document.querySelector("main").innerText));
      assert.equal(bare, false, "a mark that turns the direction of text stands bare");
    });
  }
  await page.end();
});

test("a page says what a browser may do", async () => {
  const page = await signedIn("viewer");
  const answer = await page.see("/console");
  const headers = answer.headers();
  const policy = headers["content-security-policy"];
  for (const part of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'"]) {
    assert.ok(policy.includes(part), `${part} is not in ${policy}`);
  }
  assert.doesNotMatch(policy, /unsafe|\*/);
  assert.equal(headers["x-content-type-options"], "nosniff");
  // Forms of the console say where they come from; other sites learn nothing.
  assert.equal(headers["referrer-policy"], "same-origin");
  assert.match(headers["cache-control"], /no-store|no-cache/);
  assert.equal(await answer.headerValue("content-encoding"), "gzip");
  await page.end();
});
