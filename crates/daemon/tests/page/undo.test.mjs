// From the preview to the proof.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs/promises";
import { after, test } from "node:test";
import { World, closeBrowser, until, visit } from "./world.mjs";

after(closeBrowser);

test("one file of three is chosen, comes back, is looked at again, and a redo takes that back", async () => {
  const world = await World.make();
  // Names with the signs of patterns: each stands for itself.
  const names = ["a*.txt", "a[1]{x}.txt", "ab.txt"];
  for (const name of names) await world.file(name, "old\n");
  await world.backout("run", "--", "sh", "-c", "for file in *.txt; do echo new > \"$file\"; done");
  await world.backout("write", "later.txt", { input: "stays\n" });
  await world.serve();
  const page = await world.open({ hash: `#/op/${await world.id("run")}` });
  await page.getByRole("link", { name: "Undo…" }).click();
  await page.getByText("3 targets come back").waitFor();
  await page.getByText("1 operation stays").waitFor();
  for (const name of ["a*.txt", "ab.txt"]) {
    await page.getByRole("checkbox", { name: world.at(name), exact: true }).uncheck();
    await until(`${name} stays`, () => page.getByRole("button", { name: "Undo 1 operation" }).isEnabled());
  }
  await page.getByText("1 target comes back").waitFor();
  assert.equal(await world.read("a[1]{x}.txt"), "new\n", "a preview changes nothing");
  await page.getByRole("button", { name: "Undo 1 operation" }).click();
  await page.getByRole("heading", { name: "Undone" }).waitFor();
  await page.getByText(/Looked again at .*: 1 of 1 target is what it was before/).waitFor();
  const all = async () => Promise.all(names.map((name) => world.read(name)));
  assert.deepEqual(await all(), ["new\n", "old\n", "new\n"]);
  assert.equal(await world.read("later.txt"), "stays\n");
  await page.getByRole("link", { name: "Redo…" }).click();
  await page.getByRole("button", { name: "Redo 1 operation" }).click();
  await page.getByRole("heading", { name: "Redone" }).waitFor();
  await page.getByText(/Looked again at .* what the operation left/).waitFor();
  assert.deepEqual(await all(), ["new\n", "new\n", "new\n"]);
  await world.close();
});

test("a conflict stops, says what somebody changed, and can be merged", async () => {
  const world = await World.make();
  const lines = (first, last) => `${first}\n2\n3\n4\n5\n6\n7\n8\n${last}\n`;
  await world.file("notes.md", lines("one", "nine"));
  await world.backout("edit", "notes.md", "--search", "one", "--replace", "ONE");
  await world.file("notes.md", lines("ONE", "a person wrote this"));
  await world.serve();
  const page = await world.open({ hash: `#/op/${await world.id("notes.md")}/undo` });
  await page.getByText("1 conflict", { exact: true }).waitFor();
  await page.getByText("What somebody else changed").waitFor();
  assert.equal(await page.getByRole("button", { name: /^Undo/ }).isDisabled(), true);
  await page.getByRole("radio", { name: /Merge/ }).check();
  await page.getByRole("button", { name: "Undo 1 operation" }).click();
  await page.getByRole("heading", { name: "Undone" }).waitFor();
  assert.equal(await world.read("notes.md"), lines("one", "a person wrote this"));
  await world.close();
});

test("what was overwritten by force comes back by a redo", async () => {
  const world = await World.make();
  await world.file("a.txt", "old\n");
  await world.backout("write", "a.txt", { input: "agent\n" });
  await world.file("a.txt", "a person\n");
  await world.serve();
  const page = await world.open({ hash: `#/op/${await world.id("a.txt")}/undo` });
  await page.getByRole("radio", { name: /Overwrite/ }).check();
  await page.getByRole("button", { name: "Undo 1 operation" }).click();
  await until("the old content", async () => (await world.read("a.txt")) === "old\n");
  await page.getByRole("link", { name: "Redo…" }).click();
  await page.getByRole("button", { name: "Redo 1 operation" }).click();
  await until("the person's content", async () => (await world.read("a.txt")) === "a person\n");
  await world.close();
});

test("a preview that does not hold any more is not acted on", async () => {
  const world = await World.make();
  await world.backout("write", "a.txt", { input: "1\n" });
  await world.serve();
  const page = await world.open({ hash: `#/op/${await world.id("a.txt")}/undo` });
  const act = page.getByRole("button", { name: /^Undo/ });
  await until("the preview", () => act.isEnabled());
  await world.backout("edit", "a.txt", "--search", "1", "--replace", "2", { agent: "codex" });
  await page.getByText("Something was written since.").waitFor();
  assert.equal(await act.isDisabled(), true);
  await page.getByRole("button", { name: "Look again" }).click();
  await page.getByRole("button", { name: "Undo 2 operations" }).waitFor();
  // Not even if the page has not heard of it: a file that nobody recorded.
  await world.file("a.txt", "3\n");
  await page.getByRole("button", { name: "Undo 2 operations" }).click();
  await page.getByText("The world changed since you looked.").waitFor();
  assert.equal(await world.read("a.txt"), "3\n");
  await world.close();
});

test("what a killed command did waits for a person, who keeps it", async () => {
  const world = await World.make();
  const child = world.start("run", "--", "sh", "-c", "echo half > work.txt; exec sleep 1000");
  await until("the command wrote", () => world.has("work.txt"));
  const gone = new Promise((done) => { child.once("exit", done); });
  process.kill(-child.pid, "SIGKILL");
  await gone;
  await until("it is called interrupted", async () => {
    await world.backout("recover");
    return (await world.json("log")).operations[0].status === "interrupted";
  });
  await world.serve();
  const page = await world.open({ hash: "#/failed" });
  await page.getByText("It was interrupted before it ended.").waitFor();
  await page.getByRole("button", { name: "Keep what it did" }).click();
  await page.getByText("Nothing waits for you.").waitFor();
  assert.equal(await world.read("work.txt"), "half\n");
  const { operations } = await world.json("log");
  assert.equal(operations.some((it) => it.status === "interrupted"), false);
  await world.close();
});

test("an undo that failed is listed with what to do, and comes through when it can", async (t) => {
  const world = await World.make();
  const disk = `${world.root}/disk`;
  await fs.mkdir(disk);
  const mount = (...words) => execFileSync("mount", words, { stdio: "pipe" });
  try { mount("-t", "tmpfs", "-o", "size=4m", "tmpfs", disk); } catch { t.skip("only root can mount a disk that fails"); return; }
  try {
    await fs.writeFile(`${disk}/there`, "0");
    await world.backout("write", `${disk}/there`, { input: "1" });
    await world.serve();
    const page = await world.open();
    mount("-o", "remount,ro", disk);
    await visit(page, `#/op/${await world.id("there")}/undo`);
    await page.getByRole("button", { name: "Undo 1 operation" }).click();
    await page.getByRole("alert").waitFor();
    await page.getByRole("link", { name: /Failed/ }).getByText("1", { exact: false }).waitFor();
    await visit(page, "#/failed");
    await page.getByRole("heading", { name: /there/ }).waitFor();
    await page.getByText("What was tried").waitFor();
    mount("-o", "remount,rw", disk);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("Nothing waits for you.").waitFor();
    assert.equal(await fs.readFile(`${disk}/there`, "utf8"), "0");
    page.complaints = page.complaints.filter((it) => !it.includes("the server responded with a status of 409"));
  } finally {
    execFileSync("umount", [disk]);
  }
  await world.close();
});
