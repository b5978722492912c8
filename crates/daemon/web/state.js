// The project's state graph as a picture: one node a line, each above what it leads to, with rails from each to that.
//
// The lines can be read without seeing the rails, which are SVG beside them.

import { get } from "./api.js";
import { el, put, svg } from "./dom.js";
import { drawError } from "./errors.js";
import { lanes } from "./graph.js";
import { many } from "./words.js";

const ROW = 44;
const LANE = 18;
const LEFT = 16;
const SHOWN_MAX = 500;

/** Makes the view. */
export function makeState() {
  const place = el("div.column", {}, el("p.loading", {}, "Loading…"));
  const view = el("div.page", {}, el("h1.view-title", {}, "State"), place);

  async function open() {
    try { put(place, draw(await get("/v1/state"))); } catch (error) { put(place, drawError(error)); }
  }

  return { view, open };
}

function draw(reply) {
  if (reply.nodes.length === 0) return el("p.empty", {}, "The graph is empty. ", el("code", {}, "backout graph import"), " and the tool ", el("code", {}, "declare"), " put contexts, plans and steps into it.");
  const nodes = reply.nodes.slice(0, SHOWN_MAX);
  const known = new Set(nodes.map((node) => node.id));
  const edges = nodes.flatMap((node) => node.leads.filter(([, to]) => known.has(to)).map(([kind, to]) => ({ from: node.id, to, kind })));
  const titles = new Map(nodes.map((node) => [node.id, node.title]));
  const broken = new Map();
  for (const it of reply.violated ?? []) broken.set(it.node, [...(broken.get(it.node) ?? []), it]);
  return [
    el("p.dim", {}, `${many(reply.nodes.length, "node")}, ${many(reply.edges, "edge")}, after record ${reply.lsn}`),
    reply.nodes.length > SHOWN_MAX && el("p.note", {}, `Only the first ${SHOWN_MAX} are drawn. `, el("code", {}, "backout graph show"), " has all of them."),
    el("div.graph", {}, el("div.graph-body", {}, rails(nodes, edges), el("ol.graph-lines", { "aria-label": "Nodes" }, nodes.map((node) => line(node, edges, broken.get(node.id) ?? [], titles))))),
  ];
}

function rails(nodes, edges) {
  const { lane, place, width } = lanes(nodes, edges);
  const x = (id) => LEFT + lane.get(id) * LANE;
  const y = (id) => place.get(id) * ROW + ROW / 2;
  const paths = edges.map(({ from, to, kind }) => {
    const [x1, y1, x2, y2] = [x(from), y(from), x(to), y(to)];
    const bend = Math.min(ROW, Math.abs(y2 - y1) / 2);
    const line = x1 === x2 ? `M${x1} ${y1}V${y2}` : `M${x1} ${y1}V${y2 - bend}C${x1} ${y2 - bend / 3} ${x2} ${y2 - bend / 1.5} ${x2} ${y2}`;
    return svg(`path.rail${kind === "DEPENDS_ON" ? ".may" : ""}`, { d: line });
  });
  const dots = nodes.map((node) => svg("circle.dot", { cx: x(node.id), cy: y(node.id), r: 5 }));
  const wide = LEFT * 2 + (width - 1) * LANE;
  const high = nodes.length * ROW;
  return svg("svg.rails", { width: wide, height: high, viewBox: `0 0 ${wide} ${high}`, "aria-hidden": "true", focusable: "false" }, paths, dots);
}

function line(node, edges, broken, titles) {
  const leads = edges.filter((edge) => edge.from === node.id).map((edge) => `${edge.kind.toLowerCase().replaceAll("_", " ")} ${titles.get(edge.to)}`);
  return el("li", {}, el("div.graph-line", {},
    el("span.what", { title: node.title }, el("b", {}, node.kind), ` ${node.title}`),
    el("span.meta", {}, node.status && el("span", {}, node.status), el("span", {}, `v${node.version}`), el("span.id", {}, node.id.slice(0, 8)),
      broken.map((it) => el(`span.state.is-${it.severity}`, { title: it.why }, `breaks ${it.invariant}`)),
      leads.length > 0 && el("span.why", {}, leads.join(", ")))));
}
