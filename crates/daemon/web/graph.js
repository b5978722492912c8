// What was built on what, as a picture: one operation a line, newest above, with rails from each to what it was built on.
//
// The lines are links, so that the picture can be read and walked without seeing it; the rails are SVG beside them.

import { get } from "./api.js";
import { el, svg } from "./dom.js";
import { drawError } from "./errors.js";
import { address } from "./route.js";
import { hue, summary } from "./rows.js";
import { REASON, STATUS, ago, shortId } from "./words.js";

const ROW = 44;
const LANE = 18;
const LEFT = 16;
const LIMIT = 500;

/** Draws the graph around an operation. */
export async function drawGraph(id, signal) {
  let reply;
  try { reply = await get(`/v1/graph?around=${encodeURIComponent(id)}&limit=${LIMIT}`, signal); } catch (error) {
    if (error.name === "AbortError") throw error;
    return drawError(error);
  }
  return [reply.next && el("p.note", {}, `Only the newest ${LIMIT} of what hangs together with it are drawn.`), picture(reply, id)];
}

/** Tells for each node how it stands to the one in the middle. */
export function relate(nodes, edges, id) {
  const reach = (start, from, to) => {
    const found = new Set();
    const todo = [start];
    while (todo.length) {
      const at = todo.pop();
      for (const edge of edges) if (edge[from] === at && !found.has(edge[to])) { found.add(edge[to]); todo.push(edge[to]); }
    }
    return found;
  };
  const below = reach(id, "from", "to");
  const above = reach(id, "to", "from");
  return new Map(nodes.map((node) => [node.id, node.id === id ? "self" : above.has(node.id) ? "above" : below.has(node.id) ? "below" : "beside"]));
}

/** Gives each node a lane, so that a rail that passes a node is in another lane than the node. */
export function lanes(nodes, edges) {
  const place = new Map(nodes.map((node, index) => [node.id, index]));
  const ends = new Map();
  for (const { from, to } of edges) ends.set(from, Math.max(ends.get(from) ?? 0, place.get(to) ?? 0));
  const lane = new Map();
  // For each lane, the last line that is taken.
  const taken = [];
  nodes.forEach((node, index) => {
    // It goes on in the lane of the newest one that was built on it, if that lane ends here.
    const parents = edges.filter((edge) => edge.to === node.id).map((edge) => edge.from);
    const own = parents.map((parent) => lane.get(parent)).find((at) => at !== undefined && taken[at] <= index);
    let at = own ?? taken.findIndex((last) => last < index);
    if (at < 0) at = taken.length;
    lane.set(node.id, at);
    taken[at] = Math.max(index, ends.get(node.id) ?? index);
  });
  return { lane, place, width: taken.length };
}

function picture({ nodes, edges }, asked) {
  const id = nodes.find((node) => node.id.startsWith(asked))?.id ?? asked;
  if (nodes.length <= 1) return el("p.empty", {}, "It was built on nothing that is recorded, and nothing was built on it.");
  const sorted = [...nodes].sort((one, other) => other.lsn - one.lsn);
  const known = new Set(sorted.map((node) => node.id));
  const drawn = edges.filter((edge) => known.has(edge.from) && known.has(edge.to));
  const kinds = relate(sorted, drawn, id);
  const { lane, place, width } = lanes(sorted, drawn);
  const x = (node) => LEFT + lane.get(node) * LANE;
  const y = (node) => place.get(node) * ROW + ROW / 2;
  const rails = drawn.map((edge) => {
    const [x1, y1, x2, y2] = [x(edge.from), y(edge.from), x(edge.to), y(edge.to)];
    const bend = Math.min(ROW, (y2 - y1) / 2);
    // Straight down in the lane of the newer one, then over to the older one.
    const line = x1 === x2 ? `M${x1} ${y1}V${y2}` : `M${x1} ${y1}V${y2 - bend}C${x1} ${y2 - bend / 3} ${x2} ${y2 - bend / 1.5} ${x2} ${y2}`;
    const goes = [edge.from, edge.to].every((end) => ["self", "above"].includes(kinds.get(end)));
    return svg(`path.rail${goes ? ".goes" : ""}${edge.reason === "read" ? ".may" : ""}`, { d: line });
  });
  const dots = sorted.map((node) => svg(`a.node.is-${kinds.get(node.id)}`, { href: address(["op", node.id, "graph"]), tabindex: -1, "aria-hidden": "true" },
    svg("circle", { cx: x(node.id), cy: y(node.id), r: 14, class: "hit" }),
    svg(`circle.dot${node.status === "undone" ? ".off" : ""}`, { cx: x(node.id), cy: y(node.id), r: node.id === id ? 7 : 5 })));
  const edge_width = LEFT * 2 + (width - 1) * LANE;
  const graph = svg("svg.rails", { width: edge_width, height: sorted.length * ROW, viewBox: `0 0 ${edge_width} ${sorted.length * ROW}`, "aria-hidden": "true", focusable: "false" }, rails, dots);
  const lines = sorted.map((node) => line(node, id, kinds.get(node.id), drawn));
  const gone = [...kinds.values()].filter((kind) => kind === "above").length;
  return el("div.graph", {},
    el("p.legend", {}, el("span.key.is-self", {}, "this operation"), el("span.key.is-above", {}, "built on it: an undo takes it along"), el("span.key.is-below", {}, "what it was built on: stays")),
    el("div.graph-body", {}, graph, el("ol.graph-lines", { "aria-label": `${gone} operations were built on this one` }, lines)));
}

function line(node, id, kind, edges) {
  const why = edges.filter((edge) => edge.from === node.id).map((edge) => `${REASON[edge.reason] ?? edge.reason} (${shortId(edge.to)})`);
  return el("li", {}, el(`a.graph-line.is-${kind}${node.status === "undone" ? ".off" : ""}`, { href: address(["op", node.id, "graph"]), "aria-current": node.id === id ? "true" : null },
    el("span.what", { title: node.summary }, summary(node)),
    el("span.meta", {}, node.agent && el(`span.agent.hue-${hue(node.agent)}`, {}, node.agent), el("span", {}, ago(node.at)), node.status === "undone" && el("span", {}, STATUS.undone), el("span.id", {}, shortId(node.id)), why.length > 0 && el("span.why", {}, why.join(", ")))));
}
