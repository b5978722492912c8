// Undos that failed and wait for a person: what was tried, and what to do next.

import { get, post } from "./api.js";
import { button, el, put, say } from "./dom.js";
import { drawError, drawNext, sentence } from "./errors.js";
import { address } from "./route.js";
import { OUTCOME, fullTime, many, shortId, shortSummary, targetText } from "./words.js";

const RUNG = { retry: "tried again", fallback: "tried another way", restore: "restored from a checkpoint", alert: "told a person", accept: "accepted as it is" };
const CLIMBED = { began: "under way", helped: "helped", "did-not-help": "did not help", "not-possible": "was not possible" };

/** Makes the view. */
export function makeFailed(may) {
  const list = el("div.column", {}, el("p.loading", {}, "Loading…"));
  const view = el("div.page", {}, el("h1.view-title", {}, "Failed undos"), list);

  async function open() {
    try {
      const [reply, status] = await Promise.all([get("/v1/failed"), get("/v1/status")]);
      const waits = [...status.unfinished, ...status.stuck].filter((it) => it.status === "interrupted" || it.status === "in-doubt");
      put(list, reply.failed.length + waits.length === 0 && el("p.empty", {}, "Every undo came through. Nothing waits for you."),
        reply.failed.map((it) => draw(it)), waits.map((it) => drawInterrupted(it, may, open)));
    } catch (error) { put(list, drawError(error)); }
  }

  function draw(it) {
    const why = el("input", { type: "text", placeholder: "Why it may stay so (kept in the journal)", "aria-label": "Why", maxlength: "500" });
    const card = el("article.panel", {});
    const act = async (way, body) => {
      for (const each of card.querySelectorAll("button")) each.disabled = true;
      try {
        await post(`/v1/failed/${encodeURIComponent(it.id)}/${way}`, body);
        say(way === "retry" ? "It came through." : "Accepted.");
        await open();
      } catch (error) {
        for (const each of card.querySelectorAll("button")) each.disabled = false;
        card.querySelector(".report")?.remove();
        card.append(drawError(error));
      }
    };
    return put(card,
      el("h2", {}, el("a", { href: address(["op", it.id], {}) }, shortSummary(it.summary)), " ", el("code.id", {}, shortId(it.id))),
      el("p.dim", {}, `The ${it.way} failed${it.is_climbing ? "; somebody is at it" : ""}.`),
      el("ul.targets", {}, it.targets.map((each) => el("li", {}, el("code", {}, targetText(each.target)), " ", el(`span.state.is-${each.outcome}`, {}, OUTCOME[each.outcome] ?? each.outcome), each.why && ` ${each.why}`))),
      it.tried.length > 0 && [el("h3", {}, "What was tried"), el("ol.records", {}, it.tried.map((each) => el("li", {}, `${sentence(RUNG[each.rung] ?? each.rung)}${each.times > 1 ? `, ${each.times} times` : ""}: ${CLIMBED[each.climbed] ?? each.climbed}`, each.why && el("span.dim", {}, ` ${each.why}`), el("span.dim", {}, ` ${fullTime(each.at)}`))))],
      drawNext(it.next),
      may() && el("div.act-line", {}, button("button.button.primary", "Try again", () => act("retry", {}), { disabled: it.is_climbing }), button("button.button", "Accept as it is", () => act("accept", why.value.trim() ? { why: why.value.trim() } : {})), why));
  }

  return { view, open };
}

/** A command that was interrupted: its work is there, and somebody has to say whether it stays. */
function drawInterrupted(it, may, again) {
  const card = el("article.panel");
  const keep = async () => {
    try {
      await post("/v1/command", { context: {}, command: { command: "recover", with: { "by-hand": { operations: [it.id], decide: "keep" } } } });
      say("Kept.");
      await again();
    } catch (error) {
      card.querySelector(".report")?.remove();
      card.append(drawError(error));
    }
  };
  const is_interrupted = it.status === "interrupted";
  return put(card, el("h2", {}, el("a", { href: address(["op", it.id], {}) }, shortSummary(it.summary, it.targets)), " ", el("code.id", {}, shortId(it.id))),
    el("p", {}, is_interrupted ? "It was interrupted before it ended. What it did so far is kept, and waits for you." : "Nobody can tell whether it happened. Look at its targets, then decide."),
    el("p.dim", {}, many(it.targets.length, "target")),
    may() && el("div.act-line", {}, button("button.button.primary", "Keep what it did", keep), is_interrupted && el("a.button", { href: address(["op", it.id, "undo"], {}) }, "Undo…")));
}
