// A plan, drawn: what comes back and can be chosen, what is in the way and the ways out, what others changed, what stays.

import { el } from "./dom.js";
import { body, drawDiff, nameOf } from "./diff.js";
import { hue, summary } from "./rows.js";
import { address } from "./route.js";
import { REASON, STATE, many, shortId, shortSummary, stays, targetText } from "./words.js";

const STAYS_FIRST = 40;
const BLOCKED = ["conflict", "cannot-come-back"];

/** The names of all targets of a plan, in its order. */
export function targetsOf(plan) {
  return [...new Set(plan.steps.flatMap((step) => step.targets.map((it) => targetText(it.target))))];
}

/** Draws a plan. `acts` has what happens when something is chosen. */
export function drawPlan(mine, timeline, acts, unfolded) {
  const { plan, first } = mine;
  const states = new Map();
  for (const step of plan.steps) for (const it of step.targets) states.set(`${step.id} ${targetText(it.target)}`, it);
  // A name that several steps take back comes back once.
  const names = (wanted) => new Set([...states.values()].filter(wanted).map((it) => targetText(it.target)));
  const blocked = names((it) => BLOCKED.includes(it.state)).size;
  const back = names((it) => !BLOCKED.includes(it.state) && it.state !== "left").size;
  const others = [...plan.needs_others, ...plan.needs_committed].length;
  return [
    el("ul.tally", {},
      tally(back, back === 1 ? "target comes back" : "targets come back", "good"),
      tally(blocked, blocked === 1 ? "conflict" : "conflicts", blocked ? "bad" : "none"),
      tally(plan.left_alone.length, plan.left_alone.length === 1 ? "operation stays" : "operations stay", "none")),
    (blocked > 0 || others > 0 || Object.keys(mine.options).length > 0) && ways(mine, acts, blocked),
    el("section", {}, el("h2", {}, "What would change"), drawSteps(mine, first, states, acts, unfolded)),
    plan.diff?.theirs?.length > 0 && el("section.theirs", {}, el("h2", {}, "What somebody else changed"), el("p.dim", {}, "Between what the operation left and what is there now."), drawDiff(plan.diff.theirs, { lines: "Lines that somebody else changed in" })),
    plan.left_alone.length > 0 && el("section", {}, el("h2", {}, "What stays"), drawStays(plan.left_alone, timeline)),
  ];
}

function tally(count, text, kind) {
  return el(`li.is-${count ? kind : "none"}`, {}, el("b", {}, count.toLocaleString("en")), " ", text);
}

/** The steps, newest first as they are taken, each with its targets and what would change back there. */
function drawSteps(mine, first, states, acts, unfolded) {
  const back = new Map((mine.plan.diff?.back ?? []).map((file) => [nameOf(file), file]));
  const told = new Set();
  return el("ol.steps", {}, first.steps.map((step) => {
    const current = mine.plan.steps.find((it) => it.id === step.id);
    const names = step.targets.map((it) => targetText(it.target));
    const chosen = names.filter((name) => mine.chosen.has(name));
    const box = el("input", { type: "checkbox", "aria-label": `All of: ${step.summary}`, data: { keep: `step ${step.id}` }, on: { change: (event) => acts.choose(names, event.target.checked) } });
    box.checked = chosen.length > 0;
    box.indeterminate = chosen.length > 0 && chosen.length < names.length;
    return el(current ? "li.step" : "li.step.off", {},
      el("div.step-head", {}, box, el("a.step-name", { href: address(["op", step.id]) }, summary({ ...step, targets: step.targets.map((it) => it.target) })), el("span.dim", {}, why(step), step.guarantee === "compensating" && ", answered by another effect", step.seen_by_others && `, ${step.seen_by_others}`)),
      el("ul.step-targets", {}, step.targets.map((it) => drawTarget(step, it, { mine, states, back, told, acts, unfolded }))));
  }));
}

function why(step) {
  if (step.chosen === "depends-on") return `goes along: ${REASON[step.reason] ?? step.reason} as ${shortId(step.on)}`;
  if (step.chosen === "dependency-of") return `${shortId(step.of)} was built on it`;
  return "";
}

