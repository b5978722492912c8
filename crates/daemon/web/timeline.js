// The timeline: filters, the list, and what is chosen in it.

import { get } from "./api.js";
import { button, el, put, say } from "./dom.js";
import { drawError } from "./errors.js";
import { Feed } from "./feed.js";
import { makeFilters } from "./filters.js";
import { address, go, route } from "./route.js";
import { drawRow, groupOf } from "./rows.js";
import { many } from "./words.js";
import { VirtualList } from "./virtual.js";

const ROW = 54;
const HEAD = 36;
const AHEAD = 300;
const FRESH_MS = 2500;

/** Makes the timeline once; it lives as long as the page. */
export function makeTimeline() {
  const prompts = new Map();
  const seen = { agents: new Set(), tasks: new Set() };
  const fresh = new Map();
  let feed = null;
  let shown = null;
  let waiting = 0;
  // What the address says, read once for all rows.
  let group = "day";
  const list = new VirtualList({
    rowHeight: ROW, headHeight: HEAD,
    key: (index) => feed.rows[index]?.id ?? `none-${index}`,
    heads: (index) => {
      const row = feed.rows[index];
      if (!row) return false;
      return index === 0 || groupOf(feed.rows[index - 1], group) !== groupOf(row, group);
    },
    draw: (index, node) => {
      const row = feed.rows[index];
      drawRow(node, row, { index, length: feed.length, selected: row && row.id === chosen()?.id, fresh: row && fresh.has(row.id),
        heading: row && list.heads(index) ? { group, text: prompts.get(row.prompt)?.text } : null });
    },
    seen: (first, last) => {
      feed?.want(last + AHEAD);
      if (list.scroller.scrollTop < ROW) { waiting = 0; pill(); }
    },
  });
  const filters = makeFilters(() => ({ agents: [...seen.agents].sort(), tasks: [...seen.tasks].sort() }));
  const newer = button("button.newer", "", () => { list.scroller.scrollTo({ top: 0 }); list.show(); });
  const note = el("div.list-note");
  const count = el("p.count", { role: "status" });
  const pane = el("section.timeline", { "aria-label": "Timeline" }, el("h1.unseen", {}, "Timeline"), filters.bar, el("div.list", {}, newer, list.scroller, note), count);
  const pill = () => {
    newer.hidden = waiting === 0;
    if (waiting) newer.textContent = `↑ ${many(waiting, "new operation")}`;
  };
  pill();

  /** The row that the address names; its id may be cut short there. */
  function chosen() {
    const { id } = route();
    if (!id) return null;
    return feed.byId.get(id) ?? feed.rows.find((row) => row.id.startsWith(id)) ?? null;
  }

  function learn(rows) {
    const before = seen.agents.size + seen.tasks.size;
    for (const { agent, task } of rows) {
      if (agent) seen.agents.add(agent);
      if (task) seen.tasks.add(task);
    }
    if (seen.agents.size + seen.tasks.size !== before) filters.draw();
  }

  function changed({ added = [], follow = false, from = 0 } = {}) {
    learn(feed.rows.slice(from, from + 1000));
    list.refresh(feed.length, { added, follow, from });
    const is_empty = feed.rows.length === 0 && feed.next === null;
    put(note, feed.error && drawError(feed.error), is_empty && empty(feed.filters));
    note.hidden = !feed.error && !is_empty;
    const known = feed.next === null ? feed.rows.length : feed.total;
    count.textContent = known ? many(known, "operation") : "";
  }

  function open() {
    const asked = JSON.stringify({ ...route().filters, group: undefined });
    group = route().filters.group ?? "day";
    filters.draw();
    if (asked !== shown) {
      shown = asked;
      waiting = 0;
      pill();
      feed?.close();
      feed = new Feed(route().filters, changed);
      list.scroller.scrollTop = 0;
      list.refresh(0);
      feed.ensure(1);
      return;
    }
    list.refresh(feed.length);
  }

  async function loadPrompts() {
    try {
      const reply = await get("/v1/prompts?limit=500");
      for (const prompt of reply.prompts) prompts.set(prompt.id, prompt);
      if (group === "prompt" && feed) list.refresh(feed.length);
    } catch { /* The ids are shown instead. */ }
  }

  /** Goes up or down in the list. */
  function step(by) {
    const row = chosen();
    const at = row ? feed.rows.indexOf(row) : -1;
    const index = Math.min(Math.max(0, at < 0 ? list.at(list.scroller.scrollTop) : at + by), feed.rows.length - 1);
    if (index < 0) return;
    const { tab } = route();
    go(address(["op", feed.rows[index].id, ["graph", "facts"].includes(tab) ? tab : "changes"]), true);
    list.reveal(index);
    pane.querySelector("[aria-current=true]")?.focus({ preventScroll: true });
  }

  /** Takes what was heard live. All that came in one moment is drawn at once. */
  let heard = [];
  function live(operation) {
    heard.push(operation);
    if (heard.length > 1) return;
    setTimeout(() => {
      const all = heard;
      heard = [];
      if (!feed) return;
      const added = [];
      for (const each of all) {
        const index = feed.heard(each);
        if (index === false) continue;
        for (let at = 0; at < added.length; at += 1) if (added[at] >= index) added[at] += 1;
        added.push(index);
        fresh.set(each.id, true);
        setTimeout(() => fresh.delete(each.id), FRESH_MS);
        if (each.prompt && !prompts.has(each.prompt)) loadPrompts();
      }
      added.sort((one, other) => one - other);
      // At the top of the list, with nobody's pointer or focus in it, what is new is simply seen.
      const is_watched = pane.matches(":hover") || pane.contains(document.activeElement) || route().id;
      const follow = list.scroller.scrollTop < 1 && !is_watched;
      changed({ added, follow, from: added[0] ?? feed.rows.length });
      if (added.length && !follow) { waiting += added.length; pill(); }
      if (added.length) say(`${many(added.length, "new operation")}`);
    }, 60);
  }

  setInterval(() => { if (feed) { list.redraw = true; list.later(); } }, 30000);
  loadPrompts();
  return { pane, open, step, live, search: filters.search, rowOf: (id) => feed?.byId.get(id),
    nameOf: (all) => (all.prompt ? `“${prompts.get(all.prompt)?.text ?? all.prompt}”` : `task ${all.task}`),
    reload: () => { shown = null; open(); }, loadPrompts,
    reveal: () => { const row = chosen(); if (row) list.reveal(feed.rows.indexOf(row)); } };
}

function empty(filters) {
  if (Object.keys(filters).length) return el("p.empty", {}, "No operation matches.");
  return el("div.empty", {}, el("h2", {}, "Nothing was written yet"),
    el("p", {}, "Protect the agent you use with ", el("code", {}, "backout init claude-code"), ", or write something with ", el("code", {}, "backout write FILE"), "."));
}
