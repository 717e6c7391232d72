// A provider of OpenID Connect that is not ours (npm oidc-provider), and a console that signs people in with it.

import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";
import { packages } from "./world.mjs";

const { default: Provider } = await import(pathToFileURL(packages.resolve("oidc-provider")));

const SECRET = "a secret: of+the client";
/** Whom the provider knows, and their groups. */
const PEOPLE = { ada: ["on-call", "everyone"], grace: ["leads"], eve: ["everyone", "<script>alert(1)</script>"] };

async function listen(server, port = 0) {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return server.address().port;
}

async function freePort() {
  const server = createServer();
  const port = await listen(server);
  await new Promise((closed) => server.close(closed));
  return port;
}

const jwk = (kid, ...kind) => ({ ...generateKeyPairSync(...kind).privateKey.export({ format: "jwk" }), kid, use: "sig" });

/** A page that asks who it is, and believes it. */
const FORM = `<!doctype html><title>Provider</title><h1>Provider</h1><form method="post"><input name="who" aria-label="who"><button>Go on</button></form>`;

async function answer(provider, request, response) {
  if (!request.url.startsWith("/interaction/")) return provider.callback()(request, response);
  if (request.method === "GET") return response.setHeader("content-type", "text/html").end(FORM);
  let body = "";
  for await (const part of request) body += part;
  return provider.interactionFinished(request, response, { login: { accountId: new URLSearchParams(body).get("who") } });
}

/** Starts both; tokens are signed with this algorithm. */
export async function start(algorithm) {
  const consolePort = await freePort();
  // Another site than the provider's, as in earnest, and one whose cookies a browser takes without TLS.
  const console = `http://localhost:${consolePort}`;
  const server = createServer();
  const issuer = `http://127.0.0.1:${await listen(server)}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: "postrider", client_secret: SECRET, redirect_uris: [`${console}/console/sign-in/return`],
      grant_types: ["authorization_code"], response_types: ["code"], id_token_signed_response_alg: algorithm,
    }],
    pkce: { methods: ["S256"], required: () => true },
    jwks: { keys: [jwk("rsa", "rsa", { modulusLength: 2048 }), jwk("ec", "ec", { namedCurve: "P-256" })] },
    claims: { openid: ["sub", "groups"], profile: ["name"], email: ["email"], auth_time: null },
    conformIdTokenClaims: false,
    cookies: { keys: ["of a test"] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    findAccount: (_, id) => ({ accountId: id, claims: async () => ({ sub: id, name: `${id[0].toUpperCase()}${id.slice(1)}`, groups: PEOPLE[id] ?? [] }) }),
    // Nothing is asked for that a person had to agree to.
    async loadExistingGrant(context) {
      const { client, session, provider: { Grant } } = context.oidc;
      const grant = new Grant({ clientId: client.clientId, accountId: session.accountId });
      grant.addOIDCScope("openid profile email");
      await grant.save();
      return grant;
    },
  });
  server.on("request", (request, response) => void answer(provider, request, response));

  const service = await serve({
    POSTRIDER__OPERATOR__PUBLIC_URL: console,
    POSTRIDER__OPERATOR__OIDC__ISSUER: issuer,
    POSTRIDER__OPERATOR__OIDC__CLIENT_ID: "postrider",
    POSTRIDER__OPERATOR__OIDC__CLIENT_SECRET: SECRET,
    POSTRIDER__OPERATOR__OIDC__ROLES__OPERATOR: "on-call",
    POSTRIDER__OPERATOR__OIDC__ROLES__ADMIN: "leads",
  }, consolePort);
  const stop = async () => {
    await service.stop();
    server.closeAllConnections();
    server.close();
  };
  return { console, issuer, stop };
}

/** An operator API of its own, with these settings. */
export async function serve(settings, port) {
  port ??= await freePort();
  const console = `http://localhost:${port}`;
  const process_ = spawn(process.env.POSTRIDER, ["serve", "operator-api"], {
    env: { ...process.env, POSTRIDER__OPERATOR__LISTEN: `127.0.0.1:${port}`, POSTRIDER__ADMIN__LISTEN: "127.0.0.1:0", ...settings },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const stop = async () => {
    process_.kill();
    if (process_.exitCode === null) await once(process_, "exit");
  };
  for (let tries = 0; tries < 150; tries += 1) {
    const answered = await fetch(`${console}/healthz`).catch(() => null);
    if (answered?.ok) return { console, stop };
    await new Promise((later) => setTimeout(later, 100));
  }
  await stop();
  throw new Error("the console does not answer; what it says is above");
}
