// The changes of each step, and a form for steps.

import { post } from "./api.js";
import { byId, element, onSubmit, tell } from "./dom.js";
import { factText, roughText } from "./facts.js";
import { relationOf } from "./relations.js";

const STEPS = 100; // shown
const LINES = 20; // shown per step

let paused = false;

export function showChange(data) {
  if (paused) return;
  const lines = [];
  for (const [name, change] of Object.entries(data.changes)) {
    const relation = relationOf(name);
    const text = (row) => (relation ? factText(relation, row) : roughText(name, row));
    for (const row of change.deleted) lines.push(element("p", { class: "go" }, `-${text(row)}`));
    for (const row of change.inserted) lines.push(element("p", { class: "come" }, `+${text(row)}`));
  }
  const more = lines.length - LINES;
  if (more > 0) lines.splice(LINES, more, element("p", {}, `… and ${more} more`));
  const log = byId("log");
  log.prepend(element("div", {}, element("p", { class: "step" }, `step ${data.step}`), ...lines));
  while (log.children.length > STEPS) log.lastChild.remove();
}

export function setUpChanges() {
  onSubmit("step-form", "step-told", async () => {
    const told = await post("/steps", { text: byId("step-text").value, tell: "counts" });
    const count = Object.values(told.changes).reduce((sum, change) => sum + change.inserted + change.deleted, 0);
    tell("step-told", count ? `step ${told.step}: ${count} fact${count === 1 ? "" : "s"} changed` : "no change");
    byId("step-text").value = "";
  });
  byId("pause").addEventListener("click", (event) => {
    paused = !paused;
    event.target.setAttribute("aria-pressed", String(paused));
    event.target.textContent = paused ? "Resume" : "Pause";
  });
}
