// Steps: made, or only tried; and the least steps that make facts come or go.

import { post } from "./api.js";
import { factLines, sumParts } from "./changes.js";
import { byId, element, onClick, onSubmit, tell } from "./dom.js";
import { Editor } from "./editor.js";
import { factText, roughText } from "./facts.js";
import { showDiagnostics, showError } from "./mistakes.js";
import { relationOf } from "./relations.js";
import { asOfParameter } from "./when.js";

let stepEditor = null;
let goalEditor = null;

const counted = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

/** Changes as the service tells them: rows, or, where they are many, numbers. */
export function shownChanges(changes) {
  const parts = Object.entries(changes).map(([name, { deleted, inserted }]) => {
    const size = (side) => (typeof side === "number" ? side : side.length);
    const head = element("summary", {}, element("span", { class: "mono" }, name), " ", ...sumParts([size(deleted), size(inserted)]));
    if (typeof deleted === "number") return element("p", { class: "mono" }, name, " ", ...sumParts([deleted, inserted]));
    const relation = relationOf(name);
    const text = (row) => (relation ? factText(relation, row.map(String)) : roughText(name, row.map(String)));
    const lines = [...deleted.map((row) => `-${text(row)}`), ...inserted.map((row) => `+${text(row)}`)];
    return element("details", { open: lines.length <= 20 }, head, ...factLines(lines, lines.length));
  });
  return parts.length ? parts : [element("p", { class: "soft" }, "nothing")];
}

async function apply() {
  showDiagnostics("step-mistakes", stepEditor, []);
  byId("tried").hidden = true;
  try {
    const told = await post("/steps", { text: stepEditor.value, tell: "counts" });
    const count = Object.values(told.changes).reduce((sum, change) => sum + change.inserted + change.deleted, 0);
    tell("step-told", count ? `step ${told.step}: ${counted(count, "fact")} changed` : "no change");
    stepEditor.value = "";
  } catch (error) {
    tell("step-told", "");
    showError("step-mistakes", stepEditor, error);
  }
}

async function whatIf() {
  showDiagnostics("step-mistakes", stepEditor, []);
  byId("tried").hidden = true;
  try {
    const { changes } = await post("/what-if", { text: stepEditor.value, ...asOfParameter() }, { numbers: "text" });
    tell("step-told", "This step would change the following; nothing has changed.");
    byId("tried").replaceChildren(...shownChanges(changes));
    byId("tried").hidden = false;
  } catch (error) {
    tell("step-told", "");
    showError("step-mistakes", stepEditor, error);
  }
}

const listed = (id, separator) => byId(id).value.split(separator).map((each) => each.trim()).filter(Boolean);

async function how() {
  showDiagnostics("how-mistakes", goalEditor, []);
  byId("ways").replaceChildren();
  tell("how-told", "Looking for ways …");
  const body = { goal: goalEditor.value, ...asOfParameter() };
  const [change, keep] = [listed("how-change", /[\s,]+/), listed("how-keep", /;|,(?![^(]*\))/)];
  try {
    const found = await post("/how", { ...body, ...(change.length ? { change } : {}), ...(keep.length ? { keep } : {}) });
    const more = found.complete ? "" : "; there may be others";
    tell("how-told", found.answers.length ? `${counted(found.answers.length, "way")}${more}` : `no way was found${more}`);
    byId("ways").replaceChildren(...found.answers.map(way), ...found.remarks.map((each) => element("p", { class: "soft" }, each)));
  } catch (error) {
    tell("how-told", "");
    showError("how-mistakes", goalEditor, error);
  }
}

function way({ step, effects }) {
  const take = () => {
    stepEditor.value = step;
    stepEditor.focus();
  };
  return element(
    "div",
    { class: "card" },
    element("pre", {}, step.trim()),
    element("button", { type: "button", class: "small", onclick: take }, "Take as the step"),
    element("details", {}, element("summary", {}, "What it changes"), ...shownChanges(effects)),
  );
}

/** Put a step into the editor, to be applied or tried. */
export const proposeStep = (text) => {
  stepEditor.value = text;
};

export function setUpSteps() {
  stepEditor = new Editor(byId("step-text"), { labelled: "step-label", hint: "+edge(1, 2).", submit: () => byId("step-form").requestSubmit() });
  goalEditor = new Editor(byId("how-goal"), { labelled: "how-label", hint: "-path(1, 3)", submit: () => byId("how-form").requestSubmit() });
  onSubmit("step-form", apply);
  onSubmit("how-form", how);
  onClick("what-if", whatIf);
}
