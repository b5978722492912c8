// The project's state graph and drift, as a person sees them.

import assert from "node:assert/strict";
import fs from "node:fs/promises";
import { after, test } from "node:test";
import { World, closeBrowser, rows, until, visit } from "./world.mjs";

after(closeBrowser);

const META = { protocol_version: "1.0.0", schema_version: "1.0.0" };
const CONTEXT = { meta: META, context_id: "11111111-1111-4111-8111-111111111111", root: { domain: "shop", environment: "dev" }, title: "The shop", status: "active" };
const STEPS = ["prepare", "build", "ship"].map((description, at) => ({ step_id: `33333333-3333-4333-8333-33333333333${at}`, description, status: "pending", dependencies: at === 0 ? [] : [`33333333-3333-4333-8333-33333333333${at - 1}`] }));
const PLAN = { meta: META, plan_id: "22222222-2222-4222-8222-222222222222", context_id: CONTEXT.context_id, title: "Ship it", objective: "a shop", status: "draft", steps: STEPS };

test("the state graph is drawn with its nodes, edges and versions", async () => {
  const world = await World.make();
  await world.serve();
  const page = await world.open();
  await visit(page, "#/state");
  await page.getByText("The graph is empty.").waitFor();
  await world.file("graph.json", JSON.stringify([CONTEXT, PLAN]));
  await world.backout("graph", "import", "graph.json");
  await page.reload();
  await page.getByText("5 nodes").waitFor();
  for (const text of ["The shop", "Ship it", "prepare", "build", "ship"]) await page.locator(".graph-line", { hasText: text }).first().waitFor();
  const { nodes, edges } = await world.json("graph", "show");
  assert.equal(await page.locator(".graph-line").count(), nodes.length);
  assert.equal(await page.locator("svg.rails path").count(), edges);
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/state.png` });
  await world.close();
});

test("drift is found by a look, and restored by a button", async () => {
  const world = await World.make();
  await world.serve();
  await world.backout("write", "a.txt", { agent: "codex", input: "recorded\n" });
  await fs.writeFile(world.at("a.txt"), "by hand\n");
  const page = await world.open();
  await visit(page, "#/drift");
  await page.getByRole("button", { name: "Look at everything" }).click();
  await page.getByRole("heading", { name: /a\.txt.*changed/ }).waitFor();
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/drift.png` });
  await page.getByRole("button", { name: "Restore what was recorded" }).click();
  await until("the bytes are back", async () => (await world.read("a.txt")) === "recorded\n");
  await page.getByText("Nothing has drifted").waitFor();
  await world.backout("undo");
  assert.equal(await world.read("a.txt"), "by hand\n");
  await world.close();
});

test("storage is told by agent and task, and the rows are what `status` says", async () => {
  const world = await World.make();
  await world.file("a.txt", "one\n");
  await world.file("b.txt", `two ${"x".repeat(5000)}\n`);
  await world.backout("write", "a.txt", { input: "new\n", agent: "reviewer" });
  await world.backout("task", "begin", "deploy");
  await world.backout("write", "b.txt", { input: "new\n", task: "deploy", agent: "builder" });
  await world.file("c.txt", "three, of nobody\n");
  await world.backout("rm", "c.txt");
  await world.serve();
  const page = await world.open({ hash: "#/storage" });
  const { stored } = await world.json("status");
  assert.ok(stored.total > 0);
  for (const [title, ...names] of [["By agent", "reviewer", "builder", "no agent"], ["By task", "deploy", "no task"]]) {
    const panel = page.locator("section.panel", { has: page.getByRole("heading", { name: title }) });
    for (const name of names) await panel.getByRole("rowheader", { name }).first().waitFor();
    const bytes = (await panel.locator("td[data-bytes]").evaluateAll((cells) => cells.map((cell) => Number(cell.dataset.bytes))));
    assert.equal(bytes.pop(), stored.total);
    assert.equal(bytes.reduce((sum, one) => sum + one, 0), stored.total);
  }
  await page.getByRole("link", { name: "builder" }).click();
  await until("what it did", async () => (await rows(page)).length === 1);
  await world.close();
});
