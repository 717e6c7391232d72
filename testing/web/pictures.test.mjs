// Pictures of what pages are made of, compared with those of pictures/: every part of the gallery, in both themes and on a narrow screen.
// UPDATE_PICTURES=1 scripts/web pictures makes them again; look at what changed before you keep it.
//
// The gallery is the same in every installation, so that its template is shown as it stands. Letters are those of the packages, drawn as fonts.conf
// says, whatever the machine has and is set to.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { gallery, html } from "./lib/gallery.mjs";
import { packages } from "./lib/world.mjs";

const { chromium } = packages("playwright-core");
const { PNG } = packages("pngjs");

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const KEPT = here("pictures/");
const FAILED = join(dirname(process.env.CONTENT), "pictures");
const UPDATES = Boolean(process.env.UPDATE_PICTURES);
/** The version of Chromium that drew them: another one may draw otherwise, which is told and fails nothing. */
const DRAWN_BY = here("pictures/chromium.txt");
/** By how much of 255 a colour has to differ, and in how many pixels of a picture: fewer are rounding, and not seen. */
const [SHADE, PIXELS] = [8, 20];

const font = (name, weight) => readFileSync(packages.resolve(`@fontsource/${name}/files/${name}-latin-${weight}-normal.woff2`)).toString("base64");
const face = (family, name, weight) =>
  `@font-face { font-family: "${family}"; font-weight: ${weight}; src: url(data:font/woff2;base64,${font(name, weight)}) format("woff2") }`;
const FONTS = `${face("Kept", "inter", 400)} ${face("Kept", "inter", 600)} ${face("Kept mono", "jetbrains-mono", 400)}
  *, ::before { font-family: "Kept" !important; font-synthesis: none !important }
  code, pre, kbd, .mono, :is(code, pre, kbd, .mono) * { font-family: "Kept mono" !important }`;
/** What those fonts have. */
const KNOWN = "^[\\u0000-\\u00ff\\u2013\\u2014\\u2018-\\u201d\\u2026]*$";

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  env: { ...process.env, FONTCONFIG_FILE: here("fonts.conf") },
  args: [
    "--disable-gpu", "--disable-lcd-text", "--disable-font-subpixel-positioning", "--font-render-hinting=none", "--force-color-profile=srgb",
    // As root a browser has no sandbox; what it shows here is ours alone.
    ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
  ],
});
after(() => browser.close());
const version = browser.version().split(".")[0];
if (UPDATES) writeFileSync(DRAWN_BY, `${version}\n`);
const isSame = readFileSync(DRAWN_BY, "utf8").trim() === version;

/** The pixels in which two pictures of one size differ, marked in red on white. */
function difference(before, now) {
  const marked = new PNG({ width: before.width, height: before.height });
  marked.data.fill(255);
  let pixels = 0;
  for (let at = 0; at < before.data.length; at += 4) {
    if (![0, 1, 2].some((channel) => Math.abs(before.data[at + channel] - now.data[at + channel]) > SHADE)) continue;
    pixels += 1;
    marked.data.set([200, 0, 0], at);
  }
  return { pixels, marked };
}

/** Compares a picture with the kept one. */
function compare(t, name, picture) {
  const kept = join(KEPT, `${name}.png`);
  if (UPDATES) return writeFileSync(kept, picture);
  assert.ok(existsSync(kept), `there is no picture ${name}: UPDATE_PICTURES=1 scripts/web pictures makes it`);
  const [before, now] = [PNG.sync.read(readFileSync(kept)), PNG.sync.read(picture)];
  const isOfSize = now.width === before.width && now.height === before.height;
  const { pixels, marked } = isOfSize ? difference(before, now) : {};
  if (isOfSize && pixels <= PIXELS) return;
  mkdirSync(FAILED, { recursive: true });
  writeFileSync(join(FAILED, `${name}.png`), picture);
  if (isOfSize) writeFileSync(join(FAILED, `${name}-difference.png`), PNG.sync.write(marked));
  const how = isOfSize ? `${pixels} pixels differ` : `it is ${now.width} by ${now.height} and was ${before.width} by ${before.height}`;
  const told = `${name}: ${how}, with Chromium ${browser.version()}; see ${FAILED}. UPDATE_PICTURES=1 scripts/web pictures keeps what it is now`;
  if (isSame) assert.fail(told);
  t.diagnostic(told);
}

test("the gallery stands by itself", () => assert.doesNotMatch(gallery, /\{[{%#]/));

for (const [way, theme, width] of [["light", "light", 1280], ["dark", "dark", 1280], ["narrow", "light", 320]]) {
  test(`the parts of the gallery look as they did, ${way}`, async (t) => {
    const context = await browser.newContext({ viewport: { width, height: 860 }, colorScheme: theme, reducedMotion: "reduce" });
    const page = await context.newPage();
    await page.setContent(html(theme, FONTS));
    await page.evaluate(async () => {
      await Promise.all([...document.fonts].map((one) => one.load()));
      await document.fonts.ready;
    });
    const strange = await page.evaluate((known) => [...document.querySelector("main").innerText].filter((sign) => !new RegExp(known, "u").test(sign)), KNOWN);
    assert.deepEqual(strange, [], "signs that the fonts do not have look different on other machines");
    const names = await page.locator("main section[aria-labelledby]").evaluateAll((all) => all.map((section) => section.getAttribute("aria-labelledby")));
    assert.ok(names.length > 8, `the gallery has ${names.length} parts`);
    const picture = (name) => `${name.replace(/^g-/, "")}-${way}`;
    const drawn = names.map((name) => `${picture(name)}.png`);
    const others = readdirSync(KEPT).filter((file) => file.endsWith(`-${way}.png`) && !drawn.includes(file));
    assert.deepEqual(others, [], "pictures of parts that the gallery does not have any more: remove them");
    for (const name of names) {
      const part = page.locator(`main section[aria-labelledby="${name}"]`);
      await t.test(name, async (t) => compare(t, picture(name), await part.screenshot({ animations: "disabled", caret: "hide" })));
    }
    await context.close();
  });
}
