// 100 000 operations, from a server that only pages through them: the list draws what is seen, and finds its way to the last.

import assert from "node:assert/strict";
import fs from "node:fs/promises";
import http from "node:http";
import path from "node:path";
import { after, test } from "node:test";
import { DESK, closeBrowser, rows, theBrowser, until } from "./world.mjs";

after(closeBrowser);

const COUNT = 100000;
const WEB = process.env.WEB;
const KIND = { html: "text/html; charset=utf-8", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };

function operation(number) {
  const file = `/srv/shop/src/module-${number % 97}/file-${number}.rs`;
  return { id: number.toString(16).padStart(16, "0"), lsn: number, place: number, at: 1794000000000 + number * 1000, verb: "write", summary: `write ${file}`, status: number % 7 ? "committed" : "undone",
    agent: `agent-${number % 5}`, prompt: `prompt-${Math.floor(number / 9)}`, targets: [{ kind: "path", path: file, reach: "node" }], target_count: 1, retained: true };
}

/** Answers as the contract says, without a store; `live` sends an operation to who listens. */
async function server() {
  const listeners = new Set();
  let newest = COUNT;
  const answer = http.createServer(async (request, reply) => {
    const url = new URL(request.url, "http://here");
    const json = (value) => { reply.setHeader("Content-Type", "application/json"); reply.end(JSON.stringify(value)); };
    if (url.pathname === "/v1/me") return json({ role: "operator", version: "0", state_dir: "/", read_only: false });
    if (url.pathname === "/v1/storage") return json({ statuses: { committed: newest } });
    if (url.pathname === "/v1/prompts") return json({ prompts: [] });
    if (url.pathname === "/v1/status") return json({ proposals: [], unfinished: [], stuck: [], open_tasks: [] });
    if (url.pathname === "/v1/operations") {
      const before = Number(url.searchParams.get("before") ?? newest + 1);
      const limit = Number(url.searchParams.get("limit"));
      const operations = [];
      for (let number = before - 1; number > 0 && operations.length < limit; number -= 1) operations.push(operation(number));
      const last = operations.at(-1)?.place ?? 0;
      return json({ reply: "log", operations, next: last > 1 ? last : null });
    }
    if (url.pathname === "/v1/events") {
      reply.writeHead(200, { "Content-Type": "text/event-stream" });
      reply.write(`id: ${newest}\nevent: hello\ndata: {"lsn":${newest}}\n\n`);
      listeners.add(reply);
      request.on("close", () => listeners.delete(reply));
      return null;
    }
    const name = url.pathname === "/" ? "index.html" : path.basename(url.pathname);
    const file = await fs.readFile(path.join(WEB, name)).catch(() => null);
    reply.writeHead(file ? 200 : 404, { "Content-Type": KIND[name.split(".").pop()] ?? "text/plain" });
    return reply.end(file ?? "");
  });
  await new Promise((done) => { answer.listen(0, "127.0.0.1", done); });
  const live = () => {
    newest += 1;
    const data = JSON.stringify({ lsn: newest, event: "intent", id: operation(newest).id, operation: operation(newest) });
    for (const listener of listeners) listener.write(`id: ${newest}\nevent: intent\ndata: ${data}\n\n`);
  };
  return { url: `http://127.0.0.1:${answer.address().port}/`, live, close: () => { answer.closeAllConnections(); answer.close(); } };
}

test("a hundred thousand operations are scrolled, divided and found, with a few dozen rows drawn", async (t) => {
  const { url, live, close } = await server();
  const page = await (await theBrowser()).newPage({ viewport: DESK });
  t.after(async () => { await page.close(); close(); });
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(error.stack));
  await page.goto(url);
  await page.getByText("100,000 operations").waitFor();
  await page.evaluate(() => {
    window.longest = 0;
    window.frames = [];
    new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration); }).observe({ entryTypes: ["longtask"] });
    let last = performance.now();
    const tick = (now) => { window.frames.push(now - last); last = now; requestAnimationFrame(tick); };
    requestAnimationFrame(tick);
  });
  const scroller = page.locator(".scroller");
  const drawn = () => page.locator(".scroller .row").count();
  const height = await scroller.evaluate((it) => it.scrollHeight);
  assert.ok(height > COUNT * 50, `the list is as long as it is: ${height}`);
  // By steps, as a wheel does it.
  for (let step = 0; step < 60; step += 1) {
    await scroller.evaluate((it) => { it.scrollTop += 700; });
    await page.evaluate(() => new Promise((done) => { requestAnimationFrame(done); }));
    assert.ok(await drawn() < 60, `${await drawn()} rows are drawn`);
  }
  // To the very end, as who drags the bar does it: all pages in between are read, and the last one is there.
  const jumped = Date.now();
  await until("the last one", async () => {
    await scroller.evaluate((it) => { it.scrollTop = it.scrollHeight; });
    return (await rows(page)).at(-1) === "write module-1/file-1.rs";
  });
  const read = Date.now() - jumped;
  assert.ok(await drawn() < 60);
  const before = await page.locator("a.op", { hasText: "file-3.rs" }).boundingBox();
  for (let number = 0; number < 50; number += 1) live();
  await page.getByRole("button", { name: "50 new operations" }).waitFor();
  assert.deepEqual(await page.locator("a.op", { hasText: "file-3.rs" }).boundingBox(), before, "what comes in above moves nothing");
  // Divided by prompt there are 11 000 headings; the place is known all the same.
  await page.getByRole("button", { name: "Prompt", exact: true }).click();
  await page.locator(".heading").first().waitFor();
  assert.ok(await drawn() < 60);
  await scroller.evaluate((it) => { it.scrollTop = 0; });
  await until("the first one", async () => (await rows(page))[0] === "write module-43/file-100050.rs");
  const { longest, frames } = await page.evaluate(() => ({ longest: window.longest, frames: window.frames }));
  frames.sort((one, other) => one - other);
  t.diagnostic(`to the end ${read} ms; longest task ${Math.round(longest)} ms; frames: median ${frames[frames.length >> 1].toFixed(1)} ms, p99 ${frames[Math.floor(frames.length * 0.99)].toFixed(1)} ms of ${frames.length}`);
  assert.deepEqual(complaints, []);
});
