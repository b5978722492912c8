// What a name was and became beside its content: kind, mode, owner, where a link points, size, attributes; and values that are in no file.

import { el } from "./dom.js";
import { fullTime, pathText, size } from "./words.js";

const LETTERS = ["---", "--x", "-w-", "-wx", "r--", "r-x", "rw-", "rwx"];

/** A mode as letters. */
export function modeLetters(mode) {
  return mode.slice(-3).split("").map((digit) => LETTERS[Number(digit)] ?? "").join("");
}

const mode = (side) => side.mode && `${side.mode} ${modeLetters(side.mode)}`;
const owner = (side) => side.uid !== undefined && `${side.uid}:${side.gid}`;
const points = (side) => side.points_to;
const same = (side) => side.same_as && pathText(side.same_as);
const attributes = (side) => side.attributes?.join(", ");
const bytes = (side) => side.size !== undefined && side.kind === "file" && size(side.size);

const FIELDS = [["kind", (side) => side.kind], ["mode", mode], ["owner", owner], ["points to", points], ["same file as", same], ["attributes", attributes], ["size", bytes]];

/** Draws what differs between the two sides; of a name that came or went, what it is. */
export function drawSides(file) {
  const { before, after } = file;
  if (!before && !after) return null;
  const lines = [];
  for (const [name, read] of FIELDS) {
    const [old, now] = [before && read(before), after && read(after)].map((it) => it || null);
    if (before && after) {
      if (old === now || (name === "size" && file.text !== undefined)) continue;
      if (now === null && name !== "attributes" && name !== "points to") continue;
      lines.push([name, old && el("del", {}, old), old && now && " → ", now && el("ins", {}, now)]);
    } else if ((name === "kind" && (before ?? after).kind !== "file") || (name === "mode" && file.text === undefined) || name === "points to" || name === "same file as" || name === "attributes") {
      if (old ?? now) lines.push([name, old ?? now]);
    }
  }
  if (file.change === "metadata" && !lines.length) {
    lines.push(["time", el("del", {}, before?.modified ? fullTime(before.modified) : "?"), " → ", el("ins", {}, after?.modified ? fullTime(after.modified) : "?")]);
  }
  if (!lines.length) return null;
  return el("dl.sides", {}, lines.map(([name, ...text]) => el("div", {}, el("dt", {}, name), el("dd", {}, text))));
}

/** Draws a value that is in no file of its own. */
export function drawValue(value) {
  const show = (text) => (text === null ? el("span.dim", {}, "nothing") : el("code", {}, text));
  return el("dl.sides", {},
    el("div", {}, el("dt", {}, "before"), el("dd", {}, show(value.before))),
    el("div", {}, el("dt", {}, "after"), el("dd", {}, show(value.after))),
    el("div", {}, el("dt", {}, "now"), el("dd", {}, value.unread ? value.unread : value.now === value.after ? "as it was written" : show(value.now))));
}
