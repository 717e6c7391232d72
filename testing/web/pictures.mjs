// Pictures of every page, in both themes and on a narrow screen: node pictures.mjs FOLDER

import { join } from "node:path";
import { close, pages, refusal, signedIn, tab } from "./lib/browser.mjs";
import { entered, pages as dashboard } from "./lib/dashboard.mjs";

const folder = process.argv[2];
const named = (path) => path.replace(/^\/console\/?/, "").replace(/[^a-z0-9]+/gi, "-").slice(0, 48).replace(/^-|-$/g, "") || "now";
const ways = {
  light: { preferences: { theme: "light", tz: "Europe/Riga", live: "off" } },
  dark: { preferences: { theme: "dark", tz: "Europe/Riga", live: "off" } },
  narrow: { viewport: { width: 320, height: 800 }, preferences: { theme: "light", tz: "Europe/Riga", live: "off" } },
};

for (const [way, options] of Object.entries(ways)) {
  const alone = await tab({ ...options, preferences: undefined, colorScheme: way === "dark" ? "dark" : "light" });
  await alone.see("/console/sign-in");
  await alone.screenshot({ path: join(folder, `sign-in-${way}.png`), fullPage: true });
  await alone.end();
  const page = await signedIn("admin", { viewport: { width: 1280, height: 860 }, ...options });
  page.ear.expect(...refusal("..."));
  for (const path of pages()) {
    await page.see(path);
    await page.screenshot({ path: join(folder, `${named(path)}-${way}.png`), fullPage: true, animations: "disabled" });
  }
  await page.end();
  const visit = await entered({ theme: options.preferences.theme, timeZone: "Europe/Riga" }, { viewport: { width: 1280, height: 860 }, ...options, preferences: undefined });
  visit.ear.expect(...refusal("..."));
  for (const path of await dashboard()) {
    await visit.see(path);
    await visit.screenshot({ path: join(folder, `${named(path)}-${way}.png`), fullPage: true, animations: "disabled" });
  }
  await visit.end();
}
await close();
