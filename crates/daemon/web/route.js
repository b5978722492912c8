// Where one is, as the part of the address after `#`: `#/op/7f3c/changes?agent=codex`. It can be kept, sent to somebody, and gone back to.

const FILTERS = ["q", "agent", "task", "prompt", "verb", "status", "at", "group"];

/** Reads the address. */
export function route() {
  const [path, search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [first = "", second, third] = path.split("/").map(decode);
  const fields = new URLSearchParams(search);
  const filters = {};
  for (const key of FILTERS) if (fields.get(key)) filters[key] = fields.get(key);
  if (first === "op") return { view: "timeline", id: second, tab: third ?? "changes", filters };
  if (first === "take-back") return { view: "timeline", all: { [second]: third }, tab: "undo", filters };
  if (["approvals", "failed", "drift", "state", "storage"].includes(first)) return { view: first, id: second, filters };
  return { view: "timeline", tab: null, filters };
}

function decode(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

/** Makes an address. The filters go along, so that a list stays what it was. */
export function address(parts, filters = route().filters) {
  const fields = new URLSearchParams(filters).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${fields ? `?${fields}` : ""}`;
}

/** Goes there. `quietly`: without a step in the history. */
export function go(hash, quietly = false) {
  if (hash === location.hash) return;
  if (!quietly) { location.hash = hash; return; }
  history.replaceState(null, "", hash);
  dispatchEvent(new HashChangeEvent("hashchange"));
}
