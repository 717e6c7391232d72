// Signing in with a provider of OpenID Connect that is not ours.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { close, refusal, tab, violations } from "./lib/browser.mjs";
import { start } from "./lib/provider.mjs";

after(close);

async function from(world) {
  const page = await tab();
  // This console and its provider are not the ones that every other test is about.
  page.ear.expect(new RegExp(`^request to (${world.console}|${world.issuer})`), /favicon/, ...refusal("404"));
  return page;
}

async function signIn(page, world, who, next = "/console") {
  await page.goto(`${world.console}${next}`);
  assert.deepEqual(await violations(page), []);
  await page.getByRole("link", { name: "Sign in with 127.0.0.1" }).click();
  await page.fill('[name="who"]', who);
  await page.click("button");
}

for (const algorithm of ["RS256", "PS256", "ES256"]) {
  test(`a person signs in with a token of ${algorithm}`, async () => {
    const world = await start(algorithm);
    try {
      const page = await from(world);
      await signIn(page, world, "ada", "/console/jobs?limit=10");
      await page.waitForURL(`${world.console}/console/jobs?limit=10`);
      assert.match(await page.locator(".who").textContent(), /Ada.*operator/s);
      const cookies = await page.context().cookies(world.console);
      assert.deepEqual(cookies.map(({ name }) => name).filter((name) => name.startsWith("__Host-")), ["__Host-pr_console"]);
      await page.end();
    } finally {
      await world.stop();
    }
  });
}

test("without a role there is a page that says so, and what is dangerous asks once more", async () => {
  const world = await start("RS256");
  try {
    const page = await from(world);
    page.ear.expect(...refusal("403"));
    await signIn(page, world, "eve");
    await page.getByRole("heading", { name: "You have no role here" }).waitFor();
    assert.match(await page.textContent("main"), /groups.*everyone.*<script>alert\(1\)<\/script>/s);
    assert.deepEqual(await violations(page), []);
    await page.end();

    const other = await from(world);
    other.ear.expect(...refusal("403"));
    await signIn(other, world, "grace");
    await other.waitForURL(`${world.console}/console`);
    assert.match(await other.locator(".who").textContent(), /Grace.*admin/s);
    // Just signed in: nothing more is asked. The link that a dangerous act leads to later asks even so soon, or comes straight back.
    await other.goto(`${world.console}/console/sign-in/start?again=1&next=/console/lanes/push/pause`);
    await other.waitForURL(`${world.console}/console/lanes/push/pause`);
    assert.match(await other.textContent("body"), /Nothing was done yet/);
    await other.end();
  } finally {
    await world.stop();
  }
});
