// What changed at each name: lines, rows, keys, pictures, modes, sizes.

import { bytes, query } from "./api.js";
import { button, el, put } from "./dom.js";
import { readHunks } from "./hunks.js";
import { kept, keep } from "./keep.js";
import { drawSides, drawValue } from "./sides.js";
import { many, pathText, size } from "./words.js";

const LINES_FIRST = 400;
const OPEN_MAX = 12;
const LINES = "Lines of";
const PICTURE = /\.(png|jpe?g|gif|webp)$/i;

const CHANGE = { created: "created", changed: "changed", metadata: "attributes", removed: "removed", moved: "moved" };

/** Whether diffs are shown side by side: as chosen, else as there is room. */
export function isSplit() {
  const chosen = kept("diff");
  return chosen ? chosen === "split" : matchMedia("(min-width: 1200px)").matches;
}

/** Draws the switch between the two ways. */
export function drawSwitch(again) {
  const one = (name, text) => el("button", { type: "button", "aria-pressed": String(isSplit() === (name === "split")), on: { click: () => { keep("diff", name); again(); } } }, text);
  return el("div.segments", { role: "group", "aria-label": "How a diff is shown" }, one("unified", "Unified"), one("split", "Side by side"));
}

/** The name of what a file of a diff is about. */
export function nameOf(file) {
  const path = file.path === undefined ? null : pathText(file.path);
  if (path === null) return file.key ?? "";
  return file.key ? `${path}:${file.key}` : path;
}

/** Draws the files of a diff. `id` is the operation whose contents can be asked for; `lines` says to whoever cannot see them which lines these are. */
export function drawDiff(files, { id = null, none = "Nothing that can be shown changed.", sides = ["before", "after"], lines = LINES } = {}) {
  if (!files?.length) return el("p.empty", {}, none);
  const tables = rowsByTable(files);
  return el("div.files", {}, tables.map((it, index) => drawFile(it, { id, sides, lines, is_open: index < OPEN_MAX })));
}

/** Puts together the rows of one table, so that they are read as a table. */
function rowsByTable(files) {
  const made = [];
  for (const file of files) {
    const cells = file.value && rowCells(file.value);
    if (!cells) { made.push({ file }); continue; }
    const table = (file.key ?? "").replace(/[.:/][^.:/]*$/, "");
    const where = file.path === undefined ? table : `${pathText(file.path)}:${table}`;
    const last = made.at(-1);
    if (last?.where === where) last.rows.push({ file, cells });
    else made.push({ where, rows: [{ file, cells }] });
  }
  return made;
}

function rowCells({ before, after, now }) {
  const read = (text) => {
    if (text === null || text === undefined) return null;
    try { const value = JSON.parse(text); return value && typeof value === "object" && !Array.isArray(value) ? value : undefined; } catch { return undefined; }
  };
  const all = [before, after, now].map(read);
  if (all.includes(undefined) || all.every((it) => it === null)) return null;
  return all;
}

function drawFile(it, { id, sides, lines, is_open }) {
  if (it.rows) {
    const noun = /^https?:/.test(it.where) ? "resource" : "row";
    return fold(it.where, `${many(it.rows.length, noun)} changed`, is_open, () => drawRows(it.rows, noun));
  }
  const { file } = it;
  const counts = file.added !== undefined && el("span.counts", {}, el("span.plus", {}, `+${file.added}`), " ", el("span.minus", {}, `−${file.removed}`));
  return fold(nameOf(file), [file.from !== undefined && el("span.from", {}, "from ", pathText(file.from)), counts, el(`span.change.is-${file.change}`, {}, CHANGE[file.change])], is_open, () => body(file, id, sides, lines));
}

function fold(name, end, is_open, make) {
  const inside = el("div.file-body");
  let made = false;
  const at = name.lastIndexOf("/") + 1;
  const fill = () => { if (!made) { made = true; put(inside, make()); } };
  const details = el("details.file", { open: is_open, on: { toggle: (event) => { if (event.target.open) fill(); } } },
    el("summary", {}, el("span.file-name", { title: name }, el("span.dir", {}, el("bdi", {}, name.slice(0, at))), el("b", {}, name.slice(at))), el("span.file-end", {}, end)), inside);
  if (is_open) fill();
  return details;
}

/** Draws what changed at one name, without the name. */
export function body(file, id = null, sides = [], lines = LINES) {
  const path = file.path === undefined ? null : pathText(file.path);
  const is_picture = id && path && !file.key && PICTURE.test(path) && file.text === undefined;
  return [
    drawSides(file),
    file.value && (file.text === undefined || file.value.unread || file.value.now !== file.value.after) && drawValue(file.value),
    is_picture && drawPictures(file, id, sides),
    file.text !== undefined && drawText(file.text, `${lines} ${nameOf(file)}`),
    file.unshown && !is_picture && el("p.unshown", {}, unshown(file)),
  ];
}

function unshown(file) {
  if (file.unshown !== "binary") return `Not shown: ${file.unshown}`;
  const [before, after] = [file.before?.size, file.after?.size];
  if (before !== undefined && after !== undefined) return `Binary, ${size(before)} → ${size(after)}`;
  return `Binary, ${size(before ?? after ?? 0)}`;
}

