// The two nodes under the names and with the variables of autopush, and TLS in front of the one that senders talk to, since they talk
// to no other.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { openSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { createServer } from "node:tls";
import { needed, until } from "./world.mjs";

const port = { clients: needed("CLIENTS_PORT"), router: needed("ROUTER_PORT"), endpoint: needed("ENDPOINT_PORT") };
const key = randomBytes(32).toString("base64url") + "=";

/** The certificate that senders trust. */
export const certificate = needed("CERTIFICATE");
/** Where Firefox connects to. */
export const pushServer = `ws://localhost:${port.clients}/`;

/** A process with this log. */
async function program(name, healthPort, variables) {
  const log = join(needed("LOG_DIR"), `firefox-${name}.log`);
  const output = openSync(log, "a");
  const child = spawn(join(needed("BIN"), name), { stdio: ["ignore", output, output], env: { ...process.env, ...variables } });
  const exit = once(child, "exit");
  let ended = false;
  exit.then(() => (ended = true));
  await until(`${name} takes requests (its log is ${log})`, async () => ended || (await fetch(`http://127.0.0.1:${healthPort}/health`)).ok);
  if (ended) throw new Error(`${name} has ended; its log is ${log}`);
  return {
    stop: async (signal = "SIGTERM") => {
      child.kill(signal);
      await exit;
    },
  };
}

export const startConnection = (endpointPort) =>
  program("autoconnect", port.clients, {
    AUTOCONNECT__PORT: port.clients,
    AUTOCONNECT__ROUTER_PORT: port.router,
    AUTOCONNECT__HOSTNAME: "127.0.0.1",
    AUTOCONNECT__ENDPOINT_SCHEME: "https",
    AUTOCONNECT__ENDPOINT_HOSTNAME: "localhost",
    AUTOCONNECT__ENDPOINT_PORT: String(endpointPort),
    AUTOCONNECT__CRYPTO_KEY: `[${key}]`,
    AUTOCONNECT__DB_DSN: needed("DATABASE_URL"),
  });

export const startEndpoint = (publicPort) =>
  program("autoendpoint", port.endpoint, {
    AUTOEND__HOST: "127.0.0.1",
    AUTOEND__PORT: port.endpoint,
    AUTOEND__ENDPOINT_URL: `https://localhost:${publicPort}`,
    AUTOEND__CRYPTO_KEYS: `[${key}]`,
    AUTOEND__DB_DSN: needed("DATABASE_URL"),
  });

/** A proxy that ends TLS. */
export async function startTls() {
  const server = createServer({ key: readFileSync(needed("CERTIFICATE_KEY")), cert: readFileSync(certificate) }, (near) => {
    const far = connect(Number(port.endpoint), "127.0.0.1");
    near.on("error", () => far.destroy()).on("close", () => far.destroy());
    far.on("error", () => near.destroy()).on("close", () => near.destroy());
    near.pipe(far).pipe(near);
  });
  server.listen(0, "localhost");
  await once(server, "listening");
  return { port: server.address().port, stop: () => server.close() };
}
