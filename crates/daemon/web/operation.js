// One operation: what it is, what it changed, what it was built on, and what is recorded of it.

import { get } from "./api.js";
import { el, prose, put } from "./dom.js";
import { drawDiff, drawSwitch } from "./diff.js";
import { drawError } from "./errors.js";
import { drawGraph } from "./graph.js";
import { hue } from "./rows.js";
import { address, route } from "./route.js";
import { REASON, STATE, STATUS, fullTime, many, shortId, shortSummary, size, targetText } from "./words.js";

const TABS = { changes: "Changes", graph: "Built on", facts: "Facts" };
const IN_EFFECT = ["committed", "applied", "interrupted"];

/** Draws an operation into a pane, and again whenever it changed. */
export function makeOperation(pane, may) {
  let shown = null;
  let stop = new AbortController();

  async function open({ id, tab }) {
    stop.abort();
    stop = new AbortController();
    const { signal } = stop;
    const is_same = shown?.id === id;
    if (!is_same) put(pane, el("p.loading", {}, "Loading…"));
    try {
      const reply = is_same && shown.tab !== tab ? shown.reply : await get(`/v1/operations/${encodeURIComponent(id)}`, signal);
      draw(reply, id, tab, signal, is_same && shown.tab === tab);
    } catch (error) {
      if (error.name !== "AbortError") { shown = null; put(pane, back(), drawError(error)); }
    }
  }

  function draw(reply, id, tab, signal, keep_body) {
    const body = keep_body ? pane.querySelector(".detail-body") : null;
    const head = drawHead(reply, tab, may);
    const old = pane.querySelector(".detail-head");
    const active = old?.contains(document.activeElement) ? document.activeElement.dataset.act : null;
    shown = { id, tab, reply };
    if (body && old) {
      old.replaceWith(head);
      if (active) head.querySelector(`[data-act="${active}"]`)?.focus();
      if (tab === "facts") put(body, drawFacts(reply));
      return;
    }
    const made = el("div.detail-body", {}, el("p.loading", {}, "Loading…"));
    put(pane, back(), head, made);
    pane.scrollTop = 0;
    fillBody(made, reply, tab, signal);
  }

  async function fillBody(body, reply, tab, signal) {
    try {
      const made = tab === "graph" ? await drawGraph(reply.operation.id, signal) : tab === "facts" ? drawFacts(reply) : await changes(reply, signal);
      if (!signal.aborted) put(body, made);
    } catch (error) {
      if (error.name !== "AbortError") put(body, drawError(error));
    }
  }

  async function changes(reply, signal) {
    const { id } = reply.operation;
    const diff = await get(`/v1/operations/${encodeURIComponent(id)}/diff`, signal);
    const place = el("div");
    const again = () => {
      const [added, removed] = ["added", "removed"].map((key) => diff.files.reduce((sum, file) => sum + (file[key] ?? 0), 0));
      put(place, el("div.diff-bar", {}, el("span", {}, many(diff.files.length, "target"), ", ", el("span.plus", {}, `+${added}`), " ", el("span.minus", {}, `−${removed}`)), drawSwitch(again)), drawDiff(diff.files, { id }));
    };
    again();
    return place;
  }

  /** Looks again if what is shown is what changed. */
  function live(id) {
    const { id: here, tab } = route();
    if (shown && here && shown.id === here && shown.reply.operation.id === id && TABS[tab]) open({ id: here, tab });
  }

  return { open, live, forget: () => { stop.abort(); shown = null; } };
}

/** The way back to the list, where there is room for one of both only. */
export function back() {
  return el("a.back", { href: address([]) }, "‹ Timeline");
}

