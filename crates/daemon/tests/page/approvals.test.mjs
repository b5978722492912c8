// Decisions of a person about what a rule holds back.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { World, closeBrowser, until, visit } from "./world.mjs";

after(closeBrowser);

async function proposed() {
  const world = await World.make();
  await world.file("backout.toml", "[protect]\nask = [\"deploy/**\"]\n");
  await world.file("deploy/prod.json", "{\"replicas\": 2}\n");
  await world.serve();
  const page = await world.open();
  await world.backout("write", "deploy/prod.json", { agent: "codex", input: "{\"replicas\": 40}\n", fails: true });
  return { world, page };
}

test("a proposal appears by itself, shows what it would change, and approved it happens", async () => {
  const { world, page } = await proposed();
  await page.getByRole("link", { name: /Approvals 1/ }).click();
  await page.getByRole("link", { name: /write deploy\/prod\.json/ }).click();
  await page.getByRole("heading", { name: "Why it waits" }).waitFor();
  await page.getByText("ask deploy/** in").waitFor();
  await until("the staged change", async () => (await page.locator(".diff mark").allInnerTexts()).join() === "2,40");
  assert.equal(await world.read("deploy/prod.json"), "{\"replicas\": 2}\n");
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByRole("heading", { name: "Approved and done" }).waitFor();
  assert.equal(await world.read("deploy/prod.json"), "{\"replicas\": 40}\n");
  await page.getByText("Nothing waits for you.").waitFor();
  await world.close();
});

test("what is rejected is not written, and the journal says why", async () => {
  const { world, page } = await proposed();
  const { proposals: [{ id }] } = await world.json("pending");
  await visit(page, `#/approvals/${id}`);
  await page.getByRole("textbox", { name: "Why" }).fill("not on a Friday");
  await page.getByRole("button", { name: "Reject" }).click();
  await page.getByRole("heading", { name: "Rejected" }).waitFor();
  assert.equal(await world.read("deploy/prod.json"), "{\"replicas\": 2}\n");
  const { records } = await world.json("show", id);
  assert.equal(records.at(-1).decided.why, "not on a Friday");
  await world.close();
});

test("a proposal whose file changed meanwhile is called stale and cannot be approved", async () => {
  const { world, page } = await proposed();
  await world.file("deploy/prod.json", "{\"replicas\": 3}\n");
  const { proposals: [{ id }] } = await world.json("pending");
  await visit(page, `#/approvals/${id}`);
  await page.getByText("Stale.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Approve" }).isDisabled(), true);
  await world.close();
});
