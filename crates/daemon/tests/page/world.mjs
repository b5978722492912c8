// A store of its own, the real server over it, and a real browser that looks at it.

import { execFile, spawn } from "node:child_process";
import fs from "node:fs/promises";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { deflateSync, crc32 } from "node:zlib";
import { chromium } from "playwright-core";

const run = promisify(execFile);
const PROGRAM = process.env.BACKOUT;
const WAIT_MS = 30000;
export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
export const DESK = { width: 1280, height: 800 };
export const PHONE = { width: 390, height: 844 };

let browser = null;
const worlds = new Set();

/** The browser, one for all tests of a file. */
export async function theBrowser() {
  browser ??= await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
  return browser;
}

/** Ends the browser, and what a test that failed left. */
export async function closeBrowser() {
  await browser?.close();
  browser = null;
  for (const world of worlds) await world.leave();
}

/** Waits until something holds, and says what it was otherwise. */
export async function until(what, holds) {
  const end = Date.now() + WAIT_MS;
  let last;
  for (;;) {
    try { last = await holds(); if (last) return last; } catch (error) { last = error; }
    if (Date.now() > end) throw new Error(`${what}: still ${last}`);
    await new Promise((done) => { setTimeout(done, 50); });
  }
}

/** A directory with a project in it, and a store. */
export class World {
  static async make() {
    const world = new World();
    world.root = await fs.mkdtemp(path.join(os.tmpdir(), "backout-page-"));
    world.state = path.join(world.root, "state");
    world.work = path.join(world.root, "shop");
    world.pages = [];
    worlds.add(world);
    await fs.mkdir(world.work);
    return world;
  }

  at(name) { return path.join(this.work, name); }

  async file(name, content) {
    await fs.mkdir(path.dirname(this.at(name)), { recursive: true });
    await fs.writeFile(this.at(name), content);
  }

  read(name) { return fs.readFile(this.at(name), "utf8"); }

  async has(name) { return fs.access(this.at(name)).then(() => true, () => false); }

  environment() {
    return { PATH: process.env.PATH, HOME: this.root, BACKOUT_STATE_DIR: this.state };
  }

  /** Runs the program as somebody else would, beside the server. */
  async backout(...words) {
    const { input, fails, ...rest } = typeof words.at(-1) === "object" ? words.pop() : {};
    const globals = Object.entries(rest).flatMap(([key, value]) => [`--${key}`, value]);
    const child = run(PROGRAM, [...globals, ...words], { cwd: this.work, env: this.environment() });
    // Who reads nothing may be gone before it is written.
    child.child.stdin.on("error", () => {});
    child.child.stdin.end(input ?? "");
    try { return (await child).stdout; } catch (error) {
      if (fails) return error.stderr;
      throw new Error(`backout ${words.join(" ")}: ${error.stdout}${error.stderr}`);
    }
  }

  /** Starts the program in a process group of its own and does not wait for it. */
  start(...words) {
    return spawn(PROGRAM, words, { cwd: this.work, env: this.environment(), stdio: "ignore", detached: true });
  }

  async json(...words) { return JSON.parse(await this.backout("--json", ...words)); }

  /** The id of the newest operation whose summary has this in it. */
  async id(text) {
    const { operations } = await this.json("log", "-n", "0");
    const found = operations.find((it) => it.summary.includes(text));
    if (!found) throw new Error(`no operation has ${text}: ${operations.map((it) => it.summary)}`);
    return found.id;
  }

  /** Tells the hook of Claude Code of an event. */
  hook(event, more) {
    const said = { session_id: "s1", cwd: this.work, hook_event_name: event, transcript_path: "/nowhere", permission_mode: "acceptEdits", ...more };
    return this.backout("hook", "claude-code", { input: JSON.stringify(said) });
  }

  prompt(prompt_id, prompt) { return this.hook("UserPromptSubmit", { prompt_id, prompt }); }

  /** Writes a file as the tool of an agent does. */
  async tool(prompt_id, name, content) {
    this.calls = (this.calls ?? 0) + 1;
    const more = { prompt_id, tool_name: "Write", tool_input: { file_path: this.at(name), content }, tool_use_id: `call-${this.calls}` };
    await this.hook("PreToolUse", more);
    await this.file(name, content);
    await this.hook("PostToolUse", more);
  }

