// A real browser on the console: signed in by role, and with an ear for all that must not happen on any page.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { content, keys, packages, urls } from "./world.mjs";

const { chromium } = packages("playwright-core");
const AXE = readFileSync(packages.resolve("axe-core/axe.min.js"), "utf8");

/** Pages reached from the navigation, and those behind them. */
export const PLACES = [
  "/console", "/console/dead-letters", "/console/jobs", "/console/waiting", "/console/lanes", "/console/webpush", "/console/resellers", "/console/quota-requests",
  "/console/system", "/console/mails", "/console/pauses", "/console/audit", "/console/access",
];
export const pages = () => {
  const made = content();
  return [
    ...PLACES, "/console/dead-letters/list", "/console/dead-letters/resellers", `/console/dead-letters/${made.deadLetter}`, `/console/dead-letters/${made.pushDeadLetter}`,
    "/console/jobs/new?action=replay&lane=push", `/console/jobs/${made.job}`, `/console/resellers/${process.env.RESELLER_ID}`,
    `/console/subscriptions/${made.held}`, `/console/explain/${made.push}`, `/console/explain/${made.delivered}`, "/console/search?q=web", "/console/nothing-here",
    ...(process.env.GALLERY ? ["/console/gallery"] : []),
  ];
};

let browser;
export async function open() {
  // As root a browser has no sandbox; what it opens here is ours alone.
  browser ??= await chromium.launch({ executablePath: process.env.CHROMIUM, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });
  return browser;
}
export const close = async () => browser?.close();

/** What went wrong on a page: messages of the console, violations of the policy among them, requests to others, failed answers. */
class Ear {
  heard = [];
  expected = [];

  constructor(page) {
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) this.hear(`console ${message.type()}: ${message.text()} (${message.location().url})`);
    });
    page.on("pageerror", (error) => this.hear(`error: ${error.stack}`));
    page.on("request", (request) => {
      const known = [urls.console, urls.dashboard, process.env.PANEL_ORIGIN];
      if (!request.url().startsWith("data:") && !known.includes(new URL(request.url()).origin)) this.hear(`request to ${request.url()}`);
    });
    page.on("response", (response) => {
      if (response.status() >= 400) this.hear(`${response.status()} for ${response.url()}`);
    });
    page.on("dialog", (dialog) => {
      this.hear(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
  }

  hear(what) {
    if (!this.expected.some((pattern) => pattern.test(what))) this.heard.push(what);
  }

  /** From now on this is no fault. */
  expect(...patterns) {
    this.expected.push(...patterns);
  }

  hushed() {
    assert.deepEqual(this.heard, []);
  }
}

/** What a browser says, and a page answers, to what is refused or not there. */
export const refusal = (status) => [new RegExp(`^${status} for `), new RegExp(`the server responded with a status of ${status}`)];

/** A tab without a visit. */
export async function tab(options = {}) {
  const context = await (await open()).newContext({ timezoneId: "Europe/Riga", locale: "en-GB", viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  page.ear = new Ear(page);
  page.see = async (path) => {
    const answer = await page.goto(`${urls.console}${path}`);
    return answer;
  };
  page.end = async () => {
    await context.close();
    page.ear.hushed();
  };
  return page;
}

/** A tab signed in with the key of this role. */
export async function signedIn(role = "operator", { preferences, ...options } = {}) {
  const page = await tab(options);
  if (preferences) await page.context().addCookies([{ name: "pr_prefs", value: new URLSearchParams(preferences).toString(), url: urls.console, secure: true, sameSite: "Lax" }]);
  await page.see("/console/sign-in");
  await page.fill('[name="key"]', keys[role]);
  await page.click("main button");
  await page.waitForURL(`${urls.console}/console`);
  return page;
}

/** Violations that axe finds, one line each. */
export async function violations(page) {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { violations: found } = await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] });
    return found.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target.join(" ")}: ${node.failureSummary.split("\n").slice(1, 3).join(" ").trim()}`));
  });
}

/** What stands out of the page at the right, if the page can be moved sideways. */
export const overflow = (page) =>
  page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return [];
    const scrolls = (element) => element && element !== document.body && (getComputedStyle(element).overflowX !== "visible" || scrolls(element.parentElement));
    const out = [...document.body.querySelectorAll("*")].filter((element) => element.getBoundingClientRect().right > clientWidth + 1 && !scrolls(element.parentElement));
    return [`${scrollWidth} px wide in ${clientWidth}`, ...out.slice(0, 5).map((element) => `${element.tagName}.${element.className} ${element.textContent.trim().slice(0, 40)}`)];
  });
