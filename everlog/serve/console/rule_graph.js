// The rule graph of the program, with live counts and times in its boxes.

import { get } from "./api.js";
import { byId, element, svg } from "./dom.js";
import { grouped, relationOf, sizeOf } from "./relations.js";
import { currentPanel, onShow } from "./tabs.js";

const EVERY = 1500; // ms between two looks at the times
const USES = { positive: "", negative: "not ", aggregate: "an aggregate of " };

let boxes = new Map(); // name → {under, bar, box}
let timer = null;
let drawn = false;

/** The program has changed: draw again, when somebody looks. */
export function outdateGraph() {
  drawn = false;
  if (currentPanel() === "graph") look();
}

async function look() {
  if (!drawn) {
    const graph = await get("/graph");
    drawn = true;
    draw(graph);
  }
  await times();
}

function draw(graph) {
  byId("no-graph").hidden = graph.boxes.length > 0;
  byId("graph-told").hidden = byId("rule-graph").hidden = graph.boxes.length === 0;
  const words = graph.arrows.map((arrow) => `${arrow.to} reads ${USES[arrow.use] ?? ""}${arrow.from}.`).join(" ");
  const frames = graph.frames.map((frame) => svg("rect", { class: "frame", x: frame.x, y: frame.y, width: frame.width, height: frame.height, rx: 14 }));
  const arrows = graph.arrows.map((arrow) =>
    svg("g", { class: `arrow ${arrow.use}` }, svg("title", {}, `${arrow.to} reads ${USES[arrow.use] ?? ""}${arrow.from}`), svg("path", { class: "line", d: arrow.line }), svg("path", { class: "head", d: arrow.head })),
  );
  const picture = svg("g", { role: "img", "aria-label": `The rule graph. ${words}` }, ...frames, ...arrows);
  boxes = new Map();
  byId("rule-graph").replaceChildren(
    svg("svg", { class: "graph", viewBox: `0 0 ${graph.width} ${graph.height}`, width: graph.width, height: graph.height }, picture, ...graph.boxes.map(box)),
  );
}

function box(each) {
  const middle = each.x + each.width / 2;
  const under = svg("text", { class: "under", x: middle, y: each.y + 35, "text-anchor": "middle" }, "");
  const bar = svg("rect", { class: "share", x: each.x + 6, y: each.y + each.height - 6, width: 0, height: 3 });
  const given = each.strategy === "given";
  const name = each.name.length > 26 ? `${each.name.slice(0, 25)}…` : each.name;
  const made = svg(
    "g",
    { class: `node ${given ? "given" : "derived"}`, tabindex: 0, role: "button" },
    svg("title", {}, `${each.name}: kept by ${each.strategy}`),
    svg("rect", { class: "box", x: each.x, y: each.y, width: each.width, height: each.height, rx: given ? 2 : 11 }),
    svg("text", { class: "name", x: middle, y: each.y + 19, "text-anchor": "middle" }, name),
    under,
    bar,
  );
  if (each.recursive) made.append(svg("circle", { class: "again", cx: each.x + each.width - 4, cy: each.y + 4, r: 9 }), svg("path", { class: "turn", d: `M${each.x + each.width - 8} ${each.y + 5.5}a4.3 4.3 0 1 0 2-5.2m2.6-2.6-2.9 2.5 3.1 2.1` }));
  const open = () => {
    const relation = relationOf(each.name);
    if (relation) document.dispatchEvent(new CustomEvent("relation", { detail: relation }));
  };
  made.addEventListener("click", open);
  made.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") open();
  });
  boxes.set(each.name, { under, bar, made, width: each.width - 12 });
  return made;
}

const inWords = (seconds) => (seconds >= 1 ? `${seconds.toFixed(1)} s` : seconds >= 0.0005 ? `${Math.round(seconds * 1000)} ms` : "");

/** Facts as they are now, and seconds so far, those of helpers included. */
async function times() {
  const { relations } = await get("/stats");
  const seconds = new Map();
  for (const each of relations) {
    const owner = boxes.has(each.name) ? each.name : (each.name.match(/ of ([?\w.]+)#\d+$/)?.[1] ?? each.name.split("/")[0]);
    seconds.set(owner, (seconds.get(owner) ?? 0) + (each.seconds ?? 0));
  }
  const all = [...seconds.values()].reduce((sum, each) => sum + each, 0);
  for (const [name, { under, bar, made, width }] of boxes) {
    const own = seconds.get(name) ?? 0;
    const parts = [`${grouped(sizeOf(name) ?? 0)} fact${sizeOf(name) === 1 ? "" : "s"}`, inWords(own)].filter(Boolean);
    under.textContent = parts.join(" · ");
    bar.setAttribute("width", String(all > 0 ? (own / all) * width : 0));
    made.setAttribute("aria-label", `${name}, ${parts.join(", ")}`);
  }
}

/** Counts change with each step; times are asked for now and then. */
export function countInGraph() {
  if (currentPanel() !== "graph" || timer) return;
  timer = setTimeout(() => {
    timer = null;
    times().catch(() => {});
  }, EVERY);
}

export function setUpRuleGraph() {
  onShow("graph", () => look().catch((error) => byId("rule-graph").replaceChildren(element("p", {}, error.message))));
}
