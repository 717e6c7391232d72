// Pictures of what pages are made of, compared with those of pictures/: every part of the gallery, and pages whose content is always the same, in
// both themes and on a narrow screen. UPDATE_PICTURES=1 makes them again; look at what changed before you keep it.
//
// Pages with what happens are not among them: times and identifiers of a running installation differ from run to run. Fonts are those of
// package-lock.json, and drawn as fonts.conf says, whatever the machine has. Another version of Chromium draws a little differently: with one, nothing is compared.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { close, open, refusal, signedIn, tab } from "./lib/browser.mjs";
import { packages } from "./lib/world.mjs";

const { PNG } = packages("pngjs");
const { default: pixelmatch } = await import(pathToFileURL(packages.resolve("pixelmatch")));

const KEPT = fileURLToPath(new URL("pictures/", import.meta.url));
const FAILED = join(dirname(process.env.CONTENT), "pictures");
const UPDATES = Boolean(process.env.UPDATE_PICTURES);
/** How many of a thousand pixels may differ. */
const DIFFERENT = 1;

const font = (name, weight) => readFileSync(packages.resolve(`@fontsource/${name}/files/${name}-latin-${weight}-normal.woff2`)).toString("base64");
const face = (family, name, weight) =>
  `@font-face { font-family: "${family}"; font-weight: ${weight}; src: url(data:font/woff2;base64,${font(name, weight)}) format("woff2") }`;
const FONTS = `${face("Kept", "inter", 400)} ${face("Kept", "inter", 600)} ${face("Kept mono", "jetbrains-mono", 400)}
  * { font-family: "Kept" !important; font-synthesis: none !important }
  code, pre, kbd, .mono, :is(code, pre, kbd, .mono) * { font-family: "Kept mono" !important }`;
/** What those fonts have. */
const KNOWN = /^[\u0000-\u00ff\u2000-\u206f\u20ac\u2122\u2191\u2193\u2212]*$/;

const WAYS = {
  light: { colorScheme: "light", viewport: { width: 1280, height: 860 } },
  dark: { colorScheme: "dark", viewport: { width: 1280, height: 860 } },
  narrow: { colorScheme: "light", viewport: { width: 320, height: 800 } },
};
/** Pages whose content is always the same. */
const PAGES = {
  "page-missing": "/console/nothing-here",
  "page-preferences": "/console/preferences",
  "page-nothing-found": "/console/search?q=no-such-thing",
  "page-none-match": "/console/dead-letters/list?reseller=no-such-reseller",
};

// How letters are drawn is not the machine's either.
process.env.FONTCONFIG_FILE = fileURLToPath(new URL("fonts.conf", import.meta.url));
const browser = await open(["--disable-gpu", "--disable-lcd-text", "--disable-font-subpixel-positioning", "--font-render-hinting=none", "--force-color-profile=srgb"]);
const version = browser.version().split(".")[0];
const madeWith = existsSync(join(KEPT, "chromium")) ? readFileSync(join(KEPT, "chromium"), "utf8").trim() : "";
const skip = !UPDATES && madeWith !== version && `the pictures were made with Chromium ${madeWith}, this is ${version}`;
if (UPDATES) {
  mkdirSync(KEPT, { recursive: true });
  writeFileSync(join(KEPT, "chromium"), `${version}\n`);
}
after(close);

/** Compares a picture with the kept one. */
function compare(name, picture) {
  const kept = join(KEPT, `${name}.png`);
  if (UPDATES) return writeFileSync(kept, picture);
  assert.ok(existsSync(kept), `there is no picture ${name}: UPDATE_PICTURES=1 scripts/web pictures makes it`);
  const [before, now] = [PNG.sync.read(readFileSync(kept)), PNG.sync.read(picture)];
  const { width, height } = before;
  const isOfSize = now.width === width && now.height === height;
  const difference = new PNG({ width, height });
  const pixels = isOfSize ? pixelmatch(before.data, now.data, difference.data, width, height, { threshold: 0.1 }) : Infinity;
  if (pixels * 1000 <= width * height * DIFFERENT) return;
  mkdirSync(FAILED, { recursive: true });
  writeFileSync(join(FAILED, `${name}.png`), picture);
  if (isOfSize) writeFileSync(join(FAILED, `${name}-difference.png`), PNG.sync.write(difference));
  const how = isOfSize ? `${pixels} of ${width * height} pixels differ` : `it is ${now.width} by ${now.height} and was ${width} by ${height}`;
  assert.fail(`${name}: ${how}; see ${FAILED}. UPDATE_PICTURES=1 scripts/web pictures keeps what it is now`);
}

/** Takes the fonts of the packages, and waits for them. */
async function fixed(page) {
  await page.addStyleTag({ content: FONTS });
  await page.evaluate(async () => {
    await Promise.all([...document.fonts].map((face) => face.load()));
    await document.fonts.ready;
  });
  const strange = await page.evaluate((known) => [...document.querySelector("main").innerText].filter((sign) => !new RegExp(known, "u").test(sign)), KNOWN.source);
  assert.deepEqual(strange, [], "signs that the fonts do not have look different on other machines");
}
const shot = (part) => part.screenshot({ animations: "disabled", caret: "hide" });

for (const [way, { colorScheme, viewport }] of Object.entries(WAYS)) {
  const options = { viewport, colorScheme, bypassCSP: true, timezoneId: "UTC" };
  const preferences = { theme: colorScheme, tz: "UTC", live: "off" };

  test(`the parts of the gallery look as they did, ${way}`, { skip }, async (t) => {
    const page = await signedIn("admin", { ...options, preferences });
    page.ear.expect(...refusal("404"));
    const answer = await page.see("/console/gallery");
    if (answer.status() === 404) {
      await page.end();
      return t.skip("this build has no gallery: it is in those with debug assertions, as make test uses");
    }
    await fixed(page);
    const names = await page.locator("main section[aria-labelledby]").evaluateAll((all) => all.map((section) => section.getAttribute("aria-labelledby")));
    assert.ok(names.length > 8, `the gallery has ${names.length} parts`);
    for (const name of names) {
      await t.test(name, async () => compare(`${name.replace(/^g-/, "")}-${way}`, await shot(page.locator(`main section[aria-labelledby="${name}"]`))));
    }
    await page.end();
  });

  test(`pages that are always the same look as they did, ${way}`, { skip }, async (t) => {
    const page = await signedIn("admin", { ...options, preferences });
    page.ear.expect(...refusal("404"));
    for (const [name, path] of Object.entries(PAGES)) {
      await t.test(path, async () => {
        await page.see(path);
        await fixed(page);
        compare(`${name}-${way}`, await shot(page.locator("main")));
      });
    }
    await page.end();
    const alone = await tab(options);
    await alone.see("/console/sign-in");
    await fixed(alone);
    compare(`page-sign-in-${way}`, await shot(alone.locator("body")));
    await alone.end();
  });
}
