// Relations with their sizes, which follow the changes.

import { get } from "./api.js";
import { byId, element } from "./dom.js";

const sizes = new Map();
let known = 0; // the step of these sizes
let loading = 0;
let heard = []; // changes that came while the sizes were being loaded

/** A relation with its columns, if it is known already. */
export const relationOf = (name) => sizes.get(name)?.relation;

export async function loadRelations(show) {
  loading += 1;
  let told;
  try {
    told = await get("/relations");
  } finally {
    loading -= 1;
  }
  const { relations, step } = told;
  known = step;
  sizes.clear();
  byId("relation-rows").replaceChildren(
    ...relations.map((relation) => {
      const columns = relation.columns.map((column) => `${column.name}:${column.type}`).join(", ");
      const kind = relation.rules ? `${relation.rules} rule${relation.rules > 1 ? "s" : ""}` : relation.input ? "input" : "given";
      const size = element("td", { class: "number" }, String(relation.size));
      sizes.set(relation.name, { cell: size, size: relation.size, relation });
      const name = element(
        "button",
        { type: "button", class: "name", "aria-label": `Show the facts of ${relation.name}`, onclick: () => show(relation) },
        relation.name,
      );
      return element(
        "tr",
        {},
        element("th", { scope: "row" }, name, " ", element("span", { class: "columns" }, `(${columns}) · ${kind}`)),
        size,
      );
    }),
  );
  const missed = heard;
  if (!loading) heard = [];
  missed.forEach(count);
}

/** A change is counted once: those up to the step that was loaded are in the sizes already. */
export function countChanges(data) {
  if (loading) heard.push(data);
  count(data);
}

function count({ step, changes }) {
  if (step <= known) return;
  for (const [name, change] of Object.entries(changes)) {
    const shown = sizes.get(name);
    if (!shown) continue;
    shown.size += change.inserted.length - change.deleted.length;
    shown.cell.textContent = String(shown.size);
    const row = shown.cell.parentNode;
    row.classList.add("changed");
    setTimeout(() => row.classList.remove("changed"), 700);
  }
}
