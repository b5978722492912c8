// Names that look like markup, browsers that keep nothing, links that work once.

import assert from "node:assert/strict";
import fs from "node:fs/promises";
import path from "node:path";
import { after, test } from "node:test";
import { chromium } from "playwright-core";
import { CHROMIUM, DESK, World, closeBrowser, rows, theBrowser, until, visit } from "./world.mjs";

after(closeBrowser);

const EVIL = "<script>alert(1)</script>";
const IMAGE = "<img src=x onerror=alert(2)>";

test("files, their content and a prompt with markup in them are text", async () => {
  const world = await World.make();
  await world.backout("write", "--parents", EVIL, { input: `${IMAGE}\n` });
  await world.backout("write", IMAGE, { input: `${EVIL}\n` });
  await world.prompt("p1", `${IMAGE} ${EVIL}`);
  await world.tool("p1", `${IMAGE}.txt`, EVIL);
  await world.serve();
  const page = await world.open({ hash: "#/?group=prompt" });
  await until("rows", async () => (await rows(page)).length === 3);
  const { operations } = await world.json("log");
  for (const { id } of operations) {
    for (const tab of ["changes", "graph", "facts", "undo"]) {
      await visit(page, `#/op/${id}/${tab}?group=prompt`);
      await until(tab, async () => !(await page.locator("article.detail").innerText()).includes("Loading"));
    }
  }
  assert.equal(await page.locator("main script, main img[src=x]").count(), 0);
  assert.match((await rows(page)).join("\n"), /<script>alert\(1\)<\/script>/);
  await page.getByRole("heading", { name: `${IMAGE} ${EVIL}` }).waitFor();
  await world.close();
});

test("the policy of the server forbids what is inline, and the page needs none of it", async () => {
  const world = await World.make();
  await world.serve();
  const page = await world.open();
  await page.getByText("Nothing was written yet").waitFor();
  const answer = await page.request.get(world.origin);
  const policy = answer.headers()["content-security-policy"];
  assert.match(policy, /default-src 'none'/);
  assert.doesNotMatch(policy, /unsafe/);
  assert.doesNotMatch(await answer.text(), /<script(?![^>]*src)|\sstyle=|\son\w+=/);
  await world.close();
});

test("a browser whose storage is blocked shows, follows and undoes all the same", async () => {
  const world = await World.make();
  await world.backout("write", "a.txt", { input: "1\n" });
  await world.serve();
  const prepare = async (context) => {
    await context.addInitScript(() => {
      for (const name of ["localStorage", "sessionStorage", "indexedDB"]) {
        Object.defineProperty(window, name, { get() { throw new DOMException("blocked", "SecurityError"); } });
      }
    });
  };
  const page = await world.open({ prepare });
  await until("rows", async () => (await rows(page)).length === 1);
  await page.getByRole("button", { name: /Theme/ }).click();
  await page.getByRole("button", { name: "Theme: light" }).waitFor();
  await followsAndUndoes(world, page);
  await world.close();
});

test("a browser that keeps neither cookies nor storage shows, follows, decides and undoes all the same", async () => {
  const world = await World.make();
  await world.backout("write", "a.txt", { input: "1\n" });
  await world.serve();
  const context = await keepsNothing(world);
  after(() => context.close());
  let secret = "";
  context.on("response", async (answer) => { if (answer.url().endsWith("/v1/session/bearer")) secret = (await answer.json()).bearer; });
  const page = await world.open({ context, link: true });
  // What it says of itself is not to be relied on: `navigator.cookieEnabled` is true all the same.
  assert.equal(await page.evaluate(() => { document.cookie = "kept=1"; return document.cookie; }), "");
  assert.equal(await page.evaluate(() => { try { return String(localStorage.length); } catch (error) { return error.name; } }), "SecurityError");
  assert.deepEqual(await context.cookies(), []);
  assert.equal(new URL(page.url()).pathname, "/");
  await until("rows", async () => (await rows(page)).length === 1);
  await followsAndUndoes(world, page);
  assert.ok(secret.length > 20);
  const seen = await page.evaluate(() => document.documentElement.outerHTML + location.href + JSON.stringify(history.state));
  assert.ok(!seen.includes(secret));
  page.complaints.length = 0;
  await page.reload();
  await page.getByRole("heading", { name: "This page needs a link" }).waitFor();
  await page.getByText("keeps no cookies of this page").waitFor();
  // The browser itself notes that the answer was a 401.
  page.complaints = page.complaints.filter((it) => !it.includes("401"));
  await world.close();
});

/** Sees what somebody else writes, and takes `a.txt` back. */
async function followsAndUndoes(world, page) {
  await world.backout("write", "b.txt", { input: "1\n" });
  await until("what is new", async () => (await rows(page)).length === 2);
  await visit(page, `#/op/${await world.id("a.txt")}/undo`);
  await page.getByRole("button", { name: "Undo 1 operation" }).click();
  await page.getByRole("heading", { name: "Undone" }).waitFor();
  assert.equal(await world.has("a.txt"), false);
}

/** A browser of its own whose settings forbid cookies, and with them all storage. */
async function keepsNothing(world) {
  const profile = path.join(world.root, "profile");
  await fs.mkdir(path.join(profile, "Default"), { recursive: true });
  const settings = { profile: { default_content_setting_values: { cookies: 2 } } };
  await fs.writeFile(path.join(profile, "Default", "Preferences"), JSON.stringify(settings));
  return chromium.launchPersistentContext(profile, { executablePath: CHROMIUM, args: ["--no-sandbox"], viewport: DESK });
}

test("a link opens one session; the code is gone from the address, and the next one is turned away", async () => {
  const world = await World.make();
  await world.backout("write", "a.txt", { input: "1\n" });
  await world.serve();
  const link = await world.link();
  world.origin = new URL(link).origin;
  const [one, two] = [await (await theBrowser()).newContext(), await (await theBrowser()).newContext()];
  const page = await one.newPage();
  await page.goto(link);
  await until("rows", async () => (await rows(page)).length === 1);
  assert.ok(!page.url().includes(new URL(link).hash.slice(1)), page.url());
  await page.reload();
  await until("rows after a reload", async () => (await rows(page)).length === 1);
  const other = await two.newPage();
  await other.goto(link);
  await other.getByText("backout ui").waitFor();
  const stranger = await two.newPage();
  await stranger.goto(world.origin);
  await stranger.getByRole("heading", { name: "This page needs a link" }).waitFor();
  await one.close();
  await two.close();
  await world.close();
});
