// Every view under axe-core, in both themes and at the width of a phone. Pictures go to `PICTURES`, if that is set.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, test } from "node:test";
import { DESK, PHONE, World, closeBrowser, until, visit } from "./world.mjs";

after(closeBrowser);

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const LOOKS = [["light", DESK], ["dark", DESK], ["light", PHONE], ["dark", PHONE]];

async function scene() {
  const world = await World.make();
  await world.file("app.toml", "[server]\nport = 8080\nworkers = 4\n");
  await world.file("backout.toml", "[protect]\nask = [\"deploy/**\"]\n");
  await world.file("deploy/prod.json", "{\"replicas\": 2}\n");
  await world.file("docs.md", "# Shop\n\nA small shop.\n");
  await world.prompt("p1", "Describe the shop in the docs");
  await world.tool("p1", "docs.md", "# Shop\n\nA small shop in the old town.\n");
  await world.backout("task", "begin", "catalogue");
  await world.backout("set", "app.toml", "server.port", "8081", { agent: "codex", task: "catalogue" });
  await world.backout("edit", "app.toml", "--search", "workers = 4", "--replace", "workers = 16", { agent: "codex" });
  await world.backout("write", "gone.txt", { agent: "gemini", input: "1\n" });
  await world.backout("undo", "gone.txt");
  await world.file("docs.md", "# Shop\n\nA small shop in the old town. Closed today.\n");
  await world.backout("write", "deploy/prod.json", { agent: "codex", input: "{\"replicas\": 40}\n", fails: true });
  return world;
}

async function look(page, name, all) {
  await until(`${name} is drawn`, async () => !/Loading|Looking at/.test(await page.locator("main").innerText()));
  await page.addScriptTag({ path: AXE }).catch(() => null);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
    return violations.map((it) => `${it.id}: ${it.help}\n  ${it.nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`).join("\n  ")}`);
  });
  all.push(...found.map((it) => `${name}: ${it}`));
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (wide > 0) all.push(`${name} is ${wide} pixels wider than the window`);
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/${name}.png` });
}

test("every view is within reach of everybody", async () => {
  const world = await scene();
  await world.serve();
  const { operations } = await world.json("log");
  const of = (text) => operations.find((it) => it.summary.includes(text)).id;
  const { proposals: [{ id: waits }] } = await world.json("pending");
  const places = { timeline: "#/", prompts: "#/?group=prompt&agent=claude-code", changes: `#/op/${of("edit")}`, key: `#/op/${of("set")}`, graph: `#/op/${of("set")}/graph`,
    facts: `#/op/${of("edit")}/facts`, undo: `#/op/${of("set")}/undo`, conflict: `#/op/${of("docs.md")}/undo`, approvals: "#/approvals", proposal: `#/approvals/${waits}`, failed: "#/failed", storage: "#/storage" };
  const all = [];
  for (const [scheme, viewport] of LOOKS) {
    // The rules come into the page past its policy; the page itself is under it in every other test.
    const page = await world.open({ scheme, viewport, bypass: true });
    for (const [name, hash] of Object.entries(places)) {
      await visit(page, hash);
      await look(page, `${name}-${scheme}-${viewport.width}`, all);
    }
    await visit(page, "#/");
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    await look(page, `help-${scheme}-${viewport.width}`, all);
  }
  assert.deepEqual(all, []);
  await world.close();
});
