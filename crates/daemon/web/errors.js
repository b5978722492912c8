// What went wrong, why, and what to do next, as the program says it.

import { el, prose } from "./dom.js";

/** Draws a report. */
export function drawError(error) {
  const report = error.report ?? { what: error.message, why: [], next: [] };
  return el("div.report", { role: "alert" },
    el("p.what", {}, prose(sentence(report.what))),
    (report.why ?? []).map((why) => el("p", {}, prose(sentence(why)))),
    drawReasons(report.reasons),
    drawNext(report.next));
}

/** What to do next. */
export function drawNext(next) {
  if (!next?.length) return null;
  return el("div.next", {}, el("h4", {}, "Next"), el("ul", {}, next.map((it) => el("li", {}, prose(sentence(it.text))))));
}

/** What the gates found. */
export function drawReasons(reasons) {
  if (!reasons?.length) return null;
  return el("ul.reasons", {}, reasons.map((it) => el("li", {},
    el("p.found", {}, prose(sentence(it.found)), it.place && ` (line ${it.place.line}, column ${it.place.column})`, it.key && [" at ", el("code", {}, it.key)]),
    el("p.rule", {}, prose(it.rule)),
    it.remedy && el("p.remedy", {}, prose(it.remedy)))));
}

/** Begins with a capital letter. */
export function sentence(text) {
  return text ? text[0].toUpperCase() + text.slice(1) : "";
}
