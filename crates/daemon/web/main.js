// Where it begins: the session, the views, the address, and what is heard live.

import { get } from "./api.js";
import { makeApprovals } from "./approvals.js";
import { el, put } from "./dom.js";
import { enter, keepsCookies } from "./enter.js";
import { drawError } from "./errors.js";
import { follow } from "./events.js";
import { makeDrift } from "./drift.js";
import { makeFailed } from "./failed.js";
import { help, listen } from "./keys.js";
import { makeOperation } from "./operation.js";
import { address, go, route } from "./route.js";
import { makeState } from "./state.js";
import { makeStorage } from "./storage.js";
import { themes } from "./theme.js";
import { makeTimeline } from "./timeline.js";
import { makeUndo } from "./undo.js";

const main = document.getElementById("main");
const COUNT_WAIT_MS = 300;

themes(document.getElementById("theme"));
document.getElementById("help").addEventListener("click", help);

let is_used_up = false;

start().catch((error) => {
  if (error.status === 401) put(main, locked());
  else put(main, el("div.page", {}, drawError(error)));
});

function locked() {
  return el("div.page", {}, el("div.empty", {}, el("h1", {}, "This page needs a link"),
    is_used_up && el("p", {}, "This link is used up or too old."),
    el("p", {}, "Type ", el("code", {}, "backout ui"), " in a terminal. It opens this page with a link that works once."),
    !keepsCookies() && el("p", {}, "Your browser keeps no cookies of this page, so a link holds until the page is closed or loaded again.")));
}

async function start() {
  is_used_up = !(await enter());
  const me = await get("/v1/me");
  const may = () => me.role === "operator" && !me.read_only;
  const pane = el("article.detail", { "aria-label": "Operation", tabindex: "-1" });
  const timeline = makeTimeline();
  const split = el("div.split-view", {}, timeline.pane, pane);
  const operation = makeOperation(pane, may);
  const undo = makeUndo(pane, timeline);
  const views = { approvals: makeApprovals(may), failed: makeFailed(may), drift: makeDrift(may), state: makeState(), storage: makeStorage() };
  const counts = { approvals: 0, failed: 0, drift: 0 };

  function show() {
    const at = route();
    drawTabs(at.view, counts);
    if (at.view !== "timeline") {
      operation.forget();
      undo.forget();
      if (main.firstChild !== views[at.view].view) put(main, views[at.view].view);
      views[at.view].open(at);
      return;
    }
    if (main.firstChild !== split) put(main, split);
    split.classList.toggle("has-detail", Boolean(at.id || at.all));
    timeline.open();
    if (at.all) { operation.forget(); undo.open({ all: at.all }); }
    else if (at.id && ["undo", "redo"].includes(at.tab)) { operation.forget(); undo.open({ id: at.id, way: at.tab }); }
    else if (at.id) { undo.forget(); operation.open(at); }
    else { operation.forget(); undo.forget(); put(pane, welcome()); }
  }

  let counting = null;
  function recount() {
    counting ??= setTimeout(async () => {
      counting = null;
      try {
        const status = await get("/v1/status");
        counts.approvals = status.proposals.length;
        counts.failed = (status.failed?.length ?? 0) + [...status.unfinished, ...status.stuck].filter((it) => it.status === "interrupted").length;
        counts.drift = status.drifted ?? 0;
        drawTabs(route().view, counts);
      } catch { /* The line says that the server is away. */ }
    }, COUNT_WAIT_MS);
  }

  addEventListener("hashchange", show);
  show();
  recount();
  follow((name, data) => {
    if (name === "gap") { timeline.reload(); recount(); return; }
    if (name === "hello") return;
    if (data.operation) {
      timeline.live(data.operation);
      operation.live(data.operation.id);
      undo.live(data.operation.id);
    }
    if (name === "prompt") timeline.loadPrompts();
    recount();
    const { view } = route();
    if (view === "approvals" || view === "failed") views[view].open(route());
  }, drawLine);
  keys(timeline);
}

function welcome() {
  return el("div.welcome", {}, el("p", {}, "Choose an operation to read what it changed."), el("p.dim", {}, el("kbd", {}, "j"), " ", el("kbd", {}, "k"), " to move, ", el("kbd", {}, "u"), " to preview an undo, ", el("kbd", {}, "?"), " for the rest"));
}

const TABS = [["timeline", "Timeline", "#/"], ["approvals", "Approvals", "#/approvals"], ["failed", "Failed", "#/failed"], ["drift", "Drift", "#/drift"], ["state", "State", "#/state"], ["storage", "Storage", "#/storage"]];

function drawTabs(view, counts) {
  const tabs = document.getElementById("tabs");
  const drawn = JSON.stringify([view, counts]);
  if (tabs.drawn === drawn) return;
  tabs.drawn = drawn;
  const active = tabs.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  put(tabs, TABS.map(([key, text, href]) => el("a", { href, "aria-current": key === view ? "page" : null }, text, counts[key] > 0 && el(`span.tab-count.is-${key}`, {}, counts[key], el("span.unseen", {}, " waiting")))));
  if (active) tabs.querySelector(`a[href="${CSS.escape(active)}"]`)?.focus();
}

function drawLine(state) {
  const place = document.getElementById("live");
  const text = { live: "live", connecting: "connecting", away: "not connected", ended: "session ended" }[state];
  // A line that comes back at once is no news.
  if (state === "connecting" && place.dataset.state) return;
  place.dataset.state = state;
  place.textContent = text;
}

function keys(timeline) {
  const to = (tab) => () => { const at = route(); if (at.view === "timeline" && at.id) go(address(["op", at.id, tab])); };
  listen({
    j: () => timeline.step(1), k: () => timeline.step(-1),
    u: to("undo"), g: to("graph"), d: to("changes"),
    Enter: () => { const at = route(); if (!at.id) timeline.step(0); else document.querySelector("article.detail")?.focus(); },
    s: () => document.querySelector(".diff-bar [aria-pressed=false]")?.click(),
    "/": () => { go(address([])); timeline.search.focus(); timeline.search.select(); },
    a: () => go("#/approvals"), t: () => go("#/"),
    Escape: () => { const at = route(); if (["undo", "redo"].includes(at.tab) && at.id) go(address(["op", at.id])); else if (at.id || at.all) go(address([])); else if (at.view !== "timeline") go("#/"); },
    "?": help,
  });
}
