// Which state is shown: that of now, or that after a step of the past.

import { byId, tell } from "./dom.js";

const listeners = [];
let step = null;

/** The chosen step, or null for now. */
export const asOf = () => step;

/** A parameter of requests: `{as_of: 3}`, or nothing. */
export const asOfParameter = () => (step === null ? {} : { as_of: step });

export const onWhen = (work) => listeners.push(work);

export function lookAt(chosen) {
  if (chosen === step) return;
  step = chosen;
  byId("then").hidden = step === null;
  if (step !== null) tell("then-told", `You see the state after step ${step}.`);
  document.body.classList.toggle("past", step !== null);
  for (const work of listeners) work(step);
}

export function setUpWhen() {
  byId("now").addEventListener("click", () => lookAt(null));
}
