// What scripts/firefox has made ready: a database, ports, a certificate, and where packages are.

import { createRequire } from "node:module";

export const needed = (name) => {
  const value = process.env[name];
  if (!value) throw new Error(`the environment names no ${name}: run scripts/firefox`);
  return value;
};

/** Packages stand outside of the sources, where `import` does not look. */
export const packages = createRequire(`${needed("NODE_PATH")}/`);

/** Looks again and again until `look` answers something true, and fails with `what` after the time. */
export async function until(what, look, seconds = 120) {
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
