// The timeline: what it shows, that it lives, and that it keeps its place.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { World, closeBrowser, rows, until } from "./world.mjs";

after(closeBrowser);

async function several(count) {
  const world = await World.make();
  const batch = [];
  for (let index = 0; index < count; index += 1) batch.push(index);
  for (const index of batch) await world.backout("write", `file-${index}.txt`, { agent: index % 2 ? "codex" : "gemini", input: `${index}\n` });
  return world;
}

test("what was written is listed, newest first, and what comes is seen at once", async () => {
  const world = await several(3);
  await world.serve();
  const page = await world.open();
  await until("rows", async () => (await rows(page)).length === 3);
  assert.deepEqual(await rows(page), ["write shop/file-2.txt", "write shop/file-1.txt", "write shop/file-0.txt"]);
  await world.backout("write", "later.txt", { agent: "codex", input: "later\n" });
  await until("the new row", async () => (await rows(page))[0] === "write shop/later.txt");
  await world.backout("undo", "later.txt");
  await until("its undo", async () => (await rows(page))[0]?.startsWith("undo of write"));
  assert.equal(await page.locator("a.op.off .what").innerText(), "write shop/later.txt");
  await world.close();
});

test("what comes in above moves nothing of what is read", async () => {
  const world = await several(40);
  await world.serve();
  const page = await world.open();
  await until("rows", async () => (await rows(page)).length > 10);
  await page.locator(".scroller").evaluate((it) => { it.scrollTop = 600; });
  const link = page.getByRole("link", { name: /file-27\.txt/ });
  const before = await link.boundingBox();
  await world.backout("write", "above-1.txt", { input: "1" });
  await world.backout("write", "above-2.txt", { input: "2" });
  const pill = page.getByRole("button", { name: "2 new operations" });
  await pill.waitFor();
  assert.deepEqual(await link.boundingBox(), before);
  await pill.click();
  await until("the top", async () => (await rows(page))[0] === "write shop/above-2.txt");
  await pill.waitFor({ state: "hidden" });
  await world.close();
});

test("search and filters find by word, agent, status and path, and go away again", async () => {
  const world = await several(6);
  await world.backout("undo", "file-5.txt");
  await world.serve();
  const page = await world.open();
  await page.getByRole("searchbox").fill("file-3");
  await until("one", async () => (await rows(page)).join() === "write shop/file-3.txt");
  assert.match(page.url(), /q=file-3/);
  await page.getByRole("searchbox").fill("no such thing");
  await page.getByText("No operation matches.").waitFor();
  await page.getByRole("searchbox").fill("");
  await until("all", async () => (await rows(page)).length === 7);
  await page.getByRole("button", { name: "Filters" }).click();
  await page.getByLabel("Agent", { exact: true }).selectOption("codex");
  await until("those of codex", async () => (await rows(page)).length === 3);
  await page.getByLabel("Status", { exact: true }).selectOption("undone");
  await until("the undone one", async () => (await rows(page)).join() === "write shop/file-5.txt");
  await page.getByRole("button", { name: "Clear" }).click();
  await until("all again", async () => (await rows(page)).length === 7);
  await page.getByLabel("Path", { exact: true }).fill(world.at("file-2.txt"));
  await page.keyboard.press("Enter");
  await until("by path", async () => (await rows(page)).join() === "write shop/file-2.txt");
  await world.close();
});

test("prompts, tasks and agents divide the timeline, and a prompt is taken back as one", async () => {
  const world = await World.make();
  await world.file("a.txt", "old\n");
  await world.prompt("p1", "Make it better");
  await world.tool("p1", "a.txt", "new\n");
  await world.tool("p1", "b.txt", "new\n");
  await world.backout("task", "begin", "tidy");
  await world.backout("write", "c.txt", { agent: "codex", task: "tidy", input: "c\n" });
  await world.serve();
  const page = await world.open();
  await page.getByRole("button", { name: "Prompt", exact: true }).click();
  await page.getByRole("heading", { name: "Make it better" }).waitFor();
  await page.getByRole("button", { name: "Task", exact: true }).click();
  await page.getByRole("heading", { name: "tidy" }).waitFor();
  await page.getByRole("button", { name: "Agent", exact: true }).click();
  await page.getByRole("heading", { name: "claude-code" }).waitFor();
  await page.getByRole("button", { name: "Prompt", exact: true }).click();
  await page.getByRole("link", { name: "Take back all of: Make it better" }).click();
  await page.getByRole("button", { name: "Take back 2 operations" }).click();
  await page.getByRole("heading", { name: "Taken back" }).waitFor();
  assert.equal(await world.read("a.txt"), "old\n");
  assert.equal(await world.has("b.txt"), false);
  assert.equal(await world.read("c.txt"), "c\n");
  await world.close();
});

test("the keyboard walks, reads, previews, searches and helps", async () => {
  const world = await several(5);
  await world.serve();
  const page = await world.open();
  await until("rows", async () => (await rows(page)).length === 5);
  const title = page.locator("article.detail h1");
  await page.keyboard.press("j");
  await until("the first", async () => (await title.innerText()) === "write shop/file-4.txt");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  await until("the second", async () => (await title.innerText()) === "write shop/file-3.txt");
  assert.match(await page.evaluate(() => document.activeElement.innerText), /file-3/);
  await page.keyboard.press("u");
  await page.getByText("Nothing was changed yet.").waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".subtabs").waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("/");
  await page.keyboard.type("file-0");
  await until("the search", async () => (await rows(page)).join() === "write shop/file-0.txt");
  await world.close();
});

test("two tabs see the same, and a server that comes back is found again", async () => {
  const world = await several(2);
  await world.serve();
  const one = await world.open();
  const two = await world.open({ context: one.context() });
  await until("rows", async () => (await rows(two)).length === 2);
  const id = await world.id("file-1.txt");
  await one.evaluate((to) => { location.hash = `#/op/${to}/undo`; }, id);
  await one.getByRole("button", { name: "Undo 1 operation" }).click();
  await one.getByRole("heading", { name: "Undone" }).waitFor();
  for (const page of [one, two]) await until("the undo", async () => (await rows(page))[0]?.startsWith("undo of write"));
  await world.stopServer();
  await one.getByText("not connected").waitFor({ state: "attached" });
  // What the browser says about a server that is away is no complaint of the page.
  await one.context().close();
  world.pages.length = 0;
  await world.close();
});
