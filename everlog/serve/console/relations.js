// Relations with their sizes, which follow the changes.

import { get } from "./api.js";
import { byId, element } from "./dom.js";
import { asOfParameter } from "./when.js";

const MANY = 12; // relations, beyond which they can be filtered

const sizes = new Map();
let known = 0; // the step of these sizes
let past = false; // whether they are those of a past state, which do not change
let loading = 0;
let heard = []; // changes that came while the sizes were being loaded

/** A relation with its columns, if it is known already. */
export const relationOf = (name) => sizes.get(name)?.relation;

export const knownRelations = () => [...sizes.values()].map((each) => each.relation);

export const sizeOf = (name) => sizes.get(name)?.size;

/** Counts with spaces between thousands, which do not break a line. */
export const grouped = (n) => Number(n).toLocaleString("en").replaceAll(",", "\u202f");

export async function loadRelations(show) {
  loading += 1;
  let told;
  const parameters = asOfParameter();
  try {
    told = await get("/relations", parameters);
  } finally {
    loading -= 1;
  }
  const { relations, step } = told;
  known = step;
  past = "as_of" in parameters;
  sizes.clear();
  byId("relation-rows").replaceChildren(...relations.map((relation) => row(relation, show)));
  byId("no-relations").hidden = relations.length > 0;
  byId("relation-filter").hidden = relations.length <= MANY;
  filter();
  const missed = heard;
  if (!loading) heard = [];
  missed.forEach(count);
  return relations;
}

function row(relation, show) {
  const columns = relation.columns.map((column) => `${column.name}:${column.type}`).join(", ");
  const kind = relation.rules ? `${relation.rules} rule${relation.rules > 1 ? "s" : ""}` : relation.input ? "input" : "given";
  const cell = element("span", { class: "number" }, grouped(relation.size));
  const name = element(
    "button",
    { type: "button", class: "name", "aria-label": `Show the facts of ${relation.name}`, title: `${relation.name}(${columns})`, onclick: () => show(relation) },
    relation.name,
  );
  const item = element("li", {}, name, cell, element("span", { class: "columns" }, `(${columns}) · ${kind}`));
  sizes.set(relation.name, { cell, item, size: relation.size, relation });
  return item;
}

function filter() {
  const wanted = byId("relation-filter").hidden ? "" : byId("relation-filter").value.toLowerCase();
  for (const [name, { item }] of sizes) item.hidden = !name.toLowerCase().includes(wanted);
}

export function setUpRelations() {
  byId("relation-filter").addEventListener("input", filter);
}

/** A change is counted once: those up to the step that was loaded are in the sizes already. */
export function countChanges(data) {
  if (loading) heard.push(data);
  count(data);
}

function count({ step, changes }) {
  if (step <= known || past) return;
  for (const [name, change] of Object.entries(changes)) {
    const shown = sizes.get(name);
    if (!shown) continue;
    shown.size += change.inserted.length - change.deleted.length;
    shown.cell.textContent = grouped(shown.size);
    shown.item.classList.add("changed");
    setTimeout(() => shown.item.classList.remove("changed"), 700);
  }
}