  /** Starts the server. */
  async serve() {
    const server = spawn(PROGRAM, ["serve", "--listen", "127.0.0.1:0"], { cwd: this.work, env: this.environment(), stdio: ["ignore", "pipe", "pipe"] });
    this.server = server;
    let said = "";
    server.stdout.on("data", (data) => { said += data; });
    server.stderr.on("data", (data) => { said += data; });
    this.said = () => said;
    await until("the server is there", async () => {
      if (server.exitCode !== null) throw new Error(said);
      return this.ask("GET", "/healthz").catch(() => null);
    });
  }

  async stopServer() {
    const { server } = this;
    if (!server || server.exitCode !== null) return;
    const gone = new Promise((done) => { server.once("exit", done); });
    server.kill("SIGTERM");
    const late = setTimeout(() => { this.wasKilled = true; server.kill("SIGKILL"); }, WAIT_MS);
    await gone;
    clearTimeout(late);
  }

  async leave() {
    worlds.delete(this);
    await this.stopServer();
    await fs.rm(this.root, { recursive: true, force: true });
  }

  /** Asks the server over its socket, as an operator. */
  ask(method, where, body) {
    return new Promise((done, fail) => {
      const options = { socketPath: path.join(this.state, "serve", "socket"), method, path: where, headers: { Host: "localhost", "Content-Type": "application/json" } };
      const request = http.request(options, (answer) => {
        let text = "";
        answer.on("data", (data) => { text += data; });
        answer.on("end", () => { answer.statusCode < 300 ? done(JSON.parse(text)) : fail(new Error(`${answer.statusCode} ${text}`)); });
      });
      request.on("error", fail);
      request.end(method === "POST" ? JSON.stringify(body ?? {}) : undefined);
    });
  }

  async link() { return (await this.ask("POST", "/v1/links")).url; }

  /** Opens the page in a context of its own. What the page complains about is a failure of the test. */
  async open({ viewport = DESK, scheme = "light", hash, prepare, bypass = false, context: given, link: is_new = !given } = {}) {
    const context = given ?? await (await theBrowser()).newContext({ viewport, colorScheme: scheme, reducedMotion: "reduce", bypassCSP: bypass });
    context.setDefaultTimeout(WAIT_MS);
    await prepare?.(context);
    const page = await context.newPage();
    page.complaints = [];
    page.on("pageerror", (error) => page.complaints.push(String(error.stack ?? error)));
    // The browser asks for an icon by itself where a page names none.
    const is_icon = (message) => message.location().url.endsWith("/favicon.ico");
    page.on("console", (message) => { if (message.type() === "error" && !is_icon(message)) page.complaints.push(message.text()); });
    page.on("dialog", (dialog) => { page.complaints.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
    page.on("request", (request) => { if (!/^(http:\/\/127\.0\.0\.1[:/]|blob:|data:)/.test(request.url())) page.complaints.push(`left: ${request.url()}`); });
    if (!is_new) await page.goto(this.origin);
    else {
      const link = await this.link();
      this.origin = new URL(link).origin;
      await page.goto(link);
    }
    await page.getByText("live", { exact: true }).waitFor({ state: "attached" });
    if (hash) await visit(page, hash);
    this.pages.push(page);
    return page;
  }

  async close() {
    const complaints = this.pages.flatMap((page) => page.complaints);
    for (const page of this.pages) await page.context().close();
    await this.leave();
    if (this.wasKilled) throw new Error("the server did not end by itself");
    if (complaints.length) throw new Error(`the page complained:\n${complaints.join("\n")}`);
  }
}

/** Goes to a place of the page. */
export async function visit(page, hash) {
  await page.evaluate((to) => { location.hash = to; }, hash);
}

/** The summaries of the rows that are drawn, from above. */
export function rows(page) {
  return page.locator(".scroller a.op .what").allInnerTexts();
}

/** A picture of one colour that differs by its number. */
export function png(shade) {
  const [width, height] = [64, 40];
  const lines = Buffer.alloc(height * (1 + width * 3), shade);
  for (let line = 0; line < height; line += 1) lines[line * (1 + width * 3)] = 0;
  const chunk = (kind, data) => {
    const body = Buffer.concat([Buffer.from(kind), data]);
    const [size, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    size.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([size, body, sum]);
  };
  const head = Buffer.from([0, 0, 0, width, 0, 0, 0, height, 8, 2, 0, 0, 0]);
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", head), chunk("IDAT", deflateSync(lines)), chunk("IEND", Buffer.alloc(0))]);
}
