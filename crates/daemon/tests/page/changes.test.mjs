// What an operation changed: lines and words, rows, keys, pictures, modes; and what was built on what.

import assert from "node:assert/strict";
import fs from "node:fs/promises";
import { after, test } from "node:test";
import { World, closeBrowser, png, until, visit } from "./world.mjs";

after(closeBrowser);

test("words that changed are marked, side by side and unified", async () => {
  const world = await World.make();
  await world.file("app.py", "def total(items):\n    return sum(items)\n\nprint('ready')\n");
  await world.backout("edit", "app.py", "--search", "sum(items)", "--replace", "sum(prices)");
  await world.serve();
  const page = await world.open({ hash: `#/op/${await world.id("app.py")}` });
  await page.getByRole("button", { name: "Side by side" }).click();
  assert.deepEqual(await page.locator("table.split td.del mark").allInnerTexts(), ["items"]);
  assert.deepEqual(await page.locator("table.split td.add mark").allInnerTexts(), ["prices"]);
  await page.keyboard.press("s");
  await page.locator("table.unified").waitFor();
  assert.deepEqual(await page.locator("table.unified tr.add mark").allInnerTexts(), ["prices"]);
  assert.equal(await page.locator("table.unified tr.same").count(), 3);
  await page.reload();
  await page.locator("table.unified").waitFor();
  await world.close();
});

test("pictures are shown as pictures, before and after", async () => {
  const world = await World.make();
  await world.file("logo.png", png(40));
  await fs.writeFile(`${world.root}/new.png`, png(200));
  await world.backout("write", "logo.png", "--from", `${world.root}/new.png`);
  await world.serve();
  const page = await world.open({ hash: `#/op/${await world.id("logo.png")}` });
  await until("two pictures", async () => (await page.locator(".pictures img").evaluateAll((all) => all.map((it) => it.naturalWidth))).join() === "64,64");
  await world.close();
});

test("rows, keys, modes and sizes are told as what they are", async () => {
  const world = await World.make();
  await world.file("app.toml", "[server]\nport = 8080\n");
  await world.file("run.sh", "#!/bin/sh\n");
  await world.file("blob", Buffer.from([0, 1, 2, 255]));
  await world.backout("sql", "--create", "--db", "shop.db", "CREATE TABLE orders(id INTEGER PRIMARY KEY, paid INT)");
  await world.backout("sql", "--db", "shop.db", "INSERT INTO orders VALUES (7, 0)");
  await world.backout("sql", "--db", "shop.db", "UPDATE orders SET paid = 1");
  await world.backout("set", "app.toml", "server.port", "9090");
  await world.backout("chmod", "755", "run.sh");
  await world.backout("write", "blob", "--from", "/bin/true");
  await world.serve();
  const page = await world.open();
  const { operations } = await world.json("log");
  const [blob, mode, key, row] = operations.map((it) => it.id);
  await visit(page, `#/op/${row}`);
  await page.locator("table.values").waitFor();
  assert.equal(await page.locator("table.values del").innerText(), "0");
  assert.equal(await page.locator("table.values ins").innerText(), "1");
  await visit(page, `#/op/${key}`);
  await page.getByText("app.toml:server.port").waitFor();
  await until("the key", async () => (await page.locator("table.diff td.code").allInnerTexts()).map((it) => it.replace(/\s/g, "")).join() === "−8080,+9090");
  await visit(page, `#/op/${mode}`);
  await page.getByText("0644 rw-r--r--").waitFor();
  await page.getByText("0755 rwxr-xr-x").waitFor();
  await visit(page, `#/op/${blob}`);
  await page.getByText(/Binary, 4 bytes → \d+ kB/).waitFor();
  await world.close();
});

test("the picture of what was built on what can be clicked", async () => {
  const world = await World.make();
  await world.backout("mkdir", "lib");
  await world.backout("write", "lib/a.txt", { input: "1\n" });
  await world.backout("write", "lib/a.txt", { input: "2\n" });
  await world.backout("write", "other.txt", { input: "2\n" });
  await world.serve();
  const page = await world.open({ hash: `#/op/${await world.id("directory")}/graph` });
  await until("three lines", async () => (await page.locator(".graph-line").count()) === 3);
  assert.equal(await page.locator("svg.rails path.rail.goes").count() >= 2, true);
  assert.equal(await page.locator(".graph-line.is-above").count(), 2);
  await page.locator("svg.rails a.node.is-above").first().click();
  await until("the other one", async () => (await page.locator(".graph-line[aria-current]").innerText()).includes("lib/a.txt"));
  assert.equal(await page.locator(".graph-line.is-below").count(), 2);
  await world.close();
});

test("drift is said where nobody recorded the change", async () => {
  const world = await World.make();
  await world.backout("write", "a.txt", { input: "agent\n" });
  await world.file("a.txt", "a person\n");
  await world.serve();
  const page = await world.open({ hash: `#/op/${await world.id("a.txt")}` });
  await page.getByText("Somebody changed 1 target since").waitFor();
  await world.close();
});
