// The search box and the filters above the timeline.

import { el, put } from "./dom.js";
import { address, go, route } from "./route.js";
import { GROUPS } from "./rows.js";
import { STATUS } from "./words.js";

const VERBS = ["write", "edit", "append", "remove", "move", "copy", "mkdir", "link", "chmod", "chown", "restore", "batch", "run", "undo", "redo", "recover"];
const WAIT_MS = 200;

/** Puts one filter into the address, or takes it out. */
function choose(key, value) {
  const filters = { ...route().filters };
  if (value) filters[key] = value;
  else delete filters[key];
  const { id, tab } = route();
  go(address(id ? ["op", id, tab] : [], filters), true);
}

function select(key, label, options, current) {
  const all = [...options];
  if (current && !all.some(([value]) => value === current)) all.push([current, current]);
  return el("label.pick", {}, el("span", {}, label),
    el("select", { "aria-label": label, data: { filter: key }, on: { change: (event) => choose(key, event.target.value) } },
      el("option", { value: "" }, "any"),
      ...all.map(([value, text]) => el("option", { value, selected: value === current }, text))));
}

/** Makes the bar. `known` gives the agents and tasks that were seen. */
export function makeFilters(known) {
  let timer;
  const search = el("input", { type: "search", id: "search", placeholder: "Search: words of a summary, agent, task, path", "aria-label": "Search operations", autocomplete: "off", spellcheck: "false",
    on: { input: () => { clearTimeout(timer); timer = setTimeout(() => choose("q", search.value.trim()), WAIT_MS); } } });
  const path = el("input", { type: "text", placeholder: "/path or target", "aria-label": "Path", autocomplete: "off", spellcheck: "false",
    on: { change: () => choose("at", path.value.trim()) } });
  const picks = el("div.picks");
  const groups = el("div.segments", { role: "group", "aria-label": "Divide by" });
  const more = el("button.quiet.more", { type: "button", "aria-expanded": "false", "aria-controls": "picks", on: { click: () => open(picks.hidden) } }, "Filters");
  picks.id = "picks";
  const open = (is_open) => { picks.hidden = !is_open; more.setAttribute("aria-expanded", String(is_open)); };
  const bar = el("div.filters", { role: "search" }, el("div.search-line", {}, search, more), picks, groups);
  const draw = () => {
    const { filters } = route();
    if (document.activeElement !== search) search.value = filters.q ?? "";
    if (document.activeElement !== path) path.value = filters.at ?? "";
    const set = ["agent", "task", "prompt", "verb", "status", "at"].filter((key) => filters[key]);
    more.textContent = set.length ? `Filters (${set.length})` : "Filters";
    const { agents, tasks } = known();
    put(picks,
      select("agent", "Agent", agents.map((name) => [name, name]), filters.agent),
      select("task", "Task", tasks.map((name) => [name, name]), filters.task),
      select("verb", "Verb", VERBS.map((name) => [name, name]), filters.verb),
      select("status", "Status", Object.keys(STATUS).map((name) => [name, name]), filters.status),
      el("label.pick.wide", {}, el("span", {}, "Path"), path),
      set.length > 0 && el("button.quiet", { type: "button", on: { click: () => {
        const { q, group } = route().filters;
        go(address([], { ...(q && { q }), ...(group && { group }) }), true);
      } } }, "Clear"));
    put(groups, ...Object.entries(GROUPS).map(([key, text]) => el("button", { type: "button",
      "aria-pressed": String((filters.group ?? "day") === key), on: { click: () => choose("group", key === "day" ? "" : key) } }, text)));
  };
  open(["agent", "task", "verb", "status", "at", "prompt"].some((key) => route().filters[key]));
  return { bar, draw, search };
}
