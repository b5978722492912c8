// What an undo did, target by target, and what a second look at the world finds.

import { get } from "./api.js";
import { el, prose, put, say } from "./dom.js";
import { drawError, sentence } from "./errors.js";
import { back } from "./operation.js";
import { summary } from "./rows.js";
import { address } from "./route.js";
import { OUTCOME, many, targetText } from "./words.js";

/** How many steps are looked at again one by one. */
const STEPS_MAX = 100;
const GOOD = ["restored", "compensated", "merged", "already-gone"];

/** Draws what was done, then asks how each target stands now. */
export function drawProof(pane, reply, error, word) {
  const outcomes = reply.steps.flatMap((step) => step.outcomes);
  const good = outcomes.filter((it) => GOOD.includes(it.outcome)).length;
  const is_whole = good === outcomes.length && !error;
  const done = { Undo: "Undone", Redo: "Redone", "Take back": "Taken back" }[word];
  const read = el("p.read-back", { role: "status" }, "Looking again…");
  const act = reply.act ?? reply.steps.map((step) => step.by).find(Boolean);
  const heading = el("h1", { tabindex: "-1" }, is_whole ? done : `${done} in part`);
  put(pane, back(),
    el("header.detail-head", {}, el("div.detail-title", {}, el(is_whole ? "span.seal.good" : "span.seal.bad", { "aria-hidden": "true" }, is_whole ? "✓" : "!"), heading), el("p.dim", {}, `${good} of ${many(outcomes.length, "target")}, in ${many(reply.steps.length, "operation")}`)),
    el("div.detail-body", {},
      error && drawError(error),
      (reply.notes ?? []).map((note) => el("p.note", {}, prose(sentence(note)))),
      el("section", {}, el("h2", {}, "Read back from the world"), read, el("ol.steps.proof", {}, reply.steps.map(drawStep))),
      reply.left_alone.length > 0 && el("p.dim", {}, `${many(reply.left_alone.length, "later operation")} stayed.`)),
    el("footer.act-bar", {}, el("div.act-line", {}, act && el("a.button", { href: address(["op", act, "redo"]) }, word === "Redo" ? "Undo this" : "Redo…"), el("a.button.primary", { href: address([]) }, "Done"))));
  pane.scrollTop = 0;
  heading.focus({ preventScroll: true });
  say(`${heading.textContent}: ${good} of ${many(outcomes.length, "target")}`);
  lookAgain(reply, pane, read);
}

function drawStep(step) {
  return el("li.step", {}, el("div.step-head", {}, el("a.step-name", { href: address(["op", step.id]) }, summary({ ...step, targets: step.outcomes.map((it) => it.target) }))),
    el("ul.step-targets", {}, step.outcomes.map((it) => {
      const name = targetText(it.target);
      return el("li.target", { data: { proof: `${step.id} ${name}` } }, el(GOOD.includes(it.outcome) ? "span.tick.good" : "span.tick.bad", { "aria-hidden": "true" }, GOOD.includes(it.outcome) ? "✓" : "!"),
        el("div.target-line", {}, el("span.file-name", {}, name), el(`span.state.is-${it.outcome}`, {}, OUTCOME[it.outcome] ?? it.outcome), it.why && el("span.why", {}, it.why), el("span.now")));
    })), (step.notes ?? []).map((note) => el("p.note", {}, prose(sentence(note)))));
}

/** Asks for each step how what it left stands against the world, and says so beside each target. */
async function lookAgain(reply, pane, read) {
  let [same, total] = [0, 0];
  const redo = reply.steps.every((step) => step.way === "redo");
  const as = redo ? "what the operation left" : "what it was before";
  const steps = reply.steps.filter((it) => it.by).slice(0, STEPS_MAX);
  // Of a name that several steps took back, the last one tells.
  const last = new Map(steps.flatMap((step) => step.outcomes.map((it) => [targetText(it.target), step])));
  try {
    for (const step of steps) {
      // What the undo itself left: if that is what is there now, a redo would be free to go.
      const shown = await get(`/v1/operations/${encodeURIComponent(step.by)}`);
      const states = new Map((shown.targets ?? []).map((it) => [targetText(it.target), it]));
      for (const { target, outcome } of step.outcomes) {
        const name = targetText(target);
        const state = states.get(name);
        // What was so already was not done by this undo, so it has nothing to say about it.
        if (last.get(name) !== step || (!state && outcome !== "restored")) continue;
        total += 1;
        const is_so = state?.state === "comes-back" || state?.state === "after-newer-step";
        if (is_so) same += 1;
        const place = pane.querySelector(`[data-proof="${CSS.escape(`${step.id} ${name}`)}"] .now`);
        if (place) place.textContent = is_so ? (outcome === "merged" ? "is what the merge made" : `is ${as}`) : state?.why ?? "changed again since";
      }
    }
    const time = new Date().toLocaleTimeString(undefined, { hour12: false });
    read.textContent = total ? `Looked again at ${time}: ${same} of ${many(total, "target")} ${same === 1 ? "is" : "are"} ${as}.` : "";
  } catch (error) {
    put(read, `Could not look again: ${error.message}`);
  }
}
