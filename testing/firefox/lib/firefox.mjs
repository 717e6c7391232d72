// An unmodified Firefox without a window, told what to do over WebDriver BiDi.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { packages, needed } from "./world.mjs";

const { WebSocket } = packages("ws");

/** Where it goes for pushes, and what a person would have been asked; the rest is as Firefox is delivered. */
const preferences = (pushServer) => ({
  "dom.push.serverURL": pushServer,
  "dom.push.connection.enabled": true,
  // There is no certificate authority in a test.
  "dom.push.testing.allowInsecureServerURL": true,
  // The first wait before it connects again; it doubles from there.
  "dom.push.retryBaseInterval": 500,
  "permissions.default.desktop-notification": 1,
  // There is no desktop that could show them.
  "alerts.useSystemBackend": false,
  // Nothing of this concerns pushes, and all of it would go to the internet.
  "app.normandy.enabled": false,
  "app.update.disabledForTesting": true,
  "browser.safebrowsing.update.enabled": false,
  "datareporting.policy.dataSubmissionEnabled": false,
  "extensions.getAddons.cache.enabled": false,
  "network.captive-portal-service.enabled": false,
  "network.connectivity-service.enabled": false,
  "services.settings.server": "data:,none",
});

/** Starts it; `seconds` bound each answer. */
export async function start(pushServer, seconds = 120) {
  const profile = mkdtempSync(join(tmpdir(), "postrider-firefox-"));
  const lines = Object.entries(preferences(pushServer)).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`);
  writeFileSync(join(profile, "user.js"), lines.join("\n"));
  // A session of its own: it is a family of processes, which end together.
  const child = spawn(needed("FIREFOX"), ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank"], {
    detached: true,
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, MOZ_CRASHREPORTER_DISABLE: "1" },
  });
  const ended = once(child, "exit");
  const end = async () => {
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // It has ended by itself.
    }
    await ended;
    rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  };
  try {
    const socket = new WebSocket(`${await address(child, ended, seconds)}/session`);
    await once(socket, "open");
    const ask = questions(socket, seconds);
    const { capabilities } = await ask("session.new", { capabilities: {} });
    const { contexts } = await ask("browsingContext.getTree", {});
    const [{ context }] = contexts;
    return {
      version: `${capabilities.browserName} ${capabilities.browserVersion}`,
      open: (url) => ask("browsingContext.navigate", { context, url, wait: "complete" }),
      /** Calls a function in the page; what it returns, or what its promise comes to, as JSON. */
      call: async (called, ...values) => {
        const said = await ask("script.callFunction", {
          functionDeclaration: `async (...values) => JSON.stringify((await (${called})(...values)) ?? null)`,
          arguments: values.map((value) => ({ type: "string", value })),
          target: { context },
          awaitPromise: true,
          userActivation: true,
        });
        if (said.type !== "success") throw new Error(`the page failed: ${said.exceptionDetails.text}`);
        return JSON.parse(said.result.value);
      },
      end: async () => (socket.terminate(), await end()),
    };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Where it listens, by what it says itself. */
async function address(child, ended, seconds) {
  const said = [];
  const listening = new Promise((found) =>
    createInterface({ input: child.stderr }).on("line", (line) => {
      said.push(line);
      const match = /WebDriver BiDi listening on (ws:\S+)/.exec(line);
      if (match) found(match[1]);
    }),
  );
  const over = ended.then(() => undefined);
  const found = await Promise.race([listening, over, later(seconds)]);
  if (!found) throw new Error(`Firefox does not listen: ${said.slice(-10).join("\n")}`);
  return found;
}

const later = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000).unref());

/** Questions and answers carry a number. */
function questions(socket, seconds) {
  const waiting = new Map();
  let number = 0;
  socket.on("message", (text) => {
    const { id, type, result, error, message } = JSON.parse(text);
    const answer = waiting.get(id);
    waiting.delete(id);
    if (type === "success") answer?.resolve(result);
    else if (type === "error") answer?.reject(new Error(`${error}: ${message}`));
  });
  socket.on("close", () => waiting.forEach(({ reject }) => reject(new Error("Firefox has ended"))));
  return async (method, params) => {
    const id = (number += 1);
    const answer = new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
    socket.send(JSON.stringify({ id, method, params }));
    const late = later(seconds).then(() => Promise.reject(new Error(`${method} is not answered within ${seconds} s`)));
    return Promise.race([answer, late]);
  };
}
