// The services under test, as scripts/web has started them, and their JSON APIs.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const needed = (name) => {
  const value = process.env[name];
  if (!value) throw new Error(`the environment names no ${name}: run scripts/web`);
  return value;
};

/** Packages stand outside of the sources, where `import` does not look. */
export const packages = createRequire(`${needed("WEB_PACKAGES")}/`);

export const urls = {
  ingest: needed("INGEST_URL"),
  portal: needed("PORTAL_URL"),
  operator: needed("OPERATOR_URL"),
  receiver: needed("RECEIVER_URL"),
  swrve: needed("SWRVE_SIM_URL"),
  // By its name: a browser takes secure cookies of "localhost" without TLS.
  console: needed("OPERATOR_URL").replace("127.0.0.1", "localhost"),
  dashboard: needed("PORTAL_URL").replace("127.0.0.1", "localhost"),
};

export const keys = {
  ingest: needed("INGEST_KEY"),
  reseller: needed("RESELLER_KEY"),
  viewer: needed("VIEWER_KEY"),
  operator: needed("OPERATOR_KEY"),
  admin: needed("ADMIN_KEY"),
};

export const reseller = needed("RESELLER_ID");

/** One request, and what it answers, or the identifier of what it made; an answer other than 2xx is an error that says what was asked and what came. */
export async function ask(method, url, { key, body, headers = {} } = {}) {
  const answer = await fetch(url, {
    method,
    headers: {
      ...(key && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${url} answered ${answer.status}: ${text}`);
  if (!text && answer.headers.has("location")) return { id: answer.headers.get("location").split("/").at(-1) };
  return answer.headers.get("content-type")?.includes("json") ? JSON.parse(text) : text;
}

/** Asks the operator API. */
export const operate = (method, path, body, key = keys.admin) => ask(method, `${urls.operator}${path}`, { key, body });

/** Looks again and again until `look` answers something true, and fails with `what` after the time. */
export async function until(what, look, seconds = 40) {
  const deadline = Date.now() + seconds * 1000;
  let last;
  for (;;) {
    try {
      const found = await look();
      if (found) return found;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline) throw new Error(`${what}: not within ${seconds} s${last ? `; last: ${last.message}` : ""}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** What content.mjs has made. */
export const content = () => JSON.parse(readFileSync(needed("CONTENT"), "utf8"));
