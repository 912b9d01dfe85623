// The past of a database in a file: a slider over its steps, and what each changed.

import { get } from "./api.js";
import { sumParts } from "./changes.js";
import { byId, element, onClick, tell } from "./dom.js";
import { shownChanges } from "./steps.js";
import { currentPanel, onShow } from "./tabs.js";
import { asOf, lookAt, onWhen } from "./when.js";

const WAIT = 200; // ms after the slider has moved
const LISTED = 200; // steps around the chosen one

let steps = new Map();
let oldest = 0;
let newest = 0;
let waiting = null;
let asked = 0;
let follows = true; // whether the slider stays at the last step

const chosen = () => Number(byId("when").value);

async function load(upto = null) {
  const found = await get("/steps", { limit: LISTED, ...(upto === null ? {} : { upto }) });
  ({ oldest, step: newest } = found);
  steps = new Map(found.steps.map((each) => [each.step, each]));
  byId("when").min = String(oldest);
  byId("when").max = String(newest);
  byId("past-steps").replaceChildren(...found.steps.map(row));
}

function row(each) {
  const given = Object.entries(each.given).map(([name, { deleted, inserted }]) => element("span", { class: "sum" }, `${name} `, ...sumParts([deleted, inserted])));
  if (each.program) given.push(element("span", { class: "soft" }, "the rules changed"));
  const button = element("button", { type: "button", class: "link", "aria-label": `Step ${each.step}`, onclick: () => choose(each.step) }, String(each.step));
  return element("tr", { "data-step": each.step }, element("td", { class: "number" }, button), element("td", {}, new Date(each.time).toLocaleString()), element("td", {}, ...given));
}

function choose(step) {
  byId("when").value = String(step);
  follows = step >= newest;
  said();
}

/** The step of the slider in words; what it changed comes when the slider rests. */
function said() {
  const step = chosen();
  tell("when-step", step);
  const time = steps.get(step)?.time;
  tell("when-time", time ? new Date(time).toLocaleString() : "");
  byId("when").setAttribute("aria-valuetext", `step ${step}`);
  byId("earlier").disabled = step <= oldest;
  byId("later").disabled = step >= newest;
  byId("look").textContent = step >= newest ? "Look at now" : "Look at this state";
  for (const each of byId("past-steps").children) each.classList.toggle("chosen", each.dataset.step === String(step));
  clearTimeout(waiting);
  waiting = setTimeout(() => changed(step).catch((error) => tell("changed-told", error.message)), WAIT);
}

async function changed(step) {
  const mine = ++asked;
  byId("changed").replaceChildren();
  byId("changed-title").textContent = `What step ${step} changed`;
  if (step <= oldest) {
    tell("changed-told", step === 0 ? "This is the state before the first step." : "This is the oldest state that is kept.");
    return;
  }
  tell("changed-told", "Computing the two states …");
  if (!steps.has(step)) await load(Math.min(newest, step + LISTED / 2));
  const { changes } = await get("/diff", { before: step - 1, after: step, tell: "counts" });
  if (mine !== asked) return;
  const names = Object.keys(changes);
  tell("changed-told", names.length ? "" : "No fact came or went.");
  byId("changed").replaceChildren(...names.map((name) => relation(step, name, changes[name])));
}

/** A relation with its sums; its facts are asked for when it is opened. */
function relation(step, name, { deleted, inserted }) {
  const inside = element("div", {}, "…");
  const details = element("details", {}, element("summary", {}, element("span", { class: "mono" }, name), " ", ...sumParts([deleted, inserted])), inside);
  details.addEventListener(
    "toggle",
    async () => {
      try {
        const found = await get("/diff", { before: step - 1, after: step, relation: name, numbers: "text" });
        inside.replaceChildren(...shownChanges(found.changes));
        inside.querySelector("details")?.setAttribute("open", "");
      } catch (error) {
        inside.textContent = error.message;
      }
    },
    { once: true },
  );
  return element("li", {}, details);
}

/** A step has been made. */
export function grow(step) {
  if (currentPanel() !== "past" || step <= newest) return;
  load()
    .then(() => follows && choose(newest))
    .catch(() => {});
}

async function look() {
  try {
    await load();
  } catch (error) {
    byId("has-past").hidden = true;
    byId("no-past").hidden = false;
    if (error.code !== "not-durable") tell("no-past-told", error.message);
    return;
  }
  byId("has-past").hidden = false;
  byId("no-past").hidden = true;
  choose(asOf() ?? (follows ? newest : Math.min(chosen(), newest)));
}

export function setUpPast() {
  byId("when").addEventListener("input", () => {
    follows = chosen() >= newest;
    said();
  });
  onClick("earlier", () => choose(chosen() - 1));
  onClick("later", () => choose(chosen() + 1));
  onClick("look", () => lookAt(chosen() >= newest ? null : chosen()));
  onWhen((step) => step === null && currentPanel() === "past" && choose(newest));
  onShow("past", () => look());
}