function drawTarget(step, planned, { mine, states, back, told, acts, unfolded }) {
  const name = targetText(planned.target);
  const it = states.get(`${step.id} ${name}`);
  const key = `${step.id} ${name}`;
  const box = el("input", { type: "checkbox", "aria-label": name, data: { keep: key, target: name }, on: { change: (event) => acts.choose([name, ...mine.all.filter((other) => other.startsWith(`${name}/`))], event.target.checked) } });
  box.checked = mine.chosen.has(name);
  const file = told.has(name) ? null : back.get(name);
  if (file) told.add(name);
  const at = name.lastIndexOf("/") + 1;
  const state = it?.state ?? "left";
  const text = !it ? "stays" : it.goes && ["comes-back", "after-newer-step"].includes(state) ? "goes away" : STATE[state] ?? state;
  const line = [el("span.file-name", { title: name }, el("span.dir", {}, el("bdi", {}, name.slice(0, at))), el("b", {}, name.slice(at))), el(`span.state.is-${state}`, {}, text), it?.why && el("span.why", {}, it.why)];
  if (!file) return el("li.target", {}, box, el("div.target-line", {}, line));
  return el("li.target", {}, box, el("details", { data: { fold: key }, open: unfolded.has(key) || mine.all.length === 1 }, el("summary.target-line", {}, line), el("div.target-body", {}, body(file))));
}

/** The ways out of a conflict. */
function ways(mine, acts, blocked) {
  const { options, plan, offers = {} } = mine;
  const way = options.merge ? "merge" : options.force ? "force" : options.partial ? "partial" : "stop";
  const set = (name) => {
    const { merge: _m, force: _f, partial: _p, ...rest } = options;
    acts.option(name === "stop" ? rest : { ...rest, [name]: true });
  };
  const radio = (name, label, text, is_off = false) => el(is_off ? "label.way.off" : "label.way", {},
    el("input", { type: "radio", name: "way", value: name, checked: way === name, disabled: is_off, data: { keep: `way ${name}` }, on: { change: () => set(name) } }),
    el("span", {}, el("b", {}, label), el("span.dim", {}, text)));
  const check = (name, count, label) => (count > 0 || options[name]) && el("label.way", {},
    el("input", { type: "checkbox", checked: Boolean(options[name]), data: { keep: `also ${name}` }, on: { change: (event) => { const { [name]: _was, ...rest } = options; acts.option(event.target.checked ? { ...rest, [name]: true } : rest); } } }),
    el("span", {}, el("b", {}, label), el("span.dim", {}, count > 0 ? many(count, "operation") : "")));
  return el("fieldset.ways", {}, el("legend", {}, "What is in the way"),
    (blocked > 0 || way !== "stop") && [
      radio("stop", "Stop", "Change nothing as long as something is in the way."),
      radio("merge", "Merge", offers.merge ? "Take out only this change and keep what others changed." : "Not possible here: the changes overlap, or it is no text.", !offers.merge),
      radio("partial", "Leave these out", "Take back the rest. These stay as they are and can be undone later."),
      radio("force", "Overwrite", offers.force === "part" ? "Restore what can be. What is there now is kept." : offers.force ? "Restore anyway. What is there now is kept, and a redo brings it back." : "Not possible here: what is needed for it is gone.", !offers.force),
    ],
    check("others", plan.needs_others.length, "Also other agents’ work that was built on it"),
    check("committed", plan.needs_committed.length, "Also work of committed tasks that was built on it"));
}

function drawStays(left, timeline) {
  const line = (it) => {
    const row = timeline.rowOf(it.id);
    return el("li", {}, el("a", { href: address(["op", it.id]) }, row ? shortSummary(row.summary, row.targets) : shortId(it.id)), row?.agent && el(`span.agent.hue-${hue(row.agent)}`, {}, row.agent), el("span.dim", {}, stays(it)));
  };
  // What depends on it and stays all the same is the news; what is independent is as it should be.
  const rank = (it) => (it.why === "independent" ? 1 : 0);
  const sorted = [...left].sort((one, other) => rank(one) - rank(other));
  return el("details.stays", { open: left.length <= 6 }, el("summary", {}, many(left.length, "later operation")),
    el("ul", {}, sorted.slice(0, STAYS_FIRST).map(line), left.length > STAYS_FIRST && el("li.dim", {}, `and ${left.length - STAYS_FIRST} more`)));
}
