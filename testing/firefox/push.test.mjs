// A user agent and senders that are not ours, through both nodes.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import * as browser from "./lib/firefox.mjs";
import { pushServer, startConnection, startEndpoint, startTls } from "./lib/nodes.mjs";
import { newKeys, withPywebpush, withWebPush } from "./lib/senders.mjs";
import { until } from "./lib/world.mjs";

const open = [];
const keys = newKeys();
let tls, connection, firefox, subscription;

before(async () => {
  tls = await startTls();
  open.push(() => tls.stop());
  connection = await startConnection(tls.port);
  open.push(() => connection.stop("SIGKILL"));
  const endpoint = await startEndpoint(tls.port);
  open.push(() => endpoint.stop("SIGKILL"));
  const site = await startSite();
  open.push(() => site.close());
  firefox = await browser.start(pushServer);
  open.push(() => firefox.end());
  console.log(firefox.version);
  await firefox.open(`http://localhost:${site.address().port}/`);
  subscription = await firefox.call("(key) => subscribe(key)", keys.publicKey);
});

after(async () => {
  for (const close of open.reverse()) await close();
});

/** The page that subscribes. A name of this machine is as safe as https to a browser. */
async function startSite() {
  const files = { "/": ["index.html", "text/html"], "/worker.js": ["worker.js", "text/javascript"] };
  const site = createServer((request, response) => {
    const [name, type] = files[request.url] ?? [];
    if (!name) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": type }).end(readFileSync(new URL(`page/${name}`, import.meta.url)));
  });
  site.listen(0, "localhost");
  await once(site, "listening");
  return site;
}

/** Waits until the worker has reported the message and its notification is shown; it must have come once. */
async function comes(message) {
  await until(`"${message}" comes`, async () => (await firefox.call("() => received")).includes(message));
  assert.ok((await firefox.call("() => shown()")).includes(message), "no notification is shown");
  assert.equal((await firefox.call("() => received")).filter((one) => one === message).length, 1);
}

test("a subscription leads to the endpoint node and is for its key alone", async () => {
  assert.ok(subscription.endpoint.startsWith(`https://localhost:${tls.port}/wpush/v2/`), subscription.endpoint);
  assert.equal(await withWebPush(subscription, "from another", newKeys()), 401);
  assert.equal(await withPywebpush(subscription, "from another", newKeys()), 401);
});

test("what web-push sends is decrypted and shown", async () => {
  assert.equal(await withWebPush(subscription, "web-push: grüße", keys), 201);
  await comes("web-push: grüße");
});

test("what pywebpush sends is decrypted and shown, in both encodings", async () => {
  for (const encoding of ["aes128gcm", "aesgcm"]) {
    assert.equal(await withPywebpush(subscription, `pywebpush: ${encoding}`, keys, encoding), 201);
    await comes(`pywebpush: ${encoding}`);
  }
});

test("the largest message that senders may count on comes whole", async () => {
  const message = "x".repeat(3993);
  assert.equal(await withWebPush(subscription, message, keys), 201);
  await comes(message);
});

for (const signal of ["SIGTERM", "SIGKILL"]) {
  test(`after ${signal} of its node it comes back by itself, and has what was sent meanwhile`, async () => {
    await connection.stop(signal);
    assert.equal(await withWebPush(subscription, `${signal}: web-push, while away`, keys), 201);
    assert.equal(await withPywebpush(subscription, `${signal}: pywebpush, while away`, keys), 201);
    connection = await startConnection(tls.port);
    await comes(`${signal}: web-push, while away`);
    await comes(`${signal}: pywebpush, while away`);
    assert.equal(await withWebPush(subscription, `${signal}: back`, keys), 201);
    await comes(`${signal}: back`);
  });
}

test("a subscription that was taken back is gone for senders", async () => {
  assert.ok(await firefox.call("() => unsubscribe()"));
  await until("the endpoint is gone", async () => (await withWebPush(subscription, "too late", keys)) === 410);
  assert.equal(await withPywebpush(subscription, "too late", keys), 410);
});
