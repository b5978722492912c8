// The keyboard.

import { el } from "./dom.js";

const KEYS = [["j  k", "down and up in the timeline"], ["Enter", "read what is chosen"], ["u", "preview the undo of what is chosen"], ["g", "what it was built on"], ["d", "what it changed"], ["s", "side by side, or unified"], ["/", "search"], ["a", "approvals"], ["t", "timeline"], ["Esc", "back"], ["?", "this help"]];

/** Opens the help. */
export function help() {
  const old = document.querySelector("dialog.help");
  if (old) { old.close(); return; }
  const dialog = el("dialog.help", { "aria-labelledby": "help-title", on: { close: () => dialog.remove(), click: (event) => { if (event.target === dialog) dialog.close(); } } },
    el("h2", { id: "help-title" }, "Keyboard"),
    el("dl", {}, KEYS.map(([key, text]) => el("div", {}, el("dt", {}, key.split("  ").map((each) => el("kbd", {}, each))), el("dd", {}, text)))),
    el("form", { method: "dialog" }, el("button.button", {}, "Close")));
  document.body.append(dialog);
  dialog.showModal();
}

/** Listens for keys. `acts` has what each does. */
export function listen(acts) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]")) return;
    const typing = event.target.closest?.("input:not([type=checkbox]):not([type=radio]), select, textarea");
    if (typing) {
      if (event.key === "Escape") { event.target.blur(); acts.leave?.(); }
      return;
    }
    const act = acts[event.key];
    // On a link or a button, Enter is its own.
    if (!act || (event.key === "Enter" && event.target.closest?.("a, button, summary, label"))) return;
    event.preventDefault();
    act();
  });
}
