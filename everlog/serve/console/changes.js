// What each step changed: sums by relation, and its facts; kept over a reload of the page.

import { byId, element, onClick } from "./dom.js";
import { factText, roughText } from "./facts.js";
import { grouped, relationOf } from "./relations.js";

const STEPS = 200; // shown
const LINES = 50; // shown of each step
const KEPT = 60; // steps kept over a reload, with their first facts
const FEW = 10;
const KEY = "everlog-changes";

let paused = false;
let steps = []; // {step, time, sums: {name: [gone, came]}, lines}
let sums = new Map();
let last = null; // the id of the last event
let program = "";

/** The id of the last event that is shown, to go on from there. */
export function recalled(name) {
  program = name;
  try {
    const found = JSON.parse(sessionStorage.getItem(`${KEY}:${program}`) ?? "null");
    if (found) {
      ({ last } = found);
      sums = new Map(found.sums);
      found.steps.forEach(add);
    }
  } catch {
    clear(); // storage is off, or it is not ours
  }
  showSums();
  return last;
}

function keep() {
  try {
    const short = steps.slice(-KEPT).map((each) => ({ ...each, lines: each.lines.slice(0, FEW) }));
    sessionStorage.setItem(`${KEY}:${program}`, JSON.stringify({ last, sums: [...sums], steps: short }));
  } catch {
    // full or off
  }
}

export function heard(id) {
  last = id;
  keep();
}

/** The service has started again, and counts from its start: what is shown belongs to the past. */
export function clear() {
  steps = [];
  sums = new Map();
  byId("log").replaceChildren();
  showSums();
}

export function showChange(data) {
  if (paused) return;
  const one = { step: data.step, time: new Date().toLocaleTimeString(), sums: {}, lines: [] };
  for (const [name, change] of Object.entries(data.changes)) {
    const relation = relationOf(name);
    const text = (row) => (relation ? factText(relation, row) : roughText(name, row));
    one.sums[name] = [change.deleted.length, change.inserted.length];
    const [gone, came] = sums.get(name) ?? [0, 0];
    sums.set(name, [gone + change.deleted.length, came + change.inserted.length]);
    for (const [sign, rows] of [["-", change.deleted], ["+", change.inserted]]) for (const row of rows.slice(0, LINES + 1)) one.lines.push(sign + text(row));
  }
  add(one);
  showSums();
}

export const sumParts = ([gone, came]) => [
  came ? element("span", { class: "come" }, `+${grouped(came)}`) : null,
  came && gone ? " " : null,
  gone ? element("span", { class: "go" }, `−${grouped(gone)}`) : null,
];

export const factLines = (lines, all) => [
  ...lines.slice(0, LINES).map((line) => element("p", { class: line[0] === "+" ? "come" : "go" }, line)),
  all > LINES ? element("p", {}, `… and ${grouped(all - LINES)} more`) : null,
].filter((each) => each !== null);

function add(one) {
  steps.push(one);
  const all = Object.values(one.sums).reduce((sum, [gone, came]) => sum + gone + came, 0);
  const parts = Object.entries(one.sums).map(([name, both]) => element("span", { class: "sum" }, `${name} `, ...sumParts(both)));
  const head = element("summary", {}, element("span", { class: "step" }, `step ${one.step}`), element("span", { class: "soft" }, one.time), ...parts);
  const body = element("details", { open: all <= 20 }, head, ...factLines(one.lines, all));
  byId("log").prepend(body);
  while (steps.length > STEPS) {
    steps.shift();
    byId("log").lastChild.remove();
  }
}

function showSums() {
  byId("no-changes").hidden = steps.length > 0;
  byId("log").hidden = steps.length === 0;
  const items = [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, both]) => element("li", {}, element("span", { class: "mono" }, name), " ", ...sumParts(both)));
  byId("sums").replaceChildren(...items);
}

export function setUpChanges() {
  onClick("pause", () => {
    paused = !paused;
    byId("pause").setAttribute("aria-pressed", String(paused));
    byId("pause").textContent = paused ? "Resume" : "Pause";
  });
  onClick("forget", () => {
    clear();
    keep();
  });
}
