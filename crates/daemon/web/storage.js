// What the store holds, and what of it holds how much.

import { get } from "./api.js";
import { el, put } from "./dom.js";
import { drawError } from "./errors.js";
import { address } from "./route.js";
import { STATUS, many, shortId, shortSummary, size } from "./words.js";

const KINDS = [["inline", "Small images", "in the journal’s database"], ["packs", "Large images", "chunks, compressed"], ["slots", "Kept as they were", "inodes and directories that were moved aside"]];

const SHOWN_MAX = 20;

/** Makes the view. */
export function makeStorage() {
  const place = el("div.column", {}, el("p.loading", {}, "Loading…"));
  const view = el("div.page", {}, el("h1.view-title", {}, "Storage"), place);

  async function open() {
    try {
      const [storage, status] = await Promise.all([get("/v1/storage?holders=true"), get("/v1/status")]);
      put(place, drawBar(storage), drawHolders(storage), drawStatuses(storage), drawTasks(status), el("p.dim", {}, "In ", el("code", {}, typeof status.state_dir === "string" ? status.state_dir : "")));
    } catch (error) { put(place, drawError(error)); }
  }
  return { view, open };
}

function drawBar({ stored, journal_bytes, cap_bytes }) {
  const part = Math.min(1, stored.total / Math.max(1, cap_bytes));
  const meter = el("meter", { min: 0, max: cap_bytes, value: stored.total, "aria-label": "How full the store is" });
  const rows = [...KINDS.map(([key, name, what]) => [name, what, stored[key], key])];
  const most = Math.max(1, ...rows.map(([, , bytes]) => bytes));
  return el("section.panel", {}, el("div.storage-head", {}, el("p.big", {}, size(stored.total)), el("p.dim", {}, `of ${size(cap_bytes)}, ${(part * 100).toFixed(part < 0.1 ? 1 : 0)} %`)), meter,
    el("table.holds", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "What"), el("td"), el("th.right", { scope: "col" }, "Size"))),
      el("tbody", {}, rows.map(([name, what, bytes]) => el("tr", {}, el("th", { scope: "row" }, name, el("span.dim", {}, ` ${what}`)), el("td", {}, bar(bytes / most)), el("td.right", {}, size(bytes)))),
        el("tr", {}, el("th", { scope: "row" }, "Journal", el("span.dim", {}, " its whole database, with the small images")), el("td", {}, ""), el("td.right", {}, size(journal_bytes))))));
}

function bar(part) {
  const inside = el("span.bar-fill");
  inside.style.width = `${Math.max(0, Math.min(1, part)) * 100}%`;
  return el("span.bar", { "aria-hidden": "true" }, inside);
}

/** Who holds how much. The rows of each table are all that is stored. */
function drawHolders({ stored, holders: { by_agent, by_task, largest, rest } }) {
  const table = (title, entries, filter, nobody) => {
    const sorted = Object.entries(entries).sort((one, other) => other[1] - one[1]);
    if (!sorted.length) return null;
    const [shown, others] = [sorted.slice(0, SHOWN_MAX), sorted.slice(SHOWN_MAX)];
    const most = Math.max(1, rest, sorted[0][1]);
    const row = (name, bytes) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, bar(bytes / most)), el("td.right", { "data-bytes": bytes }, size(bytes)));
    const dim = (text) => el("span.dim", {}, text);
    return el("section.panel", {}, el("h2", {}, title), el("table.holds", {}, el("tbody", {},
      shown.map(([name, bytes]) => row(name ? el("a", { href: address([], { [filter]: name }) }, name) : dim(nobody), bytes)),
      others.length > 0 && row(dim(`${others.length} others`), others.reduce((sum, [, bytes]) => sum + bytes, 0)),
      rest > 0 && row(dim("no operation: versions that others are told by, checkpoints of directories, what gc lets go"), rest),
      el("tr.total", {}, el("th", { scope: "row" }, "All"), el("td"), el("td.right", { "data-bytes": stored.total }, size(stored.total))))));
  };
  return [table("By agent", by_agent, "agent", "no agent"), table("By task", by_task, "task", "no task"),
    el("p.dim", {}, "What several operations need is counted for the first of them."),
    largest?.length > 0 && el("section.panel", {}, el("h2", {}, "What holds most"), el("table.holds", {}, el("tbody", {}, largest.map((it) => el("tr", {}, el("th", { scope: "row" }, el("a", { href: address(["op", it.id], {}) }, shortSummary(it.summary)), " ", el("code.id", {}, shortId(it.id))), el("td.right", {}, size(it.bytes)))))))];
}

function drawStatuses({ statuses, records, retained }) {
  return el("section.panel", {}, el("h2", {}, "Operations"), el("table.holds", {}, el("tbody", {}, Object.entries(statuses).filter(([, count]) => count > 0).map(([status, count]) => el("tr", {}, el("th", { scope: "row" }, el("a", { href: address([], { status }) }, status), el("span.dim", {}, ` ${STATUS[status] ?? ""}`)), el("td.right", {}, count.toLocaleString("en")))))),
    el("p.dim", {}, [many(records, "record"), retained !== undefined && `${many(retained, "operation")} can be undone`].filter(Boolean).join(", ")));
}

function drawTasks(status) {
  if (!status.open_tasks.length) return null;
  return el("section.panel", {}, el("h2", {}, "Open tasks"), el("p.dim", {}, "What they wrote is kept until they end."), el("ul.targets", {}, status.open_tasks.map((task) => el("li", {}, el("a", { href: address([], { task: task.id }) }, task.id)))));
}
