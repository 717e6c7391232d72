// Two application servers that are not ours: npm's web-push, and pywebpush for Python.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Agent } from "node:https";
import { text } from "node:stream/consumers";
import { certificate } from "./nodes.mjs";
import { needed, packages } from "./world.mjs";

const webPush = packages("web-push");
const SUBJECT = "mailto:sender@example.com";

export const newKeys = () => webPush.generateVAPIDKeys();

/** Sends with web-push; the status of the answer. */
export async function withWebPush(subscription, message, keys, ttl = 600) {
  const agent = new Agent({ ca: readFileSync(certificate) });
  const options = { TTL: ttl, vapidDetails: { subject: SUBJECT, ...keys }, agent };
  try {
    return (await webPush.sendNotification(subscription, message, options)).statusCode;
  } catch (error) {
    if (error.statusCode) return error.statusCode;
    throw error;
  } finally {
    agent.destroy();
  }
}

/** Sends with pywebpush; the status of the answer. */
export async function withPywebpush(subscription, message, keys, encoding = "aes128gcm") {
  const child = spawn(needed("PYTHON"), [new URL("../send.py", import.meta.url).pathname], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, REQUESTS_CA_BUNDLE: certificate },
  });
  const exit = once(child, "exit");
  const said = text(child.stdout);
  child.stdin.end(JSON.stringify({ subscription, message, key: keys.privateKey, subject: SUBJECT, encoding }));
  const [code] = await exit;
  if (code !== 0) throw new Error(`pywebpush ended with ${code}`);
  return Number(await said);
}
