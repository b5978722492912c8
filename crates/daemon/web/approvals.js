// What waits for a decision, with what it would change and what the gates found.

import { get, post } from "./api.js";
import { button, el, prose, put, say } from "./dom.js";
import { drawDiff, drawSwitch } from "./diff.js";
import { drawError, drawReasons, sentence } from "./errors.js";
import { hue } from "./rows.js";
import { address } from "./route.js";
import { ago, many, pathText, shortId, shortSummary, size } from "./words.js";

/** Makes the view. */
export function makeApprovals(may) {
  const list = el("nav.cards", { "aria-label": "What waits" });
  const pane = el("article.detail", { "aria-label": "Proposal" });
  const view = el("div.split-view", {}, el("section.timeline", { "aria-label": "Approvals" }, el("h1.view-title", {}, "Approvals"), list), pane);
  let shown = null;

  async function open({ id }) {
    view.classList.toggle("has-detail", Boolean(id));
    if (id && shown !== id) put(pane, el("p.loading", {}, "Loading…"));
    let reply;
    try { reply = await get("/v1/pending"); } catch (error) { put(list, drawError(error)); return; }
    const waiting = reply.proposals;
    put(list, waiting.length === 0 && el("p.empty", {}, "Nothing waits for you."), waiting.map((it) => card(it, reply.now, id)),
      reply.trials?.length > 0 && el("p.empty", {}, `${many(reply.trials.length, "trial")} wait: `, el("code", {}, "backout try --list")));
    if (!id) { shown = null; put(pane, el("p.empty", {}, waiting.length ? "Choose what to look at." : "What a rule wants somebody to look at appears here.")); return; }
    if (shown !== id) await show(id);
  }

  async function show(id) {
    shown = id;
    put(pane, el("p.loading", {}, "Loading…"));
    try { draw(await get(`/v1/pending/${encodeURIComponent(id)}`)); } catch (error) { put(pane, back(), drawError(error)); }
  }

  function draw(it) {
    const place = el("div");
    const again = () => put(place, el("div.diff-bar", {}, el("span", {}, "What it would change now"), drawSwitch(again)), drawDiff(it.files, { none: "It would change nothing that can be shown." }));
    again();
    const why = el("input", { type: "text", placeholder: "Why (kept in the journal)", "aria-label": "Why", maxlength: "500" });
    const decide = async (way) => {
      const buttons = [...pane.querySelectorAll(".act-bar button")];
      for (const each of buttons) each.disabled = true;
      const said = why.value.trim();
      try {
        const reply = await post(`/v1/pending/${encodeURIComponent(it.id)}/${way}`, said ? { why: said } : {});
        done(it, way, reply);
      } catch (error) {
        for (const each of buttons) each.disabled = false;
        pane.querySelector(".act-bar .report")?.remove();
        pane.querySelector(".act-bar").prepend(drawError(error));
        say(error.message);
      }
    };
    put(pane, back(),
      el("header.detail-head", {}, el("div.detail-title", {}, el("h1", { title: it.summary }, shortSummary(it.summary, it.targets))),
        el("p.facts-line", {}, el("span.badge.is-proposed", {}, "waits"), it.agent && el(`span.agent.hue-${hue(it.agent)}`, {}, it.agent), it.task && el("span.task", {}, it.task), it.expires && el("span", {}, left(it.expires)), el("code.id", {}, shortId(it.id)))),
      el("div.detail-body", {},
        it.stale && el("div.drift", {}, el("p", {}, el("b", {}, "Stale. "), prose(sentence(it.stale)))),
        (it.untold ?? []).map((text) => el("p.note", {}, prose(sentence(text)))),
        el("section", {}, el("h2", {}, "Why it waits"), drawReasons(it.reasons)),
        place,
        it.inside?.length > 0 && el("section", {}, el("h2", {}, "What is inside"), el("ul.targets", {}, it.inside.map((each) => el("li", {}, el("code", {}, pathText(each.path)), ` ${each.kind}`, each.size !== undefined && `, ${size(each.size)}`)), it.inside_more > 0 && el("li", {}, `and ${it.inside_more} more`)))),
      may() && el("footer.act-bar", {}, el("div.act-line", {}, button("button.button.primary", "Approve", () => decide("approve"), { disabled: Boolean(it.stale) }), button("button.button", "Reject", () => decide("reject")), why)));
    pane.scrollTop = 0;
  }

  async function done(it, way, reply) {
    const heading = el("h1", { tabindex: "-1" }, way === "approve" ? "Approved and done" : "Rejected");
    const operation = way === "approve" ? reply.id : null;
    put(pane, back(), el("header.detail-head", {}, el("div.detail-title", {}, el("span.seal.good", { "aria-hidden": "true" }, "✓"), heading), el("p.dim", {}, way === "approve" ? "Exactly what was proposed happened." : "Nothing was written.")),
      el("div.detail-body", {}, (reply.notes ?? []).map((note) => el("p.note", {}, prose(sentence(note)))), operation && el("p", {}, el("a.button", { href: address(["op", operation], {}) }, "Look at what it changed"))));
    heading.focus();
    say(`${heading.textContent}: ${it.summary}`);
    await open({ id: it.id });
  }

  return { view, open, forget: () => { shown = null; } };
}

function back() {
  return el("a.back", { href: "#/approvals" }, "‹ Approvals");
}

function left(expires) {
  const hours = (expires - Date.now()) / 3600000;
  if (hours <= 0) return "its time is over";
  return hours < 1 ? `${Math.ceil(hours * 60)} min left` : `${Math.floor(hours)} h left`;
}

function card(it, now, chosen) {
  return el("a.card", { href: address(["approvals", it.id], {}), "aria-current": it.id === chosen ? "true" : null },
    el("span.what", {}, shortSummary(it.summary, it.targets)),
    el("span.meta", {}, it.agent && el(`span.agent.hue-${hue(it.agent)}`, {}, it.agent), it.task && el("span.task", {}, it.task), it.expires && el("span", {}, left(it.expires)), el("span.id", {}, shortId(it.id))),
    it.reasons.slice(0, 2).map((reason) => el("span.why", {}, prose(sentence(reason.found)))));
}
