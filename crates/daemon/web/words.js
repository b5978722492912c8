// What the words of the journal are called here, and times, sizes and paths as people read them.

/** How an operation stands. */
export const STATUS = {
  proposed: "waits", refused: "refused", armed: "at work", applied: "done", committed: "done",
  interrupted: "interrupted", aborted: "did not happen", undone: "undone", "in-doubt": "in doubt", failed: "undo failed",
};

/** Why an operation depends on another. */
export const REASON = {
  "same-target": "wrote the same", "inside-directory": "is inside of a directory it made", "holds-target": "holds what it wrote",
  "part-of-target": "wrote a part of it", "whole-of-target": "wrote the whole of it", declared: "was declared",
  copied: "copied it", within: "happened within it", read: "read what it wrote",
};

/** How a target stands before an undo or a redo. */
export const STATE = {
  "comes-back": "comes back", "already-before": "is so already", "after-newer-step": "comes back", merges: "merges",
  conflict: "conflict", "cannot-come-back": "cannot come back", overwritten: "is overwritten", incomplete: "comes back in part", left: "stays",
};

/** What became of a target. */
export const OUTCOME = {
  restored: "restored", compensated: "compensated", merged: "merged", "already-gone": "was so already", overwritten: "overwritten",
  incomplete: "in part", overtaken: "overtaken", left: "left", skipped: "skipped", conflict: "conflict", failed: "failed", "in-doubt": "in doubt",
};

/** Why an operation stays. */
export function stays(it) {
  if (it.why === "independent") return "does not depend on it";
  if (it.why === "merges") return "merges with what stays";
  if (it.why === "not-in-effect") return STATUS[it.status] ?? "not in effect";
  if (it.why === "depends") return `depends on it: ${it.reason}`;
  if (it.why === "goes-again") return "is an undo; what it took back was built on this";
  if (it.why === "undone-since") return "was undone since; a redo brings it back";
  return it.why;
}

/** A count with its word. */
export function many(count, one, more = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : more}`;
}

/** Bytes, short. */
export function size(bytes) {
  if (bytes < 1000) return many(bytes, "byte");
  const units = ["kB", "MB", "GB", "TB"];
  let value = bytes / 1000;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** A path, which is text or bytes that are none. */
export function pathText(path) {
  if (typeof path === "string") return path;
  const pairs = path?.hex?.match(/../g) ?? [];
  return new TextDecoder().decode(Uint8Array.from(pairs, (pair) => parseInt(pair, 16)));
}

/** A target as the program prints it. */
export function targetText(target) {
  if (target.kind === "path") {
    const path = pathText(target.path);
    return target.parts ? `${path}:${target.parts.join(".")}` : path;
  }
  const key = [target.space, ...target.names].join("/");
  return target.parts ? `${key}:${target.parts.join(".")}` : key;
}

/** The last two names of a path. */
export function shortPath(path) {
  const names = path.split("/").filter(Boolean);
  return names.length <= 2 ? path : names.slice(-2).join("/");
}

/** A sentence of the journal, with its long paths cut to their last two names. */
export function shortSummary(summary, targets = []) {
  let text = summary;
  for (const target of targets) {
    if (target.kind !== "path") continue;
    const path = pathText(target.path);
    if (path.length > 1) text = text.split(path).join(shortPath(path));
  }
  return text.replace(/\/(?:[^\s/'"`]+\/){2,}[^\s/'"`]+/g, (path) => shortPath(path));
}

/** An id, short. */
export const shortId = (id) => id.slice(0, 8);

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });
const DAY = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hour12: false });

/** How long ago, or the time of the day. */
export function ago(at, now = Date.now()) {
  const seconds = (now - at) / 1000;
  if (seconds < 10) return "now";
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return CLOCK.format(at);
}

/** The whole time. */
export const fullTime = (at) => FULL.format(at);

/** The day, in words. */
export function day(at, now = Date.now()) {
  const of = (time) => new Date(time).toDateString();
  if (of(at) === of(now)) return "Today";
  if (of(at) === of(now - 86400000)) return "Yesterday";
  return DAY.format(at);
}
