// A console of its own whose database and broker are reached over lines that a test can cut.

import { createServer, connect } from "node:net";
import { once } from "node:events";
import { serve } from "./provider.mjs";

/** A line to where this URL leads. */
async function line(url, port) {
  const to = new URL(url);
  const [farPort, farHost] = [Number(to.port || port), to.hostname];
  const open = new Set();
  let cut = false;
  const server = createServer((near) => {
    if (cut) return near.destroy();
    const far = connect(farPort, farHost);
    for (const [one, other] of [[near, far], [far, near]]) {
      open.add(one);
      one.on("close", () => (open.delete(one), other.destroy()));
      one.on("error", () => other.destroy());
    }
    near.pipe(far).pipe(near);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  to.host = `127.0.0.1:${server.address().port}`;
  const destroy = () => [...open].forEach((socket) => socket.destroy());
  return {
    url: to.toString(),
    cut: () => ((cut = true), destroy()),
    mend: () => (cut = false),
    close: () => (server.close(), destroy()),
  };
}

export async function start() {
  const lines = { database: await line(process.env.DATABASE_URL, 5432), broker: await line(process.env.AMQP_URL, 5672) };
  const service = await serve({ DATABASE_URL: lines.database.url, AMQP_URL: lines.broker.url });
  return {
    ...service,
    ...lines,
    stop: async () => {
      await service.stop();
      for (const { close } of Object.values(lines)) close();
    },
  };
}