function drawHead(reply, tab, may) {
  const it = reply.operation;
  const id = it.id;
  const is_undo = it.verb === "undo" || it.verb === "redo";
  const takes = IN_EFFECT.includes(it.status) && it.retained;
  const act = (way, text, primary) => may() && el(primary ? "a.button.primary" : "a.button", { href: address(["op", id, way]), data: { act: way } }, text);
  return el("header.detail-head", {},
    el("div.detail-title", {}, el("h1", { title: it.summary }, shortSummary(it.summary, it.targets)),
      el("div.actions", {},
        takes && !is_undo && act("undo", "Undo…", true),
        takes && is_undo && act("redo", it.verb === "undo" ? "Redo…" : "Undo…", true),
        it.status === "undone" && undoer(it) && el("a.button", { href: address(["op", undoer(it), "redo"]), data: { act: "redo" } }, "Redo…"),
        it.status === "proposed" && el("a.button.primary", { href: address(["approvals", id], {}), data: { act: "decide" } }, "Decide…"))),
    el("p.facts-line", {},
      el(`span.badge.is-${it.status}`, {}, STATUS[it.status] ?? it.status),
      it.agent && el("a", { href: address([], { agent: it.agent }) }, el(`span.agent.hue-${hue(it.agent)}`, {}, it.agent)),
      it.task && el("a", { href: address([], { task: it.task }) }, el("span.task", {}, it.task)),
      it.prompt && el("a", { href: address([], { prompt: it.prompt, group: "prompt" }) }, `prompt ${shortId(it.prompt)}`),
      el("time", { datetime: new Date(it.at).toISOString() }, fullTime(it.at)),
      el("code.id", {}, shortId(id))),
    drawDrift(reply),
    (it.notes ?? []).map((note) => el("p.note", {}, prose(note))),
    el("nav.subtabs", { "aria-label": "About this operation" }, Object.entries(TABS).map(([key, text]) =>
      el("a", { href: address(["op", id, key]), "aria-current": key === tab ? "page" : null, data: { act: key } }, text))));
}

function undoer(it) {
  return it.targets.map((target) => target.undone_by).find(Boolean);
}

/** Says which targets are not any more what the operation left, if the way back is not clear. */
function drawDrift({ operation, targets, dependents }) {
  if (!IN_EFFECT.includes(operation.status)) return null;
  const drifted = (targets ?? []).filter((it) => ["conflict", "cannot-come-back", "incomplete"].includes(it.state));
  if (!drifted.length) return null;
  // What was written again by an operation that the journal knows is no drift.
  if (dependents.length) return el("p.note", {}, `${many(drifted.length, "target")} changed since. `, el("a", { href: address(["op", operation.id, "graph"]) }, `${many(dependents.length, "later operation")} built on it`), "; a preview of the undo tells what else is in the way.");
  return el("div.drift", {}, el("p", {}, el("b", {}, "Drift. "), `Somebody changed ${many(drifted.length, "target")} since, and no operation tells of it:`),
    el("ul", {}, drifted.slice(0, 8).map((it) => el("li", {}, el("code", {}, targetText(it.target)), " ", it.why)), drifted.length > 8 && el("li", {}, `and ${drifted.length - 8} more`)));
}

function drawFacts({ operation: it, dependents, records, targets, compensation }) {
  const cost = it.decision.cost;
  const line = (name, ...text) => el("div", {}, el("dt", {}, name), el("dd", {}, text));
  const states = new Map((targets ?? []).map((each) => [targetText(each.target), each]));
  return el("div.facts", {},
    el("dl.fact-list", {},
      line("Id", el("code", {}, it.id)),
      line("How it is undone", it.decision.strategy, el("span.dim", {}, ` ${it.decision.reason}`)),
      cost && line("What that keeps", `${size(cost.stored_bytes)} in the store`, cost.kept_bytes > 0 && `, ${size(cost.kept_bytes)} as they were`),
      line("Kept", it.retained ? "yes" : "no: its images were let go"),
      compensation && line("Answered by", compensation.compensation_action, ` (${compensation.status})`),
      it.undoes && line("Takes back", el("a", { href: address(["op", it.undoes]) }, shortId(it.undoes))),
      it.depends_on.length > 0 && line("Built on", it.depends_on.map((each) => [el("a", { href: address(["op", each.on]) }, shortId(each.on)), ` (${REASON[each.reason] ?? each.reason}) `])),
      dependents.length > 0 && line("Built on it", dependents.map((each) => [el("a", { href: address(["op", each]) }, shortId(each)), " "])),
      it.trigger && line("Set off by", [it.trigger.agent ?? it.trigger.rule ?? it.trigger.source, it.trigger.why].filter(Boolean).join(": ")),
      line("Process", `${it.owner.pid}`)),
    el("h2", {}, many(it.targets.length, "target")),
    el("ul.targets", {}, it.targets.slice(0, 500).map((target) => {
      const state = states.get(targetText(target));
      return el("li", {}, el("code", {}, targetText(target)), target.reach === "tree" && " and all below", state && el(`span.state.is-${state.state}`, {}, ` ${STATE[state.state] ?? state.state}`), state?.why && el("span.dim", {}, ` ${state.why}`));
    })),
    el("h2", {}, "In the journal"),
    el("ol.records", {}, records.map((record) => el("li", {}, el("code", {}, record.lsn), " ", el("b", {}, record.event), " ", el("time", {}, fullTime(record.at)), record.hash && el("span.dim.hash", { title: "the hash that chains it to the one before" }, ` ${record.hash.slice(0, 16)}`)))));
}
