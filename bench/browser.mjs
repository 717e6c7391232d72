// Times in Chromium for `make bench ARGS=pages`: when a page shows its first contents, and when rows are painted after a filter or the next page
// was chosen. Where the pages are stands in ASKED; what was measured is written to standard output.

import { createServer } from "node:http";
import { once } from "node:events";
import { createRequire } from "node:module";

const { chromium } = createRequire(`${process.env.WEB_PACKAGES}/`)("playwright-core");
const asked = JSON.parse(process.env.ASKED);
const LOADS = 20;

const server = createServer((_, response) => response.setHeader("content-type", "text/html").end("<!doctype html><title>One line</title><p>One line"));
server.listen(0, "127.0.0.1");
await once(server, "listening");
const floorUrl = `http://127.0.0.1:${server.address().port}/`;

// As root a browser has no sandbox; what it opens here is ours alone.
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
// Nothing but what is measured changes the page.
for (const url of [asked.console, asked.dashboard]) await context.addCookies([{ name: "pr_prefs", value: "live=off&tz=UTC", url, secure: true, sameSite: "Lax" }]);
const page = await context.newPage();
// When what a page came with is painted, on the clock of all pages.
await page.addInitScript(() => {
  window.painted = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.timeOrigin + performance.now()))));
  addEventListener("DOMContentLoaded", () => (window.ready = window.painted()));
});

await page.goto(`${asked.console}/console/sign-in`);
await page.fill('[name="key"]', asked.key);
await page.click("main button");
await page.waitForURL(`${asked.console}/console`);
await page.goto(`${asked.dashboard}/app/enter#t=${asked.token}`);
await page.waitForURL(`${asked.dashboard}/app`);

const firstContents = () =>
  page.evaluate(() => new Promise((done) => {
    new PerformanceObserver((list) => list.getEntriesByName("first-contentful-paint").forEach((entry) => done(entry.startTime))).observe({ type: "paint", buffered: true });
  }));

async function loads(url) {
  const times = [];
  for (let load = -2; load < LOADS; load += 1) {
    await page.goto(url);
    const time = await firstContents();
    if (load >= 0) times.push(time);
    // A reseller is let do fifty requests in a second.
    await page.waitForTimeout(20);
  }
  return times;
}

/** From the choice in a filter to painted rows, forth and back. */
async function filters(url, name, value) {
  await page.goto(url);
  const times = [];
  for (let turn = -2; turn < LOADS; turn += 1) {
    const chosen = turn % 2 === 0 ? value : "";
    const time = await page.evaluate(([name, chosen]) => new Promise((done) => {
      const field = document.querySelector(`form[data-filters] [name="${name}"]`);
      const started = performance.timeOrigin + performance.now();
      const seen = new MutationObserver(async () => {
        if ((new URLSearchParams(location.search).get(name) ?? "") !== chosen) return;
        seen.disconnect();
        done((await window.painted()) - started);
      });
      seen.observe(document.querySelector("#main"), { subtree: true, childList: true, attributes: true, characterData: true });
      field.value = chosen;
      field.dispatchEvent(new Event("change", { bubbles: true }));
    }), [name, chosen]);
    if (turn >= 0) times.push(time);
    await page.waitForTimeout(50);
  }
  return times;
}

/** From the choice of the next page to its painted rows. */
async function next(url) {
  const times = [];
  for (let turn = -2; turn < LOADS; turn += 1) {
    await page.goto(url);
    await page.evaluate(() => window.ready);
    const link = page.locator('nav.pager a[rel="next"]');
    const to = new URL(await link.getAttribute("href"), url).toString();
    const started = await page.evaluate(() => {
      document.querySelector('nav.pager a[rel="next"]').click();
      return performance.timeOrigin + performance.now();
    });
    await page.waitForURL(to);
    const ended = await page.evaluate(() => window.ready);
    if (turn >= 0) times.push(ended - started);
  }
  return times;
}

const first = [
  ["Now", `${asked.console}/console`],
  ["groups", `${asked.console}/console/dead-letters`],
  ["dead letters", `${asked.console}/console/dead-letters/list`],
  ["lanes", `${asked.console}/console/lanes`],
  ["resellers", `${asked.console}/console/resellers`],
  ["overview of the dashboard", `${asked.dashboard}/app`],
  ["deliveries of the dashboard", `${asked.dashboard}/app/deliveries`],
];
const rows = [
  ["dead letters of a lane", () => filters(`${asked.console}/console/dead-letters/list`, "lane", "push")],
  ["groups of a lane", () => filters(`${asked.console}/console/dead-letters`, "lane", "push")],
  ["next page of dead letters", () => next(`${asked.console}/console/dead-letters/list`)],
  ["failed deliveries of the dashboard", () => filters(`${asked.dashboard}/app/deliveries`, "status", "FAILED,GIVEN_UP")],
];

const seen = { floor: await loads(floorUrl), first: [], rows: [] };
for (const [name, url] of first) seen.first.push({ name, millis: await loads(url) });
for (const [name, measured] of rows) seen.rows.push({ name, millis: await measured() });
await browser.close();
server.close();
console.log(JSON.stringify(seen));
