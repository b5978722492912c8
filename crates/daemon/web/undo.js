// The preview of an undo, a redo or a rollback: what comes back, what is in the way, what stays; the choice of single targets; then the button.
//
// What is done is what was shown: before the button acts, the plan is asked for again and compared.

import { get, post, query } from "./api.js";
import { button, el, put, say } from "./dom.js";
import { drawError } from "./errors.js";
import { back } from "./operation.js";
import { drawPlan, targetsOf } from "./plan.js";
import { drawProof } from "./proof.js";
import { many, shortSummary } from "./words.js";

/** Takes the meaning away from the signs of a pattern, so that it stands for one name. */
export function exactly(name) {
  return name.replace(/[*?[{\\]/g, "\\$&");
}

/** Gives the patterns for the chosen ones among all. */
export function selection(all, chosen) {
  if (chosen.size === all.length) return {};
  const only = all.filter((name) => chosen.has(name));
  const exclude = all.filter((name) => !chosen.has(name) && only.some((above) => name.startsWith(`${above}/`)));
  return { only: only.map(exactly), ...(exclude.length && { exclude: exclude.map(exactly) }) };
}

/** Makes the pane. `subject` is `{id, way}`, or `{all: {prompt: ID}}`. */
export function makeUndo(pane, timeline) {
  let now = null;

  function ask(subject, body) {
    if (subject.all) return post("/v1/undo", { what: subject.all, dry_run: true, ...body });
    return get(`/v1/operations/${encodeURIComponent(subject.id)}/${subject.way}${query(body)}`);
  }

  function act(subject, body) {
    if (subject.all) return post("/v1/undo", { what: subject.all, ...body });
    return post(`/v1/operations/${encodeURIComponent(subject.id)}/${subject.way}`, body);
  }

  async function open(subject) {
    const mine = { subject, options: {}, chosen: null, all: null, plan: null, is_stale: false, is_acting: false };
    now = mine;
    put(pane, el("p.loading", {}, "Looking at what would happen…"));
    pane.scrollTop = 0;
    await preview(mine);
  }

  function bodyOf(mine) {
    const picked = mine.all ? selection(mine.all, mine.chosen) : {};
    return { ...mine.options, ...picked };
  }

  async function preview(mine) {
    mine.asked = (mine.asked ?? 0) + 1;
    const asked = mine.asked;
    let plan = null;
    let error = null;
    try { plan = await ask(mine.subject, bodyOf(mine)); } catch (why) {
      plan = why.report?.reply?.reply === "plan" ? why.report.reply : null;
      if (!plan) error = why;
    }
    if (now !== mine || asked !== mine.asked) return;
    if (plan && !mine.all) {
      mine.all = targetsOf(plan);
      mine.chosen = new Set(mine.all);
      mine.first = plan;
    }
    const { merge, force, partial } = mine.options;
    // Which ways out there are, a plan tells only as long as none is taken.
    if (plan && !merge && !force && !partial) mine.offers = { merge: plan.is_mergeable === true, force: plan.force };
    Object.assign(mine, { plan: plan ?? mine.plan, error, is_stale: false });
    draw(mine);
  }

  function draw(mine) {
    const focus = document.activeElement?.dataset?.keep;
    const { scrollTop } = pane;
    const unfolded = new Set([...pane.querySelectorAll("details[data-fold]")].filter((it) => it.open).map((it) => it.dataset.fold));
    if (!mine.plan) { put(pane, back(), title(mine), drawError(mine.error)); return; }
    put(pane, back(), title(mine),
      el("div.detail-body", {}, mine.error && drawError(mine.error), drawPlan(mine, timeline, {
        choose: (names, is_chosen) => { for (const name of names) { if (is_chosen) mine.chosen.add(name); else mine.chosen.delete(name); } again(mine); },
        option: (options) => { mine.options = options; again(mine); },
      }, unfolded)),
      foot(mine));
    pane.scrollTop = scrollTop;
    if (focus) pane.querySelector(`[data-keep="${CSS.escape(focus)}"]`)?.focus();
  }

  function again(mine) {
    if (mine.chosen.size === 0) { mine.error = null; draw(mine); return; }
    preview(mine);
  }

  function word(mine) {
    if (mine.subject.all) return "Take back";
    return mine.subject.way === "redo" ? "Redo" : "Undo";
  }

  function title(mine) {
    const named = mine.first?.steps.filter((step) => step.chosen === "named") ?? [];
    const one = named.length === 1 && shortSummary(named[0].summary, named[0].targets.map((it) => it.target));
    const what = mine.subject.all ? timeline.nameOf(mine.subject.all) : one || many(named.length, "operation");
    return el("header.detail-head", {}, el("div.detail-title", {}, el("h1", {}, el("span.dim", {}, `${word(mine)}: `), what)), el("p.dim", {}, "A preview. Nothing was changed yet."));
  }

  function foot(mine) {
    const { plan } = mine;
    const steps = plan.steps.length;
    const can = !mine.error && mine.chosen.size > 0 && steps > 0 && (plan.is_executable || mine.options.partial) && !mine.is_stale;
    const label = mine.is_acting ? "At it…" : `${word(mine)} ${many(steps, "operation")}`;
    return el("footer.act-bar", {},
      mine.is_stale && el("p.stale", { role: "status" }, "Something was written since. ", button("button.quiet", "Look again", () => preview(mine), { data: { keep: "again" } })),
      el("div.act-line", {},
        button("button.button.primary", label, () => perform(mine), { disabled: !can || mine.is_acting, data: { keep: "act" }, id: "act" }),
        el("a.button", { href: mine.subject.all ? "#/" : `#/op/${encodeURIComponent(mine.subject.id)}` }, "Cancel"),
        el("span.dim", {}, can ? "You can take this back." : hint(mine))));
  }

  function hint(mine) {
    if (mine.chosen.size === 0) return "Choose what is to come back.";
    if (mine.plan.steps.length === 0) return "There is nothing to do.";
    return mine.is_stale ? "" : "Decide first about what is in the way.";
  }

  const essence = (plan) => JSON.stringify({ ...plan, diff: undefined, recovered: undefined, acts_left: undefined, waited: undefined });

  async function perform(mine) {
    mine.is_acting = true;
    draw(mine);
    let reply = null;
    let error = null;
    try {
      const body = bodyOf(mine);
      const fresh = await ask(mine.subject, body);
      if (essence(fresh) !== essence(mine.plan)) {
        Object.assign(mine, { plan: fresh, is_acting: false });
        draw(mine);
        say("The preview changed. Look at it again.");
        pane.querySelector(".act-bar")?.prepend(el("p.stale", { role: "alert" }, "The world changed since you looked. This is what would happen now."));
        return;
      }
      reply = await act(mine.subject, body);
    } catch (why) {
      error = why;
      reply = why.report?.reply ?? null;
    }
    mine.is_acting = false;
    if (now !== mine) return;
    if (!reply) { mine.error = error; draw(mine); say(error.message); pane.scrollTop = 0; return; }
    now = null;
    drawProof(pane, reply, error, word(mine));
  }

  /** Something happened elsewhere: what is shown may not hold any more. */
  function live(id) {
    if (!now || !now.plan || now.is_acting || now.is_stale) return;
    const mine = now;
    // Work that stays and work that goes may both have changed; only a new plan can tell.
    if (mine.timer) return;
    mine.timer = setTimeout(async () => {
      mine.timer = null;
      if (now !== mine || mine.is_acting) return;
      let fresh = null;
      try { fresh = await ask(mine.subject, bodyOf(mine)); } catch { /* Said below: look again. */ }
      if (now !== mine || mine.is_acting || (fresh && essence(fresh) === essence(mine.plan))) return;
      mine.is_stale = true;
      draw(mine);
      say("Something was written since this preview. Look again.");
    }, 400, id);
  }

  return { open, live, forget: () => { now = null; } };
}
