// One operation as a row of the timeline, and the headings between them.

import { el, put } from "./dom.js";
import { address, route } from "./route.js";
import { STATUS, ago, day, fullTime, many, pathText, shortId, shortSummary } from "./words.js";

/** What the timeline can be divided by. */
export const GROUPS = { day: "Day", prompt: "Prompt", task: "Task", agent: "Agent" };

/** What a row belongs to. */
export function groupOf(row, group) {
  return row[group] ?? "";
}

/** A colour of eight, by the name of an agent. It only helps the eye: the name stands beside it. */
export function hue(name = "") {
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + letter.codePointAt(0)) >>> 0;
  return sum % 8;
}

/** Fills the node of a row. What is drawn already is left alone, so that nothing is taken from under a pointer or a focus. */
export function drawRow(node, row, { heading, selected, index, length, fresh }) {
  node.setAttribute("aria-posinset", index + 1);
  node.setAttribute("aria-setsize", length);
  const drawn = row ? [row.id, row.status, row.summary, row.count, ago(row.at), selected, fresh, heading, route().filters].map((it) => JSON.stringify(it)).join() : "none";
  if (node.drawn === drawn) return;
  node.drawn = drawn;
  const active = node.contains(document.activeElement) ? document.activeElement : null;
  const again = active && (active.matches(".quiet") ? ".quiet" : ".op");
  if (row) put(node, heading && drawHeading(row, heading), link(row, selected, fresh));
  else put(node, el("div.op.skeleton", {}, el("span.unseen", {}, "loading"), el("span.bone"), el("span.bone.short")));
  if (again) node.querySelector(again)?.focus({ preventScroll: true });
}

function link(row, selected, fresh) {
  const is_off = ["undone", "aborted", "refused"].includes(row.status);
  const classes = ["a", "op", is_off && "off", fresh && "fresh"].filter(Boolean).join(".");
  const badge = !["committed", "applied"].includes(row.status);
  return el(classes, { href: address(["op", row.id]), "aria-current": selected ? "true" : null, data: { id: row.id } },
    el(`span.mark.is-${row.status}`, { "aria-hidden": "true" }),
    el("span.what", { title: row.summary }, summary(row)),
    el("time", { datetime: new Date(row.at).toISOString(), title: fullTime(row.at) }, ago(row.at)),
    el("span.meta", {},
      row.agent && el(`span.agent.hue-${hue(row.agent)}`, {}, row.agent),
      row.task && el("span.task", {}, row.task),
      row.count > 1 && el("span", {}, many(row.count, "target")),
      el("span.id", {}, shortId(row.id))),
    badge ? el(`span.badge.is-${row.status}`, {}, STATUS[row.status] ?? row.status) : el("span.unseen", {}, STATUS[row.status]));
}

/** The sentence of an operation: its verb, and what it wrote with the name of the file in bold. */
export function summary(row) {
  const text = shortSummary(row.summary, row.targets);
  const [, verb, rest] = /^(\S+)\s+([^]*)$/.exec(text) ?? [null, text, ""];
  const target = row.targets?.[0];
  const name = row.targets?.length === 1 && target?.kind === "path" ? pathText(target.path).split("/").pop() : null;
  const at = name ? rest.lastIndexOf(name) : -1;
  const pieces = at < 0 ? [rest] : [rest.slice(0, at), el("b", {}, name), rest.slice(at + name.length)];
  return [el("span.verb", {}, verb), " ", ...pieces];
}

/** The heading above a row, with its text if it is a prompt's. */
function drawHeading(row, { group, text: said }) {
  if (group === "day") return el("h2.heading", {}, day(row.at));
  const name = row[group];
  if (!name) return el("h2.heading.none", {}, { prompt: "Without a prompt", task: "Without a task", agent: "Without an agent" }[group]);
  const text = group === "prompt" ? said ?? `Prompt ${shortId(name)}` : name;
  const takes = group === "prompt" || group === "task";
  return el("div.heading", {},
    el("h2", { title: text }, group === "prompt" ? el("span.quote", {}, text) : text),
    takes && el("a.quiet", { href: address(["take-back", group, name]), "aria-label": `Take back all of: ${text}` }, "Take back…"));
}
