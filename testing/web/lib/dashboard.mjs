// A browser in a visit to the dashboard of a reseller.

import { tab } from "./browser.mjs";
import { ask, content, keys, urls } from "./world.mjs";

const ALL = ["bodies", "manage", "resend", "secrets.reveal", "secrets.rotate", "quota"];
/** A link to the dashboard of the reseller, which may do everything unless it is said otherwise. */
export const link = async (more = {}) =>
  (await ask("POST", `${urls.portal}/portal-links`, { key: keys.reseller, body: { person: { id: "web" }, capabilities: ALL, ...more } })).url;

/** A tab whose visit began with a link. To open it takes JavaScript; where there is to be none, another tab goes on. */
export async function entered(more = {}, options = {}) {
  const { javaScriptEnabled = true } = options;
  let page = await tab({ ...options, javaScriptEnabled: true });
  await page.goto(await link(more));
  await page.waitForURL(`${urls.dashboard}/app`);
  if (!javaScriptEnabled) {
    const cookies = await page.context().cookies();
    await page.end();
    page = await tab(options);
    await page.context().addCookies(cookies);
    await page.goto(`${urls.dashboard}/app`);
  }
  page.see = (path) => page.goto(`${urls.dashboard}${path}`);
  return page;
}

/** Every page, with what content.mjs has made. */
export async function pages() {
  const { subscription, failing } = content();
  const { items } = await ask("GET", `${urls.portal}/subscriptions/${failing}/notifications?status=FAILED,GIVEN_UP`, { key: keys.reseller });
  const at = (part, id = subscription) => `/app/s/${id}/${part}`;
  const parts = ["deliveries", "settings", "verify", "deactivate", "delete", "scheduled", "cancel?status=SCHEDULED", "retry-now", "quota", "secrets", "secrets/rotate", "replays", "replays/new", "metrics", "resend?status=FAILED"];
  return [
    "/app", "/app/subscriptions/new", "/app/deliveries", "/app/deliveries?status=FAILED,GIVEN_UP", "/app/deliveries?q=nothing",
    ...parts.map((part) => at(part)), at("deliveries", failing), at("metrics", failing), at("scheduled", failing), `/app/n/${items[0].id}`,
    "/app/live", "/app/resend?status=FAILED", "/app/event-types", "/app/event-types/domain.created", "/app/tools/signature", "/app/activity", "/app/activity/mails", "/app/preferences", "/app/nothing-here",
  ];
}