/** Draws the rows of a table, with the cells that changed marked. */
function drawRows(rows, noun) {
  const names = [...new Set(rows.flatMap(({ cells }) => cells.flatMap((it) => Object.keys(it ?? {}))))];
  const show = (value) => (value === null ? "NULL" : typeof value === "string" ? value : JSON.stringify(value));
  const cell = ([before, after], name) => {
    const [old, now] = [before?.[name], after?.[name]];
    if (before && after && show(old ?? null) === show(now ?? null)) return el("td", {}, now === undefined ? "" : show(now));
    return el("td", {}, before && old !== undefined && el("del", {}, show(old)), before && after && " ", after && now !== undefined && el("ins", {}, show(now)));
  };
  const word = ([before, after]) => (before ? (after ? "updated" : "deleted") : "inserted");
  return el("div.table-scroll", { tabindex: "0", role: "region", "aria-label": `${noun}s` }, el("table.values", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, noun), names.map((name) => el("th", { scope: "col" }, name)), el("th", { scope: "col" }, "now"))),
    el("tbody", {}, rows.map(({ file, cells }) => el("tr", {},
      el("th", { scope: "row" }, (file.key ?? "").split(/[.:/]/).pop(), " ", el("span.dim", {}, word(cells))),
      names.map((name) => cell(cells, name)),
      el("td.dim", {}, now(file.value)))))));
}

function now(value) {
  if (value.unread) return value.unread;
  if (value.now === value.after) return "the same";
  if (value.now === value.before) return "as before";
  return value.now === null ? "gone" : value.now;
}

function drawPictures(file, id, sides) {
  const frame = (side, label) => {
    if (!file[side]) return null;
    const place = el("div.picture-frame", {}, el("span.dim", {}, "loading"));
    const path = `/v1/operations/${encodeURIComponent(id)}/content${query({ path: pathText(file.path), side })}`;
    bytes(path).then((blob) => {
      if (!blob.type.startsWith("image/")) throw new Error("it is no picture");
      const url = URL.createObjectURL(blob);
      const image = el("img", { src: url, alt: `${label}: ${pathText(file.path)}`, on: { load: () => URL.revokeObjectURL(url) } });
      put(place, image);
    }).catch((error) => put(place, el("span.dim", {}, `not shown: ${error.message}`)));
    return el("figure", {}, place, el("figcaption", {}, `${label}, ${size(file[side].size ?? 0)}`));
  };
  return el("div.pictures", {}, sides.map((side) => frame(side, side === "before" ? "Before" : "After")));
}

/** Draws the lines of a diff; of a long one the rest on demand. */
function drawText(text, label) {
  const hunks = readHunks(text);
  const place = el("div.diff-text");
  let most = LINES_FIRST;
  const draw = () => {
    let left = most;
    const total = hunks.reduce((sum, hunk) => sum + hunk.pairs.length, 0);
    const table = el(isSplit() ? "table.diff.split" : "table.diff.unified");
    for (const [index, hunk] of hunks.entries()) {
      if (left <= 0) break;
      table.append(drawHunk(hunk, hunk.pairs.slice(0, left), index));
      left -= hunk.pairs.length;
    }
    put(place, el("div.table-scroll", { tabindex: "0", role: "region", "aria-label": label }, table), total > most && button("button.more-lines", `Show ${many(Math.min(total - most, 4000), "more line")}`, () => { most += 4000; draw(); }));
  };
  draw();
  return place;
}

function drawHunk(hunk, pairs, index) {
  const is_split = isSplit();
  const rows = is_split ? pairs.map(splitRow) : pairs.some(([a, b]) => a !== b) ? unifiedRows(pairs) : pairs.map(([line]) => unifiedRow(line));
  const gap = index > 0 && el("tr.gap", {}, el("td", { colspan: is_split ? 4 : 3 }, el("span", {}, `line ${hunk.right}`)));
  return el("tbody", {}, gap, rows);
}

function unifiedRows(pairs) {
  const rows = [];
  let [gone, come] = [[], []];
  const flush = () => { rows.push(...gone.map(unifiedRow), ...come.map(unifiedRow)); [gone, come] = [[], []]; };
  for (const [old, now] of pairs) {
    if (old && old === now) { flush(); rows.push(unifiedRow(old)); continue; }
    if (old) gone.push(old);
    if (now) come.push(now);
  }
  flush();
  return rows;
}

const SIGN = { add: "+", del: "−", same: " " };

function unifiedRow(line) {
  return el(`tr.${line.kind}`, {}, el("td.number", {}, line.left ?? ""), el("td.number", {}, line.right ?? ""), code(line));
}

function splitRow([old, now]) {
  const half = (line, number) => (line ? [el(`td.number.${line.kind}`, {}, number), code(line, line.kind)] : [el("td.number.void"), el("td.void")]);
  return el("tr", {}, half(old, old?.left), half(now, now?.right));
}

function code(line, kind) {
  const text = line.pieces ? line.pieces.map((it) => (it.is_own ? el("mark", {}, it.text) : it.text)) : line.text;
  return el(kind ? `td.code.${kind}` : "td.code", {}, el("span.sign", { "aria-label": { add: "added", del: "removed", same: null }[line.kind] }, SIGN[line.kind]), text, line.cut && el("span.cut", { title: "no line break at the end" }, "⏎̸"));
}
