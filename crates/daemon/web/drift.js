// Drift: what is not as it was recorded, who may have done it, and what to do about it.

import { get, post } from "./api.js";
import { button, el, put, say } from "./dom.js";
import { drawError } from "./errors.js";
import { address } from "./route.js";
import { fullTime, many, shortId, targetText } from "./words.js";

const KIND = { added: "added", looks: "other mode, owner or attributes", changed: "changed", replaced: "replaced", gone: "gone", several: "several changed" };
const ACT = { accept: "Accept what is there", restore: "Restore what was recorded", merge: "Merge both" };
const SAID = { accept: "Accepted.", restore: "Restored.", merge: "Merged." };

/** Makes the view. */
export function makeDrift(may) {
  const list = el("div.column", {}, el("p.loading", {}, "Loading…"));
  const look = button("button.button", "Look at everything", () => sweep());
  const view = el("div.page", {}, el("h1.view-title", {}, "Drift"), el("div.act-line", {}, look), list);

  function draw(reply) {
    put(list, reply.open.length === 0 && el("p.empty", {}, "Nothing has drifted: what was looked at is as it was recorded."),
      reply.open.map((it) => one(it)),
      reply.ignored?.length > 0 && el("p.dim", {}, `Left alone: ${reply.ignored.join(", ")}`));
  }

  async function open() {
    try { draw(await get("/v1/drift")); } catch (error) { put(list, drawError(error)); }
  }

  async function sweep() {
    look.disabled = true;
    try { draw(await post("/v1/drift/look", { targets: [] })); } catch (error) { put(list, drawError(error)); }
    look.disabled = false;
  }

  function one(it) {
    const card = el("article.panel", {});
    const act = async (way) => {
      for (const each of card.querySelectorAll("button")) each.disabled = true;
      try {
        await post(`/v1/drift/${way}`, { targets: [it.subject] });
        say(SAID[way]);
        await open();
      } catch (error) {
        for (const each of card.querySelectorAll("button")) each.disabled = false;
        card.querySelector(".report")?.remove();
        card.append(drawError(error));
      }
    };
    const by = it.expected.by;
    return put(card,
      el("h2", {}, el("code", {}, targetText(it.target)), " ", el(`span.state.is-${it.severity}`, {}, KIND[it.kind] ?? it.kind)),
      el("p", {}, `Recorded: ${it.expected.what}`, it.expected.agent && ` by ${it.expected.agent}`, " ", el("a", { href: address(["op", by], {}) }, el("code.id", {}, shortId(by)))),
      el("p", {}, `Found: ${it.found.what}`, it.count > 1 && `, ${many(it.count, "name")}`, it.who.who === "operation" && [" perhaps by ", el("code.id", {}, shortId(it.who.id))]),
      it.examples && el("ul.targets", {}, it.examples.map((each) => el("li", {}, el("code", {}, targetText(each))))),
      el("p.dim", {}, `Right until after ${fullTime(it.since.right)}, seen ${fullTime(it.since.seen)}; ${it.severity}`),
      may() && el("div.act-line", {}, it.choices.filter((way) => ACT[way]).map((way) => button("button.button", ACT[way], () => act(way)))));
  }

  return { view, open };
}
